"""Functions from data frames to data frames: lookups in maps, and maps as frames.

They run in tasks over the version that the execution has pinned (`spark.source`). They must not know how queries of a
grid run.
"""
