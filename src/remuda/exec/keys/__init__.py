"""Key interning: from the values of one or several columns to dense integer ids, by SQL's idea of equality.

Joins, groups and windows look keys up by these ids. Nothing here knows an operator.
"""
