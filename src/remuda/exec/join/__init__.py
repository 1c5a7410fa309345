"""Joins: the hash join with its runtime filters, the nested-loop join, the lookup join, the mark join.

Nothing here knows aggregates, windows or sorts.
"""
