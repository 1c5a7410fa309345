"""Orders of inner joins: the graph of their relations, the splits that enter the memo, and the rows they give.

Nothing here knows how a join is implemented.
"""
