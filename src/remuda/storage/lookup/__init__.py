"""The hot path from a key or an index entry to rows. Speed first: what can be bound or generated beforehand, is.

`generated_readers.py` says what is generated, and why. Nothing here writes.
"""
