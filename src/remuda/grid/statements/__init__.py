"""Statements that are not plain queries: definitions, EXPLAIN, SHOW, DESCRIBE, COPY, views.

Each is a function of the parsed statement and the grid.
"""
