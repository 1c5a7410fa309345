"""The rules that turn plans into better or more concrete ones; a file for each root operator.

*Normalise* rules (`filter`, `project`, `sort`, `empty`, `trim`) rewrite logical trees in ways that are always better.
*Implement* rules (`implement_*`) say how a logical operator can be done and what it needs of its inputs; the optimizer
chooses among them. A rule returns None where it does not apply and changes nothing in place. Rules know neither the
memo nor costs.
"""
