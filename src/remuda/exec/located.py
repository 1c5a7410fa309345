"""The place in the statement of what is an error only when it is computed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError, data_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.errors import Span


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Within it an error of the data that has no place of its own has this one.

    States and kernels do not know for which call of a statement they work; who computes the call does.
    """
    try:
        yield
    except SqlError as error:
        if error.span is not None or error.code is not ErrorCode.DATA_EXCEPTION:
            raise
        raise data_error(error.message, span=span, suggestion=error.suggestion) from error
