"""Spill files: where operators put the rows that `memory_limit` leaves no room for.

Batches go to files without a name and come back in the order they were written. Nothing here knows an operator, an
order or a key: which rows are spilled, and when they are read again, is decided by the operator that holds them.
"""
