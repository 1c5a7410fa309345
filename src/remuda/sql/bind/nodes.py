"""The shape of the tables in which a module says which of sqlglot's nodes it binds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sqlglot import exp

    from remuda.expr import Expression
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

Binder: TypeAlias = "Callable[[ExpressionBinder, Any, SqlType | None], Expression]"
Binders: TypeAlias = "dict[type[exp.Expression], Binder]"
Parts: TypeAlias = "dict[type[exp.Expression], frozenset[str]]"
"""What a node may consist of; anything else that sqlglot found in the text would be lost if it were not refused."""

COMMON_PARTS = frozenset({"this", "expression", "expressions"})
