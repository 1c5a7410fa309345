"""What stands in FROM: maps, views, joins, VALUES, table functions and the tables of `information_schema`.

A relation is bound without knowing which columns the SELECT around it uses.
"""
