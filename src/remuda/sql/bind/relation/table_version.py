"""`FROM t FOR VERSION AS OF n`, `FROM t FOR TIMESTAMP AS OF moment`: a table as it was in a committed version."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import UntypedParametersError, bad_argument
from remuda.expr import Literal, Parameter, coerce, fold
from remuda.sql.bind.expression.expression import ExpressionBinder, untyped
from remuda.sql.bind.scope import QueryLevel, Scope
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported
from remuda.types import BIGINT, TIMESTAMP_TZ
from remuda.types.stored_values import EPOCH_UTC

if TYPE_CHECKING:
    from datetime import datetime

    from remuda.catalog import MapDefinition
    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType


def find_version(binding: BindContext, node: Any) -> MapDefinition:
    """Return the map of an entry of FROM that names a version."""
    written = node.args["version"]
    refuse_unknown_parts(written, frozenset({"this", "kind", "expression"}))
    if written.args.get("kind") != "AS OF" or written.expression is None:
        raise unsupported(node, f"{written.args.get('kind')} of versions")
    is_number = str(written.this).upper() == "VERSION"
    moment = _moment(binding, written.expression, BIGINT if is_number else TIMESTAMP_TZ)
    return binding.find_version(node.name, node.db or None, moment, span_of(written.expression) or span_of(node))


def _moment(binding: BindContext, node: Any, expected: SqlType) -> int | datetime:
    """Evaluate a number or a moment. A parameter has its value only where the plan is made for that value alone."""
    what = "the number of a version" if expected is BIGINT else "the moment of a version"
    span = span_of(node)
    if not isinstance(node, exp.Placeholder | exp.Parameter):
        for each in node.find_all(exp.Column, exp.Query, exp.Placeholder, exp.Parameter):
            raise bad_argument(f"{what} is a constant or a parameter", span=span_of(each) or span)
    bound = ExpressionBinder(binding, Scope((), QueryLevel()), clause=what).bind(node, expected)
    if isinstance(bound, Parameter):
        if bound.clock or bound.span is None:
            raise bad_argument(f"{what} is a constant or a parameter", span=span)
        error: UntypedParametersError = untyped(bound.span)
        error.numbers = tuple(_parameters_of_versions(binding, node))
        raise error
    value = fold(coerce(bound, expected))
    if not isinstance(value, Literal) or value.value is None:
        raise bad_argument(f"{what} is a constant or a parameter, and not NULL", span=span)
    return int(value.value) if expected is BIGINT else EPOCH_UTC + timedelta(microseconds=value.value)


def _parameters_of_versions(binding: BindContext, node: Any) -> list[int]:
    """Return the numbers of all parameters of the statement that stand for versions."""
    binder = ExpressionBinder(binding, Scope((), QueryLevel()), clause="FOR VERSION")
    written = [version.expression for version in node.root().find_all(exp.Version)]
    bound = [binder.bind(each, None) for each in written if isinstance(each, exp.Placeholder | exp.Parameter)]
    return sorted({each.index for each in bound if isinstance(each, Parameter)})
