"""WITH: queries under a name. Each reference binds the query anew, as if it were written there; RECURSIVE is a loop."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import SqlError, alias_twice, bad_definition, bad_recursion, parsing_error, type_error
from remuda.expr import coerce
from remuda.plan import logical
from remuda.plan.logical import Assignment
from remuda.sql.bind.expression.subqueries import NamedRelation, named_relation, relation_of
from remuda.sql.bind.scope import QueryLevel
from remuda.sql.parse.spans import refuse_unknown_parts, span_of
from remuda.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ViewDefinition
    from remuda.errors import Span
    from remuda.sql.bind.bind_context import BindContext

# Views: a stored query in the place of its name, bound in the schemas that it was created in.


def bind_view(binding: BindContext, view: ViewDefinition, span: Span | None) -> NamedRelation:
    """Bind the query of a view; an error in its text (a map is gone) is shown where the statement names the view."""
    if view in binding.within_views:
        raise bad_recursion(f"the view {view.name} is made of itself", span=span)
    binding.count_inlined(span)
    binding.views[view.id] = view
    path = binding.search_path
    binding.search_path = view.search_path
    binding.within_views.append(view)
    try:
        query = binding.bind_query(binding, binding.parse_view(view, span), QueryLevel(), ())
    except SqlError as error:
        raise error.restated(f"in the view {view.name}: {error.message}", span) from error
    finally:
        binding.within_views.pop()
        binding.search_path = path
    titles = [*view.columns, *query.names[len(view.columns) :]]
    if len(titles) > len(query.columns):
        message = f"the view {view.name} names {len(view.columns)} columns, its query has {len(query.columns)} now"
        raise bad_definition(message, span=span)
    return named_relation(binding, query, titles)


_PARTS = frozenset({"this", "alias", "materialized"})


@dataclass(slots=True)
class CommonTable:
    """A query named by WITH, and what it could see where it stands."""

    name: str
    node: Any
    columns: tuple[str, ...]
    level: QueryLevel
    span: Span | None
    recursive: bool = False
    working: list[logical.WorkingTable] = field(default_factory=list)
    """While the step of a recursive query is bound: the table of the rows found last."""
    used: bool = False
    read_in_step: int = 0


def with_ctes(node: Any, level: QueryLevel) -> tuple[QueryLevel, list[CommonTable]]:
    """Return the level within a query that begins with WITH."""
    clause = node.args.get("with_")
    if clause is None:
        return level, []
    refuse_unknown_parts(clause, frozenset({"expressions", "recursive"}))
    ctes = dict(level.ctes)
    defined: list[CommonTable] = []
    for entry in clause.expressions:
        refuse_unknown_parts(entry, _PARTS)
        alias = entry.args["alias"]
        span = span_of(alias.this)
        name = alias.name
        if any(name.casefold() == other.name.casefold() for other in defined):
            raise alias_twice(f"WITH names {name} twice", span=span)
        recursive = bool(clause.args.get("recursive")) and _names(entry.this, name)
        inner = QueryLevel(level.outer, dict(ctes), level.free)
        common = CommonTable(name, entry.this, _column_names(alias), inner, span, recursive)
        if recursive:
            inner.ctes = {**ctes, name.casefold(): common}
        ctes[name.casefold()] = common
        defined.append(common)
    return QueryLevel(level.outer, ctes, level.free), defined


def check_unused(binding: BindContext, defined: Sequence[CommonTable]) -> None:
    """Bind a query that no other query reads: it must be right, and gives its parameters their types."""
    for common in defined:
        if not common.used:
            bind_reference(binding, common, common.level)


def _column_names(alias: Any) -> tuple[str, ...]:
    names = alias.args.get("columns") or []
    for name in names:
        if not isinstance(name, exp.Identifier):
            raise parsing_error("a list of names after WITH has no types", span=span_of(name))
    return tuple(name.name for name in names)


def _names(node: Any, name: str) -> bool:
    return any(not table.db and table.name.casefold() == name.casefold() for table in node.find_all(exp.Table))


def bind_reference(binding: BindContext, common: CommonTable, level: QueryLevel) -> NamedRelation:
    """Bind a reference to a CTE: its query, inlined."""
    if common.working:
        common.read_in_step += 1
        return _read_working_table(binding, common)
    binding.count_inlined(common.span)
    common.used = True
    own = QueryLevel(common.level.outer, common.level.ctes)
    bound = _bind_recursive(binding, common, own) if common.recursive else _bind_body(binding, common, own)
    for each in level.chain():
        each.free.update(own.free)
        if each.outer is common.level.outer:
            break
    return bound


def _bind_body(binding: BindContext, common: CommonTable, level: QueryLevel) -> NamedRelation:
    query = binding.bind_query(binding, common.node, level, ())
    names = _result_names(common, query.names)
    return named_relation(binding, query, names)


def _result_names(common: CommonTable, names: Sequence[str]) -> list[str]:
    if len(common.columns) > len(names):
        message = f"{common.name} has {len(names)} columns, {len(common.columns)} names are given"
        raise bad_definition(message, span=common.span)
    return [*common.columns, *names[len(common.columns) :]]


def _bind_recursive(binding: BindContext, common: CommonTable, level: QueryLevel) -> NamedRelation:
    """Bind `first UNION [ALL] step`, where the step names the table itself."""
    node = common.node
    while isinstance(node, exp.Subquery):
        node = node.this
    if not isinstance(node, exp.Union):
        raise bad_recursion(f"{common.name} must be: first part UNION [ALL] recursive part", span=common.span)
    for part, word in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if node.args.get(part) is not None:
            raise bad_recursion(f"{word} is not allowed in a recursive query", span=span_of(node.args[part]))
    if _names(node.this, common.name):
        raise bad_recursion(f"{common.name} is named in its own first part", span=_span_named(node.this, common.name))
    first = binding.bind_query(binding, node.this, level, ())
    names = _result_names(common, first.names)
    binding.tables += 1
    number = binding.tables
    columns = tuple(binding.new_column(name, column.type) for name, column in zip(names, first.columns, strict=True))
    common.working.append(logical.WorkingTable(number, columns))
    common.read_in_step = 0
    try:
        types = [column.type for column in columns]
        step = binding.bind_query(binding, node.expression, level, types)
    finally:
        common.working.pop()
    if common.read_in_step != 1:
        raise bad_recursion(
            f"the recursive part must name {common.name} once", span=_span_named(node.expression, common.name)
        )
    if len(step.columns) != len(columns):
        message = f"the parts of UNION have {len(columns)} and {len(step.columns)} columns"
        raise parsing_error(message, span=span_of(node.expression))
    sources = []
    assignments = []
    for column, delivered in zip(columns, step.columns, strict=True):
        if common_type(column.type, delivered.type) != column.type:
            message = f"{column.name} is {column.type} in the first part and {delivered.type} in the recursive one"
            raise type_error(message, span=span_of(node.expression), suggestion="Cast it in the first part.")
        source = binding.new_column(column.name, column.type)
        sources.append(source)
        assignments.append(Assignment(source, coerce(delivered, column.type)))
    results = tuple(binding.new_column(column.name, column.type) for column in columns)
    tree = logical.Recursive(
        (relation_of(first), logical.Project(relation_of(step), tuple(assignments))),
        results,
        (first.columns, tuple(sources)),
        number,
        distinct=bool(node.args.get("distinct")),
    )
    return NamedRelation(tree, results)


def _read_working_table(binding: BindContext, common: CommonTable) -> NamedRelation:
    table = common.working[-1]
    columns = tuple(binding.new_column(column.name, column.type) for column in table.columns)
    return NamedRelation(logical.WorkingTable(table.table, columns), columns)


def _span_named(node: Any, name: str) -> Span | None:
    table = next((each for each in node.find_all(exp.Table) if each.name.casefold() == name.casefold()), node)
    return span_of(table)
