"""Normalise rules for trees with a Project at the root."""

from __future__ import annotations

from dataclasses import replace

from remuda.expr import Column, Literal, Parameter, columns_of, fold, is_volatile, substitute, walk
from remuda.plan import logical
from remuda.plan.logical import Assignment, LogicalNode


def merge_projects(node: LogicalNode) -> LogicalNode | None:
    """Project(Project(x, b := e), c := f(b)) → Project(x, c := f(e)).

    Not Project(Project(x, b := e), c := f(b), d := g(b)), where e is more than a column: it would be computed twice.
    """
    if not (isinstance(node, logical.Project) and isinstance(node.input, logical.Project)):
        return None
    if _computes_twice(node, node.input):
        return None
    meanings = {assignment.column.id: assignment.expression for assignment in node.input.assignments}
    merged = tuple(
        Assignment(assignment.column, fold(substitute(assignment.expression, meanings)))
        for assignment in node.assignments
    )
    return logical.Project(node.input.input, merged)


def _computes_twice(outer: logical.Project, inner: logical.Project) -> bool:
    computed = {
        item.column.id for item in inner.assignments if not isinstance(item.expression, Column | Literal | Parameter)
    }
    seen: set[int] = set()
    for item in outer.assignments:
        for part in walk(item.expression):
            if isinstance(part, Column) and part.id in computed:
                if part.id in seen:
                    return True
                seen.add(part.id)
    return False


def remove_project(node: LogicalNode) -> LogicalNode | None:
    """Project(x, all columns of x unchanged and in order) → x."""
    if not isinstance(node, logical.Project) or not all(assignment.is_identity for assignment in node.assignments):
        return None
    return node.input if node.columns == node.input.columns else None  # type: ignore[return-value]


def merge_project_into_values(node: LogicalNode) -> LogicalNode | None:
    """Project(Values(rows), c := e) → Values(e over each row): constants stay constants.

    Not random(): what is written out in a query may be evaluated more than once.
    """
    if not (isinstance(node, logical.Project) and isinstance(node.input, logical.Values) and node.assignments):
        return None
    if any(is_volatile(assignment.expression) for assignment in node.assignments):
        return None
    rows = []
    for row in node.input.rows:
        meanings = {column.id: value for column, value in zip(node.input.columns, row, strict=True)}
        rows.append(tuple(fold(substitute(assignment.expression, meanings)) for assignment in node.assignments))
    return logical.Values(node.columns, tuple(rows))


def push_project_into_scan(node: LogicalNode) -> LogicalNode | None:
    """Project(Scan(m, columns), ...) → the same over a scan that delivers only the columns the projection names.

    At least one column stays, the narrowest, so that rows can be counted.
    """
    if not (isinstance(node, logical.Project) and isinstance(node.input, logical.Scan)):
        return None
    scan = node.input
    needed = columns_of(*(assignment.expression for assignment in node.assignments))
    kept = tuple(column for column in scan.columns if column.id in needed) or (narrowest(scan.columns),)
    if kept == scan.columns:
        is_reordering = node.assignments and all(assignment.is_identity for assignment in node.assignments)
        if not is_reordering or node.columns == scan.columns:
            return None
        # Only the order differs: the scan can deliver that itself.
        return logical.Scan(scan.map, node.columns, scan.filter)
    return logical.Project(logical.Scan(scan.map, kept, scan.filter), node.assignments)


def remove_renaming_below_root(node: LogicalNode) -> LogicalNode | None:
    """Root(Project(x, b := a)) → Root(x) that takes `a` for `b`: the root has its own names for results.

    Only where all of x is used, each column once: otherwise the projection makes the rows narrower that travel.
    """
    if not (isinstance(node, logical.Root) and isinstance(node.input, logical.Project)):
        return None
    project = node.input
    sources = {item.column.id: item.expression for item in project.assignments if isinstance(item.expression, Column)}
    used = {source.id for source in sources.values()}
    if not len(used) == len(project.assignments) == len(project.input.columns):
        return None
    collation = tuple(replace(key, column=sources[key.column].id) for key in node.collation)
    return replace(
        node, input=project.input, columns=tuple(sources[column.id] for column in node.columns), collation=collation
    )


def narrowest(columns: tuple[Column, ...]) -> Column:
    return min(columns, key=lambda column: column.type.byte_width)


# Normalise rules for trees with a Series at the root.


WRITTEN_OUT = 256
"""Series of so many values at most become rows of the plan: as tuples, which suit joins and results of few rows."""


def empty_series(node: LogicalNode) -> LogicalNode | None:
    """Series(x, 5 to 1) → no rows; also where an argument is NULL."""
    if isinstance(node, logical.Series) and node.call.known_count == 0:
        return logical.Values(node.columns, ())
    return None


def write_out_series(node: LogicalNode) -> LogicalNode | None:
    """Series(one row, 1 to 3) → Values(1, 2, 3), where the values are known and few.

    Not over several rows, nor where the one row has columns: those would be written out again for each value.
    """
    match node:
        case logical.Series(input=logical.Values(columns=(), rows=(_,)), call=call):
            count, values = call.known_count, call.known_values
            if count is None or values is None or count > WRITTEN_OUT:
                return None
            return logical.Values(node.columns, tuple((Literal(value, call.column.type),) for value in values))
        case _:
            return None
