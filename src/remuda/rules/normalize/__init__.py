"""Normalise rules: rewrites that are always better, a file for each root operator, applied until none applies.

A rule returns None where it does not apply. Rules know neither the memo nor costs.
"""
