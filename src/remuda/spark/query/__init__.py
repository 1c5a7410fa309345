"""Queries on Spark: fragments as tasks of stages, and the ways rows take between them and to the driver.

Nothing here knows loads or the data source.
"""
