"""Segments: immutable rows of many partitions, how they are built, written, opened, read and summarised.

Nothing here knows the WAL, a folder's manifest or a member.
"""
