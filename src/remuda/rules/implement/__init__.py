"""Implement rules: how a logical operator can be done, and what each way needs of its inputs.

The optimizer chooses among the ways; nothing here knows the memo.
"""
