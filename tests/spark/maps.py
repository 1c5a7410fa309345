"""The map that the tests of loading fill."""

from __future__ import annotations

from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition, new_id
from remuda.types import BIGINT, DOUBLE, INTEGER, TIMESTAMP, VARCHAR


def orders(partitions: int = 271) -> MapDefinition:
    return MapDefinition(
        id=new_id(),
        schema="public",
        name="orders",
        columns=(
            ColumnDefinition("id", BIGINT, nullable=False),
            ColumnDefinition("customer", VARCHAR),
            ColumnDefinition("quantity", INTEGER),
            ColumnDefinition("amount", DOUBLE),
            ColumnDefinition("created", TIMESTAMP),
        ),
        key=("id",),
        partitioned_by=("id",),
        partitions=partitions,
        indexes=(
            IndexDefinition(new_id(), "orders_customer", ("customer",), IndexType.HASH),
            IndexDefinition(new_id(), "orders_amount", ("amount",), IndexType.SORTED),
        ),
    )
