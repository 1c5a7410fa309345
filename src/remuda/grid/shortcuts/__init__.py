"""Shortcuts: plans that touch one row by its key, or few rows by an index, compiled into a function.

A shortcut gives the same rows as the operators would; speed first.
"""
