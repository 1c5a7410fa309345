"""INSERT ... ON CONFLICT: what becomes of rows whose key is there already.

The rows are joined with the map by its key, in the same statement: no other one writes to the map meanwhile.
`INSERT OR REPLACE` is SINK, `INSERT OR IGNORE` is ON CONFLICT DO NOTHING.

Of several new rows with one key SINK writes the last and DO NOTHING the first, by the ORDER BY of the query where it
has one. The rows are not kept in that order, which members and tasks would lose: each key's row is chosen before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import bad_reference, parsing_error, wrong_object
from remuda.expr import Call, Case, Column, Expression, Literal, conjunction
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode, Operation
from remuda.plan.traits import SortKey
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import attach
from remuda.sql.bind.functions.window_calls import numbered
from remuda.sql.bind.modify.assignments import bind_assignments
from remuda.sql.bind.scope import Scope, ScopeRelation
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.plan.traits import Collation
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.subqueries import Subquery
    from remuda.sql.bind.scope import QueryLevel

_PARTS = frozenset({"action", "expressions", "conflict_keys", "where"})
_EXCLUDED = "excluded"


def on_conflict(
    binding: BindContext,
    node: Any,
    definition: MapDefinition,
    rows: logical.Project,
    operation: Operation,
    level: QueryLevel,
    order: Collation,
) -> tuple[LogicalNode, Operation]:
    """Bind ON CONFLICT and return the complete rows to write, and how.

    `rows` has the map's columns in declared order, `node` is the INSERT.

    `order` is that of the query, by columns of the input of `rows`.
    """
    conflict, alternative = node.args.get("conflict"), node.args.get("alternative")
    if conflict is None and alternative is None:
        return (_last_only(binding, definition, rows, order) if operation is Operation.SINK else rows), operation
    if operation is Operation.SINK:
        raise parsing_error(
            "SINK replaces a row whose key is there: it has no conflict", span=span_of(conflict or node)
        )
    if alternative is not None:
        match str(alternative).upper():
            case "REPLACE":
                return _last_only(binding, definition, rows, order), Operation.SINK
            case "IGNORE":
                return _new_only(binding, definition, rows, order), Operation.INSERT
            case other:
                raise unsupported(node, f"INSERT OR {other}")
    if conflict.args.get("duplicate"):
        raise parsing_error("ON DUPLICATE KEY is written ON CONFLICT (key) DO UPDATE", span=span_of(conflict))
    if conflict.args.get("constraint") is not None:
        raise unsupported(conflict.args["constraint"], "ON CONSTRAINT")
    refuse_unknown_parts(conflict, _PARTS)
    action = conflict.args["action"].name.upper() if conflict.args.get("action") is not None else ""
    complete = not conflict.args.get("where") if action == "DO NOTHING" else bool(conflict.expressions)
    if action not in {"DO NOTHING", "DO UPDATE"} or not complete:
        raise parsing_error("ON CONFLICT takes DO NOTHING or DO UPDATE SET ... [WHERE ...]", span=span_of(conflict))
    _check_target(definition, conflict, needed=action == "DO UPDATE")
    if action == "DO NOTHING":
        return _new_only(binding, definition, rows, order), Operation.INSERT
    return _updated(binding, node, definition, rows, level), Operation.MERGE


def _check_target(definition: MapDefinition, conflict: Any, *, needed: bool) -> None:
    """Refuse an `ON CONFLICT (...)` that does not name the whole key: rows conflict only by their key."""
    given = [entry.name.casefold() for entry in conflict.args.get("conflict_keys") or []]
    if not given and not needed:
        return
    key = ", ".join(definition.key)
    if any(definition.column(name).hidden for name in definition.key):
        raise wrong_object(f"{definition.name} has no PRIMARY KEY: its rows cannot conflict", span=span_of(conflict))
    if sorted(given) != sorted(name.casefold() for name in definition.key):
        raise bad_reference(
            f"rows of {definition.name} conflict by their key: ON CONFLICT ({key})", span=span_of(conflict)
        )


def _new_only(binding: BindContext, definition: MapDefinition, rows: logical.Project, order: Collation) -> LogicalNode:
    """Without the rows whose key is in the map, and of those with one key only the first."""
    if any(column.hidden for column in definition.columns):
        return rows
    first = _first_of_each_key(binding, definition, rows, order)
    scan = logical.Scan(definition, tuple(binding.column_of(column) for column in definition.columns))
    joined = logical.Join(JoinKind.ANTI, first, scan, _same_key(definition, rows.columns, scan.columns))
    return logical.Project(joined, tuple(Assignment(column, column) for column in rows.columns))


def _last_only(binding: BindContext, definition: MapDefinition, rows: logical.Project, order: Collation) -> LogicalNode:
    """Keep the last of the order of the rows with one key; without an order keep all rows: then the last one wins."""
    if not order or any(column.hidden for column in definition.columns):
        return rows
    backwards = tuple(
        SortKey(key.column, descending=not key.descending, nulls_first=not key.nulls_first) for key in order
    )
    return _first_of_each_key(binding, definition, rows, backwards)


def _first_of_each_key(
    binding: BindContext, definition: MapDefinition, rows: logical.Project, order: Collation
) -> LogicalNode:
    source = rows.input.input if isinstance(rows.input, logical.Sort) else rows.input
    by = {key.column for key in order}
    ordering = tuple(Assignment(column, column) for column in source.columns if column.id in by)
    whole = logical.Project(source, (*rows.assignments, *ordering))
    key = tuple(rows.columns[position] for position in definition.positions(definition.key))
    tree, number = numbered(binding, whole, key, order)
    first = logical.Filter(tree, Call("=", (number, Literal(1, BIGINT)), BOOLEAN))
    return logical.Project(first, tuple(Assignment(column, column) for column in rows.columns))


def _updated(
    binding: BindContext, node: Any, definition: MapDefinition, rows: logical.Project, level: QueryLevel
) -> LogicalNode:
    """Return new rows as they are, and rows of existing keys as SET makes them of the old row and `excluded`."""
    conflict = node.args["conflict"]
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    scan = logical.Scan(definition, tuple(binding.column_of(column) for column in definition.columns))
    joined = logical.Join(JoinKind.LEFT, rows, scan, _same_key(definition, rows.columns, scan.columns))
    delivered = {column.id: column for column in joined.columns}
    there = tuple(delivered[column.id] for column in scan.columns)
    relation = ScopeRelation(target.alias or definition.name, there, schema=None if target.alias else definition.schema)
    scope = Scope((relation, ScopeRelation(_EXCLUDED, rows.columns)), level)
    subqueries: list[Subquery] = []
    binder = ExpressionBinder(binding, scope, clause="ON CONFLICT", subqueries=subqueries)
    assigned = bind_assignments(binder, conflict.expressions, definition, relation)
    is_new = Call("is null", (there[definition.positions(definition.key)[0]],), BOOLEAN)
    where = conflict.args.get("where")
    condition = None if where is None else Call("or", (is_new, binder.bind_condition(where.this)), BOOLEAN)
    tree: LogicalNode = attach(joined, subqueries)
    if condition is not None:
        tree = logical.Filter(tree, condition)
    return logical.Project(
        tree,
        tuple(
            Assignment(
                binding.new_column(new.name, new.type),
                new if new.name in definition.key else Case(((is_new, new),), assigned.get(old.id, old), new.type),
            )
            for new, old in zip(rows.columns, there, strict=True)
        ),
    )


def _same_key(definition: MapDefinition, left: tuple[Column, ...], right: tuple[Column, ...]) -> Expression | None:
    ordinals = definition.positions(definition.key)
    return conjunction(Call("=", (left[ordinal], right[ordinal]), BOOLEAN) for ordinal in ordinals)
