"""Evaluation of expressions: over one row, over an Arrow batch, and as a mask of the rows that a filter keeps.

An expression is compiled once for a plan. Nothing here knows a single function: those are in the registry.
"""
