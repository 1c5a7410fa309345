"""SHOW: what exists, as tables."""

from __future__ import annotations

import time
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import SETTINGS
from remuda.grid.statements.ddl import maps_named
from remuda.grid.statements.versions import version_rows
from remuda.plan.result_column import ResultColumn
from remuda.sql.vocabulary import KEYWORDS, functions
from remuda.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP_TZ, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.cluster import Cluster
    from remuda.grid.plan_cache import PlanCache
    from remuda.grid.query_run import Call
    from remuda.grid.settings import Settings
    from remuda.sql import Check, Show
    from remuda.storage import Store
    from remuda.types import SqlType

_COLUMNS: dict[str, tuple[tuple[str, SqlType], ...]] = {
    "TABLES": (
        ("schema", VARCHAR),
        ("name", VARCHAR),
        ("rows", BIGINT),
        ("key", VARCHAR),
        ("partitioned_by", VARCHAR),
        ("replicated", BOOLEAN),
        ("partitions", BIGINT),
    ),
    "VIEWS": (("schema", VARCHAR), ("name", VARCHAR), ("query", VARCHAR)),
    "INDEXES": (("map", VARCHAR), ("name", VARCHAR), ("type", VARCHAR), ("columns", VARCHAR)),
    "PARTITIONS": (("map", VARCHAR), ("partition", BIGINT), ("member", VARCHAR), ("rows", BIGINT)),
    "MEMBERS": (("member", VARCHAR), ("partitions", BIGINT), ("fragments_run", BIGINT)),
    "PLANS": (("sql", VARCHAR), ("hits", BIGINT), ("seconds_since_use", DOUBLE)),
    "SETTINGS": (("name", VARCHAR), ("value", VARCHAR), ("values", VARCHAR), ("meaning", VARCHAR)),
    "FUNCTIONS": (("name", VARCHAR), ("kind", VARCHAR)),
    "KEYWORDS": (("word", VARCHAR),),
    "VERSIONS": (("version", BIGINT), ("committed", TIMESTAMP_TZ), ("newest", BOOLEAN), ("changed", VARCHAR)),
}

_CHECK = (
    ("map", VARCHAR),
    ("status", VARCHAR),
    ("file", VARCHAR),
    ("position", BIGINT),
    ("problem", VARCHAR),
)

_NULLABLE = frozenset({"partitions", "fragments_run", "changed"})
"""Of executors, what they do not know; of versions, that no table has changed."""


def check(call: Call, statement: Check) -> Result:
    """CHECK TABLE: read every file of the maps, and show for each map what is damaged, or that it is sound."""
    rows: list[tuple[Any, ...]] = []
    for definition in maps_named(call.session, statement.name):
        damages = call.session.store.check(definition)
        rows += [(definition.name, "damaged", each.path, each.offset, each.reason) for each in damages]
        if not damages:
            rows.append((definition.name, "ok", None, None, None))
    unknown = {"file", "position", "problem"}
    return Result(RowShape(tuple(ResultColumn(name, type_, nullable=name in unknown) for name, type_ in _CHECK)), rows)


def show(call: Call, statement: Show) -> Result:
    engine = call.session.engine
    engine.look_for_executors()
    store, cluster, what = engine.store, engine.cluster, statement.what
    match what:
        case "TABLES":
            rows = _tables(store)
        case "VIEWS":
            rows = _views(store)
        case "INDEXES":
            rows = _indexes(store)
        case "PARTITIONS":
            rows = _partitions(store, cluster)
        case "MEMBERS":
            rows = _members(cluster)
        case "SETTINGS":
            rows = _settings(call.session.settings)
        case "FUNCTIONS":
            rows = functions().items()
        case "VERSIONS":
            rows = version_rows(call, statement.name)
        case "KEYWORDS":
            rows = ((word,) for word in KEYWORDS)
        case _:
            rows = _plans(engine.plans)
    shape = RowShape(tuple(ResultColumn(name, type_, nullable=name in _NULLABLE) for name, type_ in _COLUMNS[what]))
    return Result(shape, list(rows))


def _tables(store: Store) -> Iterable[tuple[Any, ...]]:
    for definition in store.catalog.maps.values():
        rows = len(store.map(definition))
        key, partitioned_by = ", ".join(definition.key), ", ".join(definition.partitioned_by)
        yield (
            definition.schema,
            definition.name,
            rows,
            key,
            partitioned_by,
            definition.replicated,
            definition.partitions,
        )


def _views(store: Store) -> Iterable[tuple[Any, ...]]:
    for view in store.catalog.views.values():
        yield view.schema, view.name, view.text


def _indexes(store: Store) -> Iterable[tuple[Any, ...]]:
    for definition in store.catalog.maps.values():
        for index in definition.indexes:
            yield definition.name, index.name, index.type.value, ", ".join(index.columns)


def _partitions(store: Store, cluster: Cluster) -> Iterable[tuple[Any, ...]]:
    for definition in store.catalog.maps.values():
        counts: Counter[int] = Counter()
        for source in store.map(definition).snapshot().sources:
            for partition in range(definition.partitions):
                for start, stop in source.ranges(np.array([partition], dtype=np.int64)):
                    counts[partition] += source.read(definition.key, start, stop).num_rows
        owners = cluster.partition_table.owners_of(definition.partitions)
        for partition in range(definition.partitions):
            yield definition.name, partition, owners[partition], counts[partition]


def _members(cluster: Cluster) -> Iterable[tuple[Any, ...]]:
    """Spark gives a task to whichever executor is free, so there is nothing to say of partitions and fragments."""
    for member in cluster.members:
        yield member.id, len(cluster.partition_table.owned_by(member.id)), member.fragments_run
    for name in cluster.executors:
        yield f"executor {name}", None, None


def _settings(settings: Settings) -> Iterable[tuple[Any, ...]]:
    for name, each in SETTINGS.items():
        yield name, _as_set(getattr(settings, name)), each.metadata["expected"], each.metadata["doc"]


def _as_set(value: object) -> str:
    """Return the value of a setting as SET takes it."""
    match value:
        case None | False:
            return "off"
        case True:
            return "on"
        case Enum():
            return str(value.value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _plans(plans: PlanCache) -> Iterable[tuple[Any, ...]]:
    now = time.monotonic()
    for (_, sql), entry in plans.entries():
        yield sql, entry.hits, now - entry.last_used
