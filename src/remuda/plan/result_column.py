"""A column of a result as its reader sees it. Apart from plans, which a lookup by key does not import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: SqlType
    nullable: bool
