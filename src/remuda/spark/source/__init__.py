"""The Spark data source `remuda`: reads, batch writes and streaming writes of Spark SQL.

It runs in processes of Spark's own and talks to the folder, never to a grid.
"""
