"""What EXPLAIN tells of the search: the memo, the rewrites, the paths that were not taken.

It reads a memo after the search and changes nothing in it. The search does not know it.
"""
