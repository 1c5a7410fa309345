"""Bulk loads, checkpoints and compaction: conforming, partitioning, building and merging segments."""
