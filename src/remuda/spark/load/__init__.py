"""Bulk loads by Spark: tasks cut rows by partitions, tasks make segments, the driver commits all or none.

Nothing here knows queries.
"""
