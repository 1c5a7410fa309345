"""Binding of scalar expressions: one small function for each kind of node of the parsed tree.

Clauses are bound around it: a sub-query in an expression is the only way back to them.
"""
