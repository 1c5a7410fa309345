"""The hot path from a key or an index entry to rows. Speed first: this is the only package that generates code.

What is generated, and why, is said where it is generated. Nothing here writes.
"""
