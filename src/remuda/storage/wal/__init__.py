"""The write-ahead log: records, files and group commit.

Nothing here knows segments.
"""
