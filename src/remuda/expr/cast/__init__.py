"""Conversions between types, for one value and for a column: CAST, TRY_CAST, assignments.

Nothing here knows expressions.
"""
