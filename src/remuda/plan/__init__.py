"""Plans as plain data: logical and physical nodes, traits, fragments, EXPLAIN and the plan checker.

A node is a frozen value; columns are identified by query-unique ids. Nothing here reads data, chooses among plans or
runs one: `rules` and `optimizer` make plans, `exec` and `runtime` run them, and a finished `Plan` pickles.
"""
