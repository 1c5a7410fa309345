"""Window functions: rows in order, their frames, and what each call is over them.

Nothing here knows joins or scans.
"""
