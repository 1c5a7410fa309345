"""How many rows a group has and which values are in them: cardinality and selectivity, from statistics.

Knows logical nodes and statistics; neither physical nodes nor costs nor the memo.
"""
