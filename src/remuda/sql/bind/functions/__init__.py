"""Binding of calls: scalar functions with a syntax of their own, aggregates, window functions.

What needs no care of its own is an entry of the registry of `remuda.expr`.
"""
