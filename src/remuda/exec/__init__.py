"""The operators: `Row`, `RowBatch`, `Exec`, and one small file for each physical node.

An operator is set up with a context and advanced; it never blocks. It pulls batches from its input and owns the batch
it has produced until it is advanced again. Operators know plan nodes and storage snapshots; they know nothing of
threads, of other members or of how a query came to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, Row, RowBatch, TupleBatch
from remuda.exec.context import Channel, ExecContext
from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.operator import Exec, IterationResult
from remuda.lazy_names import lazy_names

if TYPE_CHECKING:
    from remuda.exec.build import build_operator

__all__ = [
    "ArrowBatch",
    "Channel",
    "Exec",
    "ExecContext",
    "ExpressionCache",
    "IterationResult",
    "Row",
    "RowBatch",
    "TupleBatch",
    "build_operator",
]

__getattr__ = lazy_names(__name__, {"build_operator": "build"})
