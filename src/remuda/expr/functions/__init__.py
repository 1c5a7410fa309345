"""The scalar functions, a file for each family; `remuda.expr.registry` puts them together.

A function is given by its types and its two evaluations, for a row and for a column. Functions know nothing of
evaluation order, plans or SQL names.
"""
