"""Orders of inner joins: the graph of their relations, and the splits that enter the memo.

Nothing here knows how a join is implemented.
"""
