"""Aggregation: hash and streaming, partial and final, and the states of every aggregate function.

Nothing here knows joins or windows; windows use the states.
"""
