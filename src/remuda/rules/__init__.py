"""The rules that turn plans into better or more concrete ones; a file for each root operator.

The *rewrite* comes first: `decorrelate` turns every sub-query into a join (`one_row`, `pull_up` and `push_domain` are
its ways), `trim` drops unused columns. *Normalise* rules (`filter`, `filter_join`, `join`, `join_inference`,
`union`, `project`, `aggregate`, `sort`, `limit`, `empty`) rewrite logical trees in ways that are always better;
`normalize` lists and applies them. What can be derived from a tree is in `properties`, what a predicate does with NULL
in `nulls`, simpler forms of predicates in `conditions`.

*Explore* rules (`explore`, `explore_aggregate`, `aggregate_below_join`) give other trees, better or not. *Implement*
rules (`implement_*`) say how a logical operator can be done and what it needs of its inputs; the optimizer chooses
among them. A rule returns None where it does not apply and changes nothing in place. Rules know neither the memo nor
costs.

Conditions keep their written order among themselves: `b <> 0 AND 10 / b > 1` asks the second where the first holds. A
condition on its way down to the scan of its columns may still come before one on another relation.
"""
