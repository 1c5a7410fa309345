"""From a parsed query to a logical plan in which every name is resolved and every expression has its type.

One file for each clause; expressions, functions and writes have folders of their own. Nothing here knows how a query
runs.
"""
