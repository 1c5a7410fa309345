"""Remuda: a SQL engine over partitioned, keyed, indexed maps, embedded in Python and on Apache Spark."""

__version__ = "0.1.0"
