"""FROM: maps, views, sub-queries, VALUES and what WITH has named, joined as written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import alias_twice, bad_definition, parsing_error
from remuda.expr import Column, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode
from remuda.sql.bind.ctes import bind_reference, bind_view
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import named_relation
from remuda.sql.bind.relation.information_schema import bind_information
from remuda.sql.bind.relation.join_clause import bind_join, is_comma, join_kind
from remuda.sql.bind.relation.table_functions import bind_table_function, is_table_function
from remuda.sql.bind.relation.table_version import find_version
from remuda.sql.bind.relation.values_clause import one_row
from remuda.sql.bind.scope import QueryLevel, Scope, ScopeRelation, over_join
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.errors import Span
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.order_by import OrderEntry

_TABLE_PARTS = frozenset({"this", "db", "alias", "joins"})
_MAP_PARTS = _TABLE_PARTS | {"version"}
_WITH_SUBQUERY = (exp.Subquery, exp.Exists, exp.In, exp.Any, exp.All)
_ALIAS_PARTS = frozenset({"this", "columns"})
_RESERVED = frozenset(
    {
        *(
            "ALL",
            "AND",
            "ANY",
            "AS",
            "ASC",
            "CASE",
            "CAST",
            "CREATE",
            "CROSS",
            "DEFAULT",
            "DESC",
            "DISTINCT",
            "ELSE",
            "END",
        ),
        *(
            "EXCEPT",
            "FALSE",
            "FETCH",
            "FOR",
            "FROM",
            "FULL",
            "GROUP",
            "HAVING",
            "IN",
            "INNER",
            "INTERSECT",
            "INTO",
            "IS",
        ),
        *("JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER"),
        *("PRIMARY", "RETURNING", "RIGHT", "SELECT", "TABLE", "THEN", "TRUE", "UNION", "USING", "WHEN", "WHERE"),
        *("WINDOW", "WITH"),
    }
)


@dataclass(frozen=True, slots=True)
class Source:
    """Rows, and what may be named of them."""

    tree: LogicalNode
    relations: tuple[ScopeRelation, ...] = ()
    order: tuple[OrderEntry, ...] = ()
    """That of the one query in FROM, by which LIMIT cuts where there is no ORDER BY."""


def bind_from(binding: BindContext, node: Any, level: QueryLevel) -> Source:
    """Bind FROM of a query; without one there is a single row without columns."""
    source = node.args.get("from_")
    if source is None:
        return Source(one_row(binding, joined=node.find(*_WITH_SUBQUERY) is not None))
    return bind_sources(binding, [source.this, *(node.args.get("joins") or [])], level)


def bind_sources(binding: BindContext, entries: Sequence[Any], level: QueryLevel) -> Source:
    """Bind a table and the joins after it.

    A comma binds weaker: `a, b RIGHT JOIN c` is `a CROSS JOIN (b RIGHT JOIN c)`.
    """
    result: Source | None = None
    for group in _groups(entries):
        result = _bind_group(binding, group, level, result)
    assert result is not None, "there is a first table"
    return result


def _groups(entries: Sequence[Any]) -> list[list[Any]]:
    groups: list[list[Any]] = []
    for entry in entries:
        if not isinstance(entry, exp.Join) or is_comma(entry):
            groups.append([])
        groups[-1].append(entry)
    return groups


def _bind_group(binding: BindContext, group: Sequence[Any], level: QueryLevel, before: Source | None) -> Source:
    """Bind one part between commas. LATERAL in it may name relations of the parts before."""
    known = () if before is None else before.relations
    separate = before is not None and any(_keeps_right(entry) for entry in group)
    first = group[0].this if isinstance(group[0], exp.Join) else group[0]
    source = _bind_source(binding, first, level, known, None if separate else before)
    own = source.relations
    tree = source.tree
    for join in group[1:]:
        visible = (*(() if separate else known), *own)
        beside = _lateral_level(binding, join.this, level, visible)
        right = bind_relation(binding, join.this, beside)
        lateral = _is_lateral(join.this, beside, visible)
        tree, own = bind_join(binding, join, level, tree, own, right.tree, right.relations, lateral=lateral)
        _refuse_twice(own, join)
    if separate:
        assert before is not None
        may_depend = isinstance(first, exp.Lateral) or is_table_function(first)
        tree = (logical.Apply if may_depend else logical.Join)(JoinKind.INNER, before.tree, tree)
    relations = (*known, *own)
    _refuse_twice(relations, group[0])
    order = source.order if before is None and len(group) == 1 else ()
    return Source(tree, over_join(relations, tree), order)


def _keeps_right(entry: Any) -> bool:
    return isinstance(entry, exp.Join) and join_kind(entry).keeps_right


def _bind_source(
    binding: BindContext, node: Any, level: QueryLevel, known: tuple[ScopeRelation, ...], before: Source | None
) -> Source:
    """Bind the first entry of a part, joined with the parts before it."""
    beside = _lateral_level(binding, node, level, known)
    right = bind_relation(binding, node, beside)
    if before is None:
        return right
    join = logical.Apply if _is_lateral(node, beside, known) else logical.Join
    joined = join(JoinKind.INNER, before.tree, right.tree)
    return replace(right, tree=joined)


def _lateral_level(binding: BindContext, node: Any, level: QueryLevel, known: tuple[ScopeRelation, ...]) -> QueryLevel:
    """Return the level that an entry sees; a function sees the entries beside it without the word LATERAL too."""
    if not isinstance(node, exp.Lateral) and not is_table_function(node):
        return level
    outer = ExpressionBinder(binding, Scope(known, level), clause="FROM")
    return QueryLevel(outer, level.ctes)


def _is_lateral(node: Any, level: QueryLevel, known: tuple[ScopeRelation, ...]) -> bool:
    """Test whether an entry is evaluated for each row beside it; a function only where it names one of the columns."""
    if is_table_function(node):
        return any(column.id in level.free for relation in known for column in relation.columns)
    return isinstance(node, exp.Lateral)


def bind_relation(binding: BindContext, node: Any, level: QueryLevel) -> Source:
    """Bind one entry of FROM, with its alias."""
    match node:
        case exp.Table() | exp.Lateral() if is_table_function(node):
            return _bind_function(binding, node, level)
        case exp.Table():
            return _bind_table_entry(binding, node, level)
        case exp.Lateral():
            refuse_unknown_parts(node, frozenset({"this", "alias"}))
            return _bind_query(binding, node.this, node, level)
        case exp.Subquery() if isinstance(node.this, exp.Table | exp.Subquery) and _is_join(node.this):
            return _bind_parentheses(binding, node, level)
        case exp.Subquery():
            refuse_unknown_parts(node, frozenset({"this", "alias", "order", "limit", "offset", "with_", "joins"}))
            if node.args.get("joins"):
                return bind_sources(binding, [_without_joins(node), *node.args["joins"]], level)
            return _bind_query(binding, node, node, level)
        case exp.Values():
            return _bind_query(binding, node, node, level)
        case _:
            raise unsupported(node, f"{type(node).__name__.upper()} in FROM")


def _is_join(node: Any) -> bool:
    return isinstance(node, exp.Table) or bool(node.args.get("joins"))


def _without_joins(node: Any) -> Any:
    bare = node.copy()
    bare.set("joins", None)
    return bare


def _bind_parentheses(binding: BindContext, node: Any, level: QueryLevel) -> Source:
    """Bind `(a JOIN b ON ...)`: an alias after it hides the names within."""
    inner = node.this
    source = bind_sources(binding, [_without_joins(inner), *(inner.args.get("joins") or [])], level)
    if node.args.get("alias") is None:
        return source
    return _relation(binding, node, source.tree, tuple(Scope(source.relations, level).star(None)), "")


def _bind_table_entry(binding: BindContext, node: Any, level: QueryLevel) -> Source:
    if node.args.get("joins"):
        return bind_sources(binding, [_without_joins(node), *node.args["joins"]], level)
    refuse_unknown_parts(node, _MAP_PARTS)
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(node, "this in FROM")
    if node.args.get("version") is not None:
        return _named(binding, node, _bind_map(binding, node, find_version(binding, node)))
    if not node.db:
        common = level.ctes.get(node.name.casefold())
        if common is not None:
            tree, columns, order = bind_reference(binding, common, level)
            return _relation(binding, node, tree, columns, common.name, order=order)
    information = bind_information(binding, node.name, node.db or None, span_of(node))
    if information is not None:
        return _relation(binding, node, information, information.columns, node.name, node.db)
    view = binding.find_view(node.name, node.db or None)
    if view is not None:
        tree, columns, order = bind_view(binding, view, span_of(node))
        return _relation(binding, node, tree, columns, view.name, view.schema, order)
    return _named(binding, node, _bind_map(binding, node))


def bind_map_entry(binding: BindContext, node: Any) -> Source:
    """Bind the map that UPDATE or DELETE names."""
    refuse_unknown_parts(node, frozenset({"this", "db", "alias"}))
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(node, "a function in FROM")
    binding.find_target(node.name, node.db or None, span_of(node))
    if node.args.get("alias") is not None:
        refuse_unknown_parts(node.args["alias"], frozenset({"this"}))
    return _named(binding, node, _bind_map(binding, node))


def _bind_map(binding: BindContext, node: Any, definition: MapDefinition | None = None) -> Source:
    definition = definition or binding.find_map(node.name, node.db or None, span_of(node))
    columns = tuple(binding.column_of(column) for column in definition.columns)
    hidden = frozenset(
        column.id for column, declared in zip(columns, definition.columns, strict=True) if declared.hidden
    )
    key = tuple(columns[position] for position in definition.positions(definition.key))
    relation = ScopeRelation(definition.name, columns, hidden, key, schema=definition.schema)
    return Source(logical.Scan(definition, columns), (relation,))


def _bind_function(binding: BindContext, node: Any, level: QueryLevel) -> Source:
    """Bind `function(...) AS alias (column)`. As in PostgreSQL an alias alone is the name of the column too."""
    refuse_unknown_parts(node, _TABLE_PARTS)
    tree, column, name = bind_table_function(binding, node.this, level)
    alias = node.args.get("alias")
    called = name if alias is None or alias.args.get("columns") else alias.name
    renamed = binding.new_column(called, column.type, nullable=column.nullable)
    project = logical.Project(tree, (Assignment(renamed, column),))
    return _relation(binding, node, project, project.columns, name)


def _bind_query(binding: BindContext, query: Any, node: Any, level: QueryLevel) -> Source:
    """Bind a query in FROM as a relation; its columns have the names of its result."""
    from_outer = QueryLevel(level.outer, level.ctes, level.free)
    inner = binding.bind_query(binding, query, from_outer, ())
    tree, columns, order = named_relation(binding, inner, inner.names)
    return _relation(binding, node, tree, columns, "", order=order)


def _relation(
    binding: BindContext,
    node: Any,
    tree: LogicalNode,
    columns: tuple[Column, ...],
    name: str,
    schema: str | None = None,
    order: tuple[OrderEntry, ...] = (),
) -> Source:
    return _named(binding, node, Source(tree, (ScopeRelation(name, columns, schema=schema),), order))


def _named(binding: BindContext, node: Any, source: Source) -> Source:
    """Apply `AS alias (a, b)`: another name for the relation, and for its first columns."""
    alias = node.args.get("alias")
    if alias is None:
        return source
    refuse_unknown_parts(alias, _ALIAS_PARTS)
    relation = source.relations[0]
    if alias.name:
        _refuse_reserved(alias.this)
        relation = replace(relation, alias=alias.name, schema=None, hides=relation.alias)
    names = alias.args.get("columns") or []
    if names and not alias.name:
        raise parsing_error("names of columns need an alias before them", span=span_of(names[0]))
    for name in names:
        if not isinstance(name, exp.Identifier):
            raise parsing_error("a list of names after an alias has no types", span=span_of(name))
    if not names:
        return Source(source.tree, (relation,), source.order)
    visible = [column for column in relation.columns if column.id not in relation.hidden]
    if len(names) > len(visible):
        span = span_of(names[len(visible)])
        raise bad_definition(f"{relation.alias} has {len(visible)} columns, {len(names)} names are given", span=span)
    given = {column.id: name.name for column, name in zip(visible, names, strict=False)}
    renamed = {
        column.id: binding.new_column(given.get(column.id, column.name), column.type, nullable=column.nullable)
        for column in relation.columns
    }
    by = (entry.expression for entry in source.order)
    ordered = tuple(column for column in by if isinstance(column, Column) and column.id not in renamed)
    items = (Assignment(renamed[column.id], column) for column in relation.columns)
    project = logical.Project(source.tree, (*items, *(Assignment(column, column) for column in ordered)))
    hidden = frozenset(renamed[id_].id for id_ in relation.hidden)
    columns, key = tuple(renamed.values()), tuple(renamed[column.id] for column in relation.key)
    order = tuple(replace(entry, expression=substitute(entry.expression, renamed)) for entry in source.order)
    return Source(project, (ScopeRelation(relation.alias, columns, hidden, key),), order)


def _refuse_reserved(name: Any) -> None:
    """Refuse an incomplete clause that sqlglot takes for an alias: `FROM orders ORDER`, `FROM orders GROUP`."""
    if not name.args.get("quoted") and name.name.upper() in _RESERVED:
        raise parsing_error(f"{name.name!r} is not expected here", span=span_of(name))


def _refuse_twice(relations: Sequence[ScopeRelation], node: Any) -> None:
    seen: set[str] = set()
    for relation in relations:
        folded = relation.alias.casefold()
        if folded in seen:
            raise alias_twice(
                f"the table {relation.alias} is there twice: give it an alias", span=_span_of_joined(node)
            )
        if folded:
            seen.add(folded)


def _span_of_joined(node: Any) -> Span | None:
    return span_of(node.this if isinstance(node, exp.Join) else node)
