"""Measure Remuda beside SQLite, DuckDB, Polars, LMDB, chDB and Spark: `remuda bench`, or `make bench`.

Times on a shared machine wander; ratios taken in one interleaved run do not. So every case runs all its contenders
in turn, again and again, and is read by the ratio of the best times. No time is asserted, and no test depends on one.

The package uses Remuda as a program would, through `remuda.open`. Nothing of the engine imports it, and it imports a
peer when a case asks for it: a peer that is not installed is named in the report.
"""
