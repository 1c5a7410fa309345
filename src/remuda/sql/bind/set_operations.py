"""UNION, INTERSECT and EXCEPT, of distinct rows or ALL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import column_twice, parsing_error, type_error
from remuda.expr import Call, Literal, coerce
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode
from remuda.plan.series import SeriesCall
from remuda.sql.bind.expression.literals import is_untyped_text
from remuda.sql.bind.expression.subqueries import relation_of
from remuda.sql.bind.scope import QueryLevel
from remuda.sql.parse.spans import span_of, unsupported
from remuda.types import BIGINT, BOOLEAN, NULL, VARCHAR, common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.expr import Column, Expression
    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType


def bind_set_operation(binding: BindContext, node: Any, level: QueryLevel, expected: Sequence[SqlType]) -> logical.Root:
    """Bind a set operation; the types of its columns are unified as the branches of CASE are."""
    by_name = bool(node.args.get("by_name"))
    if by_name and not isinstance(node, exp.Union):
        raise unsupported(node.expression, f"{_name(node)} BY NAME")
    parts = _parts(node)
    if by_name:
        queries = _matched_by_name(
            binding, [binding.bind_query(binding, part, _own(level), ()) for part in parts], parts
        )
    else:
        queries = _bind_parts(binding, node, parts, level, expected)
    names = queries[0].names
    types = _shared_types(queries, parts, node)
    relations = [_cast(binding, query, types) for query in queries]
    if isinstance(node, exp.Union):
        tree = _union(binding, relations)
        if node.args.get("distinct"):
            tree = logical.Aggregate(tree, tree.columns, ())
    else:
        kind = JoinKind.SEMI if isinstance(node, exp.Intersect) else JoinKind.ANTI
        tree = _matched(binding, kind, relations[0], relations[1], every=not node.args.get("distinct"))
    columns = tree.columns[: len(names)]
    return logical.Root(tree, columns, names)


def _name(node: Any) -> str:
    return type(node).__name__.upper()


def _parts(node: Any) -> list[Any]:
    """Return a chain of the same UNION as one list of parts; sqlglot nests it to the left, as deep as it is long."""
    parts = [node.expression]
    left = node.this
    while (
        isinstance(node, exp.Union)
        and isinstance(left, exp.Union)
        and bool(left.args.get("distinct")) == bool(node.args.get("distinct"))
        and all(left.args.get(part) is None for part in ("order", "limit", "offset", "with_", "by_name"))
    ):
        parts.append(left.expression)
        left = left.this
    return [_as_values(part) for part in (left, *reversed(parts))]


def _as_values(part: Any) -> Any:
    """VALUES as it is written: sqlglot makes of it a query of all columns of a table that it calls _values."""
    inner = part
    while isinstance(inner, exp.Subquery) and not inner.args.get("with_"):
        inner = inner.this
    if not isinstance(inner, exp.Select) or {name for name, value in inner.args.items() if value} != _MADE_OF_VALUES:
        return part
    rows = inner.args["from_"].this
    is_made = isinstance(rows, exp.Values) and rows.alias == "_values" and isinstance(inner.expressions[0], exp.Star)
    return exp.Values(expressions=rows.expressions) if is_made else part


_MADE_OF_VALUES = {"expressions", "from_"}


def _matched_by_name(binding: BindContext, queries: Sequence[logical.Root], parts: Sequence[Any]) -> list[logical.Root]:
    """Return every part with the columns of all (UNION BY NAME), NULL for those that it does not have."""
    types: dict[str, SqlType] = {}
    names: dict[str, str] = {}
    for query, part in zip(queries, parts, strict=True):
        folded = [name.casefold() for name in query.names]
        for ordinal, (name, column) in enumerate(zip(folded, query.columns, strict=True)):
            if name in folded[:ordinal]:
                message = f"UNION BY NAME of two columns called {query.names[ordinal]}"
                raise column_twice(message, span=_span_of_column(part, ordinal))
            names.setdefault(name, query.names[ordinal])
            types.setdefault(name, column.type)
    matched: list[logical.Root] = []
    for query in queries:
        own = dict(zip((name.casefold() for name in query.names), query.columns, strict=True))
        items = tuple(
            Assignment(own[name], own[name])
            if name in own
            else Assignment(binding.new_column(names[name], type_), Literal(None, type_))
            for name, type_ in types.items()
        )
        project = logical.Project(relation_of(query), items)
        matched.append(logical.Root(project, project.columns, tuple(names.values())))
    return matched


def _bind_parts(
    binding: BindContext, node: Any, parts: Sequence[Any], level: QueryLevel, expected: Sequence[SqlType]
) -> list[logical.Root]:
    """Bind the parts; a bare parameter, a text or NULL takes its column's type from the other parts."""
    unknown = [NULL] * len(expected) if not expected else list(expected)
    queries = [binding.bind_query(binding, part, _own(level), unknown) for part in parts]
    width = len(queries[0].columns)
    for query, part in zip(queries, parts, strict=True):
        if len(query.columns) != width:
            message = f"the parts of {_name(node)} have {width} and {len(query.columns)} columns"
            raise parsing_error(message, span=span_of(part))
    hints = [_hint(query, parts[ordinal]) for ordinal, query in enumerate(queries)]
    wanted = [_type_of_all([hint[column] for hint in hints]) for column in range(width)]
    return [
        binding.bind_query(binding, part, _own(level), wanted) if _is_told(query, hint, wanted) else query
        for part, query, hint in zip(parts, queries, hints, strict=True)
    ]


