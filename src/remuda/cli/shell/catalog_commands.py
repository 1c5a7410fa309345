r"""What there is: the commands `\d`, `\d+`, `\dt`, `\di`, `\dv`, `\l` and `\schema`."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda.cli.output import render
from remuda.cli.statement_text import quoted
from remuda.dataclass import dataclass
from remuda.errors import RemudaError, nearest
from remuda.presentation.text_table import as_table, counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.cli.shell.shell import Shell

_OF_ONE = "table_schema = :schema AND table_name = :name"


@dataclass(frozen=True, slots=True)
class _Relation:
    """A map or a view."""

    schema: str
    name: str
    is_view: bool

    @property
    def title(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    @property
    def written(self) -> str:
        """The name as SQL takes it."""
        return quoted(self.name) if self.schema == "public" else f"{quoted(self.schema)}.{quoted(self.name)}"


def describe(shell: Shell, name: str, _statement: str) -> None:
    """Print the maps and views, or the columns, the key and the indexes of one."""
    if name:
        _print(shell, _describe_one(shell, _find(shell, name)))
        return
    rows = {(row.schema, row.name): row.rows for row in shell.session.sql("SHOW TABLES")}
    listed = [
        (each.title, "view" if each.is_view else "map", rows.get((each.schema, each.name)))
        for each in _relations(shell)
    ]
    _list(shell, ["name", "kind", "rows"], listed, "There are no maps and no views yet. \\h CREATE TABLE says how.")


def describe_more(shell: Shell, name: str, _statement: str) -> None:
    """Print more about the maps and views, or about one."""
    shown = {(row.schema, row.name): row for row in shell.session.sql("SHOW TABLES")}
    if not name:
        indexes: dict[str, list[str]] = {}
        for row in shell.session.sql("SHOW INDEXES"):
            indexes.setdefault(row.map, []).append(row.name)
        listed = []
        for each in _relations(shell):
            found = shown.get((each.schema, each.name))
            facts = (None,) * 4 if found is None else (found.rows, found.key, found.partitioned_by, found.replicated)
            listed.append(
                (each.title, "view" if each.is_view else "map", *facts, ", ".join(indexes.get(each.name, [])))
            )
        names = ["name", "kind", "rows", "key", "partitioned by", "replicated", "indexes"]
        _list(shell, names, listed, "There are no maps and no views yet.")
        return
    relation = _find(shell, name)
    lines = [_describe_one(shell, relation)]
    if relation.is_view:
        lines.append(f"query: {_view_query(shell, relation)}")
    else:
        row = shown[relation.schema, relation.name]
        replicated = "replicated to every member" if row.replicated else f"partitioned by {row.partitioned_by}"
        lines.append(f"{counted(row.rows, 'row')}, {replicated}")
    _print(shell, "\n".join(lines))


def tables(shell: Shell, pattern: str, _statement: str) -> None:
    names = ["name", "rows", "key", "partitioned by", "replicated"]
    rows = [
        (_Relation(row.schema, row.name, is_view=False).title, row.rows, row.key, row.partitioned_by, row.replicated)
        for row in shell.session.sql("SHOW TABLES")
        if _matches(row.name, pattern)
    ]
    _list(shell, names, rows, "There are no such maps." if pattern else "There are no maps yet.")


def indexes(shell: Shell, pattern: str, _statement: str) -> None:
    rows = [row for row in shell.session.sql("SHOW INDEXES") if _matches(row.name, pattern)]
    _list(shell, ["map", "name", "type", "columns"], rows, "There are no such indexes." if pattern else "No indexes.")


def views(shell: Shell, pattern: str, _statement: str) -> None:
    rows = [
        (_Relation(row.schema, row.name, is_view=True).title, row["query"])
        for row in shell.session.sql("SHOW VIEWS")
        if _matches(row.name, pattern)
    ]
    _list(shell, ["name", "query"], rows, "There are no such views." if pattern else "There are no views yet.")


def folder(shell: Shell, _argument: str, _statement: str) -> None:
    """Print where the maps are, how many there are and what they take up."""
    maps = shell.session.sql("SHOW TABLES").fetchall()
    path = Path(shell.place).expanduser()
    size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file()) if path.is_dir() else None
    row = (shell.place, len(maps), sum(each.rows for each in maps), None if size is None else _bytes(size))
    _list(shell, ["folder", "maps", "rows", "size"], [row], "")


def schema(shell: Shell, name: str, _statement: str) -> None:
    """Print the statements that create one map or view, or all of them."""
    relations = [_find(shell, name)] if name else _relations(shell)
    _print(
        shell, "\n".join(_create(shell, relation) for relation in relations) or "There are no maps and no views yet."
    )


def _relations(shell: Shell) -> list[_Relation]:
    found = shell.session.sql(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables"
        " WHERE table_schema <> 'information_schema' ORDER BY table_schema <> 'public', table_schema, table_name"
    )
    return [_Relation(schema, name, kind == "VIEW") for schema, name, kind in found]


def _find(shell: Shell, name: str) -> _Relation:
    """Return the map or view of that name, which may be quoted and may have its schema before it."""
    relations = _relations(shell)
    written = name.replace('"', "").casefold()
    for relation in relations:
        if written in {relation.name.casefold(), f"{relation.schema}.{relation.name}".casefold()}:
            return relation
    hint = nearest(name, [relation.name for relation in relations])
    raise RemudaError(
        f"There is no map {name}. " + (f'Did you mean "{hint}"?' if hint else "\\d lists them."), sqlstate="42P01"
    )


def _describe_one(shell: Shell, relation: _Relation) -> str:
    key = _key(shell, relation)
    columns = [
        (column, type_, "" if nullable else "NOT NULL", "key" if column in key else "")
        for column, type_, nullable in _columns(shell, relation)
    ]
    table = as_table(["column", "type", "", ""], columns).rpartition("\n")[0]
    indexes = [printable(f"  index {name} {kind} ({columns})") for name, kind, columns in _indexes(shell, relation)]
    return "\n".join([table, *indexes])


def _columns(shell: Shell, relation: _Relation) -> list[tuple[str, str, bool]]:
    """Return name, type and nullability of each column."""
    found = shell.session.sql(
        "SELECT column_name, data_type, is_nullable, character_maximum_length FROM information_schema.columns"
        f" WHERE {_OF_ONE} ORDER BY ordinal_position",
        schema=relation.schema,
        name=relation.name,
    )
    return [
        (name, type_ if length is None else f"{type_}({length})", nullable == "YES")
        for name, type_, nullable, length in found
    ]


def _key(shell: Shell, relation: _Relation) -> list[str]:
    found = shell.session.sql(
        f"SELECT column_name FROM information_schema.key_column_usage WHERE {_OF_ONE} ORDER BY ordinal_position",
        schema=relation.schema,
        name=relation.name,
    )
    return [name for (name,) in found]


def _indexes(shell: Shell, relation: _Relation) -> list[tuple[str, str, str]]:
    if relation.is_view:
        return []
    found = shell.session.sql("SHOW INDEXES")
    return [(row.name, row.type, row.columns) for row in found if row.map == relation.name]


def _view_query(shell: Shell, relation: _Relation) -> str:
    found = {(row.schema, row.name): row["query"] for row in shell.session.sql("SHOW VIEWS")}
    return str(found[relation.schema, relation.name])


def _create(shell: Shell, relation: _Relation) -> str:
    """Return the statements that would create the map with its indexes, or the view."""
    if relation.is_view:
        return f"CREATE VIEW {relation.written} AS {_view_query(shell, relation)};"
    columns = _columns(shell, relation)
    key = [name for name in _key(shell, relation) if name in {column for column, *_ in columns}]
    lines = [f"  {quoted(name)} {type_}{'' if nullable else ' NOT NULL'}" for name, type_, nullable in columns]
    if key:
        lines.append(f"  PRIMARY KEY ({', '.join(map(quoted, key))})")
    shown = {(row.schema, row.name): row for row in shell.session.sql("SHOW TABLES")}
    row = shown[relation.schema, relation.name]
    partitioned = row.partitioned_by != row.key and not row.replicated
    partition_by = f" PARTITION BY ({', '.join(map(quoted, row.partitioned_by.split(', ')))})" if partitioned else ""
    body = ",\n".join(lines)
    replicated = " REPLICATED" if row.replicated else ""
    usual = row.partitions == shell.session.store.partitions
    given = [] if usual else [f"partitions = {row.partitions}"]
    definition = shell.session.store.catalog.find_map(relation.name, (relation.schema,))
    if definition is not None and definition.retention is not None:
        given.append(f"retention = '{definition.retention} seconds'")
    if definition is not None and definition.compression is not None:
        given.append(f"compression = '{definition.compression}'")
    options = f" WITH ({', '.join(given)})" if given else ""
    statements = [f"CREATE TABLE {relation.written} (\n{body}\n){partition_by}{replicated}{options}"]
    statements += [
        f"CREATE INDEX {quoted(name)} ON {relation.written} ({', '.join(map(quoted, columns.split(', ')))}) TYPE {kind}"
        for name, kind, columns in _indexes(shell, relation)
    ]
    return "\n".join(f"{statement};" for statement in statements)


def _list(shell: Shell, names: list[str], rows: Sequence[Sequence[Any]], nothing: str) -> None:
    if rows:
        layout = replace(shell.screen.layout(shell.options), null="")
        text = render(names, rows, shell.options.format, layout)
        shell.screen.answer(text, pager=shell.options.pager)
    else:
        shell.screen.say(nothing)


def _print(shell: Shell, text: str) -> None:
    shell.screen.answer(printable(text), pager=shell.options.pager)


def _matches(name: str, pattern: str) -> bool:
    return not pattern or fnmatch(name.casefold(), pattern.casefold())


def _bytes(size: float) -> str:
    """Write a number of bytes in units.

    >>> _bytes(900), _bytes(12_345_678)
    ('900 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:.1f} TB"
