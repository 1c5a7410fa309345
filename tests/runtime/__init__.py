"""Tests of the scheduler, the channels and running queries."""
