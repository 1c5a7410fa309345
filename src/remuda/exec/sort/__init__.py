"""Order: sort keys as integers, the sort and top-N operators, the merge of ordered streams.

Nothing here knows joins, aggregates or windows.
"""
