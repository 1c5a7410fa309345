"""Indexes of one segment: the key index, HASH and SORTED, over arrays of positions and order-preserving integers.

An index knows neither segments' files nor snapshots.
"""
