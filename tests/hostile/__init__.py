"""Statements, values and files that ask for too much: each ends in an answer or in Remuda's error, never in a crash."""
