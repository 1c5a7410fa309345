"""Exchanges: the two ends of an edge between fragments, and the route of each row.

Nothing here knows threads, sockets or Spark: a channel is handed in by the runtime.
"""
