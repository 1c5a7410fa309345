"""Scans: operators that read rows of a map at a snapshot, whole, through an index or by key.

Every scan decides here which blocks, entries and rows it reads. Nothing here knows joins, aggregates or sorts: what
they want of a scan reaches it as bounds and filters.
"""
