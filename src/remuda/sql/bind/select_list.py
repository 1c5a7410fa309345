"""The select list, and how ORDER BY and GROUP BY name its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import ambiguous_column, bad_reference, column_twice, parsing_error, unknown_column
from remuda.expr import Column, Expression, Parameter, coerce
from remuda.sql.bind.expression.expression import Alias
from remuda.sql.bind.order_by import OrderEntry, order_entry
from remuda.sql.bind.result_names import result_name
from remuda.sql.bind.scope import table_of
from remuda.sql.parse.spans import refuse_unknown_parts, span_of
from remuda.types import NULL, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An entry of the select list: what it computes, and what the result calls it."""

    expression: Expression
    name: str


def bind_items(binder: ExpressionBinder, select: Any, expected: Sequence[SqlType]) -> list[SelectItem]:
    """Bind the entries of the select list; each may name those before it by their aliases."""
    items: list[SelectItem] = []
    aliases = binder.aliases
    binder.aliases = {}
    for node in select.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            items.extend(_bind_star(binder, node))
            continue
        inner = node.this if isinstance(node, exp.Alias) else node
        wanted = expected[len(items)] if len(items) < len(expected) else None
        bound = binder.bind(inner, wanted)
        name = node.alias if isinstance(node, exp.Alias) else result_name(inner, bound)
        items.append(SelectItem(_typed(bound, wanted), name))
        if isinstance(node, exp.Alias) and name.casefold() not in binder.aliases:
            binder.aliases = {**binder.aliases, name.casefold(): aliases[name.casefold()]}
    binder.aliases = aliases
    return items


def aliases_of(select: Any) -> dict[str, Alias]:
    """Return the aliases of the select list by folded name; of two with the same name the first."""
    aliases: dict[str, Alias] = {}
    for node in select.expressions:
        if isinstance(node, exp.Alias):
            aliases.setdefault(node.alias.casefold(), Alias(node.this, dict(aliases)))
    return aliases


def _bind_star(binder: ExpressionBinder, node: Any) -> list[SelectItem]:
    star = node.this if isinstance(node, exp.Column) else node
    table = table_of(node) if isinstance(node, exp.Column) else None
    refuse_unknown_parts(node, frozenset({"this", "table", "db", "except_", "replace", "rename"}))
    refuse_unknown_parts(star, frozenset({"except_", "replace", "rename"}))
    span = span_of(node)
    columns = binder.scope.star(table, span)
    for excluded in star.args.get("except_") or []:
        named = {column.id for column in _columns_named(binder, excluded, columns)}
        columns = [column for column in columns if column.id not in named]
    if not columns:
        raise parsing_error("* has no columns here", span=span)
    if span is not None:
        binder.binding.spans.update(dict.fromkeys((column.id for column in columns), span))
    replaced = {id_: binder.bind(entry.this) for id_, entry in _changed(binder, star, "replace", columns).items()}
    renamed = {id_: entry.alias for id_, entry in _changed(binder, star, "rename", columns).items()}
    return [
        SelectItem(_typed(replaced.get(column.id, column), None), renamed.get(column.id, column.name))
        for column in columns
    ]


def _columns_named(binder: ExpressionBinder, node: Any, columns: Sequence[Column]) -> list[Column]:
    """Return the columns of a `*` that `name` or `table.name` means in EXCLUDE, REPLACE and RENAME."""
    table = table_of(node) if isinstance(node, exp.Column) else None
    of_table = None if table is None else {column.id for column in binder.scope.star(table, span_of(node))}
    found = [
        column
        for column in columns
        if column.name.casefold() == node.name.casefold() and (of_table is None or column.id in of_table)
    ]
    if not found:
        written = node.name if table is None else f"{node.table}.{node.name}"
        raise unknown_column(f"* has no column {written}", span=span_of(node))
    return found


def _changed(binder: ExpressionBinder, star: Any, part: str, columns: Sequence[Column]) -> dict[int, Any]:
    """Return the entries of `* REPLACE (expression AS column)` or `* RENAME (column AS name)` by column."""
    changed: dict[int, Any] = {}
    for entry in star.args.get(part) or []:
        if not isinstance(entry, exp.Alias) or (part == "rename" and not isinstance(entry.this, exp.Column)):
            what = "expression AS column" if part == "replace" else "column AS name"
            raise parsing_error(f"{part.upper()} takes {what}", span=span_of(entry))
        named = entry.args["alias"] if part == "replace" else entry.this
        for column in _columns_named(binder, named, columns):
            if column.id in changed:
                raise column_twice(f"{part.upper()} names {named.name} twice", span=span_of(named))
            changed[column.id] = entry
    return changed


def bind_order(binder: ExpressionBinder, order: Any, items: list[SelectItem]) -> list[OrderEntry]:
    """ORDER BY entries: a position, a result column's name, or an expression; ALL is every result column in turn."""
    entries = [] if order is None else order.expressions
    if len(entries) == 1 and _is_all(entries[0].this):
        return [order_entry(entries[0], item.expression) for item in items]
    for node in entries:
        _refuse_ambiguous(node.this, items)
    return [order_entry(node, item_named(node.this, items) or binder.bind(node.this)) for node in entries]


def _refuse_ambiguous(node: Any, items: Sequence[SelectItem]) -> None:
    """Refuse `SELECT a AS x, b AS x ... ORDER BY x`, as PostgreSQL does."""
    if isinstance(node, exp.Column) and not node.table:
        named = {item.expression for item in items if item.name.casefold() == node.name.casefold()}
        if len(named) > 1:
            message = f"{node.name} is ambiguous: {len(named)} result columns have this name"
            raise ambiguous_column(message, span=span_of(node))


def _is_all(node: Any) -> bool:
    """Test whether a node is the word ALL, which sqlglot takes for the name of a column."""
    return (
        isinstance(node, exp.Column)
        and not node.table
        and node.name.upper() == "ALL"
        and not node.this.args.get("quoted")
    )


def item_named(node: Any, items: Sequence[SelectItem]) -> Expression | None:
    """Return the item that a position or a result column's name means, or None."""
    if isinstance(node, exp.Literal) and not node.is_string:
        ordinal = int(node.this) if node.this.isdigit() else 0
        if not 1 <= ordinal <= len(items):
            raise bad_reference(f"there is no result column number {node.this}", span=span_of(node))
        return items[ordinal - 1].expression
    if isinstance(node, exp.Column) and not node.table:
        named = [item.expression for item in items if item.name.casefold() == node.name.casefold()]
        return named[0] if named and all(expression == named[0] for expression in named) else None
    return None


def _typed(expression: Expression, expected: SqlType | None) -> Expression:
    """Give an untyped NULL column the expected type, else VARCHAR, as in PostgreSQL."""
    if expression.type != NULL or isinstance(expression, Parameter):
        return expression
    return coerce(expression, VARCHAR if expected is None or expected == NULL else expected)