def _is_told(query: logical.Root, hint: Sequence[SqlType], wanted: Sequence[SqlType]) -> bool:
    """Test whether another part gives a column a type that its own values do not have."""
    return any(
        own == NULL and other not in {NULL, column.type}
        for own, other, column in zip(hint, wanted, query.columns, strict=True)
    )


def _type_of_all(types: Sequence[SqlType]) -> SqlType:
    """Return the common type of the typed parts; where there is none, the type of the first of them."""
    known = [type_ for type_ in types if type_ != NULL]
    shared: SqlType | None = NULL
    for type_ in known:
        shared = None if shared is None else common_type(shared, type_)
    return known[0] if shared is None else shared


def _own(level: QueryLevel) -> QueryLevel:
    return QueryLevel(level.outer, level.ctes, level.free)


def _hint(query: logical.Root, part: Any) -> list[SqlType]:
    """Return the types of the columns; NULL for a bare NULL, text or parameter."""
    while isinstance(part, exp.Subquery):
        part = part.this
    types = [column.type for column in query.columns]
    rows = [part.expressions] if isinstance(part, exp.Select) else []
    if isinstance(part, exp.Values):
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in part.expressions]
    for ordinal in range(len(types)):
        if rows and all(len(row) == len(types) and _is_untyped(row[ordinal]) for row in rows):
            types[ordinal] = NULL
    return types


def _is_untyped(node: Any) -> bool:
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.Null) or is_untyped_text(inner)


def _shared_types(queries: Sequence[logical.Root], parts: Sequence[Any], node: Any) -> list[SqlType]:
    shared = [column.type for column in queries[0].columns]
    for query, part in zip(queries[1:], parts[1:], strict=True):
        for ordinal, column in enumerate(query.columns):
            common = common_type(shared[ordinal], column.type)
            if common is None:
                types = f"{shared[ordinal]} in one part and {column.type} in another"
                message = f"column {ordinal + 1} of {_name(node)} is {types}"
                raise type_error(message, span=_span_of_column(part, ordinal))
            shared[ordinal] = common
    return [VARCHAR if type_ == NULL else type_ for type_ in shared]


def _span_of_column(part: Any, ordinal: int) -> Any:
    while isinstance(part, exp.Subquery):
        part = part.this
    written = part.expressions if isinstance(part, exp.Select) else []
    is_listed = len(written) > ordinal and not any(isinstance(each, exp.Star) for each in written)
    return span_of(written[ordinal] if is_listed else part)


def _cast(binding: BindContext, query: logical.Root, types: Sequence[SqlType]) -> LogicalNode:
    tree = relation_of(query)
    if [column.type for column in query.columns] == list(types):
        return tree
    return logical.Project(
        tree,
        tuple(
            Assignment(
                column if column.type == type_ else binding.new_column(column.name, type_, nullable=column.nullable),
                coerce(column, type_),
            )
            for column, type_ in zip(query.columns, types, strict=True)
        ),
    )


def _union(binding: BindContext, relations: Sequence[LogicalNode]) -> LogicalNode:
    columns = tuple(
        binding.new_column(column.name, column.type, nullable=any(part.columns[ordinal].nullable for part in relations))
        for ordinal, column in enumerate(relations[0].columns)
    )
    return logical.Union(tuple(relations), columns, tuple(part.columns for part in relations))


def _matched(
    binding: BindContext, kind: JoinKind, left: LogicalNode, right: LogicalNode, *, every: bool
) -> LogicalNode:
    """Return the rows that the other side has too, or has not, with NULL equal to NULL."""
    equalities = tuple(
        Call("is not distinct from", (one, other), BOOLEAN)
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    condition = equalities[0] if len(equalities) == 1 else Call("and", equalities, BOOLEAN)
    if every:
        return _matched_by_count(binding, kind, left, right, condition)
    return logical.Join(kind, logical.Aggregate(left, left.columns, ()), right, condition)


def _matched_by_count(
    binding: BindContext, kind: JoinKind, left: LogicalNode, right: LogicalNode, condition: Call
) -> LogicalNode:
    """INTERSECT ALL and EXCEPT ALL: equal rows of either side are counted, and come as often as the counts say.

    Counts, unlike rows that are numbered, can be made of counts below a join.
    """
    counted, count = _counted(binding, left)
    other, other_count = _counted(binding, right)
    joined = logical.Join(JoinKind.INNER if kind is JoinKind.SEMI else JoinKind.LEFT, counted, other, condition)
    one = Literal(1, BIGINT)
    copies: Expression
    if kind is JoinKind.SEMI:
        copies = Call("least", (count, other_count), BIGINT)
    else:
        copies = Call("-", (count, Call("coalesce", (other_count, Literal(0, BIGINT)), BIGINT)), BIGINT)
    copy = SeriesCall(binding.new_column("copy", BIGINT, nullable=False), one, copies, one, True, expected=1.0)
    return logical.Project(logical.Series(joined, copy), tuple(Assignment(column, column) for column in left.columns))


def _counted(binding: BindContext, tree: LogicalNode) -> tuple[logical.Aggregate, Column]:
    """Return the different rows with their counts."""
    count = binding.new_column("count", BIGINT, nullable=False)
    return logical.Aggregate(tree, tree.columns, (AggregateCall(count, "count"),)), count
