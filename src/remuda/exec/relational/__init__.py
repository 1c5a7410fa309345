"""Operators that take rows as they come: filter, project, limit, union, values, series, recursion, modify, root.

None of them holds more than a batch, but for the spool and the recursion. Nothing here knows scans, joins or
aggregates.
"""
