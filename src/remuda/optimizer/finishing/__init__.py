"""Passes over the finished plan: local parallelism, runtime decisions, and what is computed once for several uses.

They run after the search, in the order that `optimize.py` lists, and know nothing of the memo.
"""
