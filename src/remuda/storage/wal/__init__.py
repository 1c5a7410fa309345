"""The write-ahead log: records, files, group commit, and recovery after a crash.

Nothing here knows segments.
"""
