"""The time of the statement; EXTRACT and DATE_TRUNC, where a field or a unit is a name and each has a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import bad_argument, nearest, parsing_error, unknown_function
from remuda.expr import Literal, coerce
from remuda.expr.functions.calendar_fields import DIFFERENCES, EXTRACTED, TRUNCATED
from remuda.sql.parse.spans import span_of
from remuda.types import BIGINT, DATE, DOUBLE, INTERVAL_TIME, TIME, TIMESTAMP, TIMESTAMP_TZ

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.bind_context import Binder, Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


_MADE_FIELDS = frozenset({"yearweek", "julian"})
_DAY_SECONDS = Literal(86400.0, DOUBLE)
_EPOCH_JULIAN = Literal(2440588.0, DOUBLE)
_WHOLE_UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Units that are always as long, in microseconds."""

_CLOCK: dict[type[exp.Expression], SqlType] = {
    exp.CurrentTimestamp: TIMESTAMP_TZ,
    exp.CurrentDate: DATE,
    exp.CurrentTime: TIME,
    exp.Localtime: TIME,
    exp.Localtimestamp: TIMESTAMP,
}


def _bind_clock(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return coerce(self.binding.clock(), _CLOCK[type(node)])


def _bind_time_zone(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `x AT TIME ZONE zone`: from an instant to the local time there, or back."""
    return self.call_with("timezone", node, [node.args["zone"], node.this])


def _bind_extract(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return _field(self, node, node.this.name, self.bind(node.expression))


def _field(self: ExpressionBinder, node: Any, written: str, moment: Expression) -> Expression:
    """Return the expression of a field of a moment; some are computed from others."""
    match _one_of(node, written, EXTRACTED | _MADE_FIELDS, "field"):
        case "yearweek":
            years, weeks = (self.call(f"extract {name}", node, moment) for name in ("isoyear", "week"))
            return self.call("+", node, self.call("*", node, years, Literal(100, BIGINT)), weeks)
        case "julian" if moment.type == TIME:
            raise parsing_error("a TIME has no day to count from: julian is not a field of it", span=span_of(node))
        case "julian":
            # The day that begins at midnight, as in PostgreSQL; the fraction is that of the day.
            days = self.call("/", node, coerce(self.call("extract epoch", node, moment), DOUBLE), _DAY_SECONDS)
            return self.call("+", node, days, _EPOCH_JULIAN)
        case name:
            return self.call(f"extract {name}", node, moment)


def _bind_date_part(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    field, operand = _name_and_rest(node, 2)
    return _field(self, node, field, self.bind(operand))


def _bind_truncation(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    unit, operand = _name_and_rest(node, 2)
    return self.call(f"date_trunc {_one_of(node, unit, TRUNCATED, 'unit')}", node, self.bind(operand))


def _bind_difference(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    unit, start, end = _name_and_rest(node, 3)
    name = f"date_diff {_one_of(node, unit, DIFFERENCES, 'unit')}"
    return self.call(name, node, self.bind(start, TIMESTAMP), self.bind(end, TIMESTAMP))


def _bind_whole_units(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind DATE_SUB('unit', start, end): how many whole units lie between, toward zero."""
    unit, start, end = _name_and_rest(node, 3)
    name = _one_of(node, unit, frozenset(_WHOLE_UNITS), "unit")
    moments = self.bind(start, TIMESTAMP), self.bind(end, TIMESTAMP)
    length = self.call("date_diff microsecond", node, *moments)
    return self.call("/", node, length, Literal(_WHOLE_UNITS[name], BIGINT))


def _bind_move(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind DATE_ADD and DATE_SUB: a moment and an INTERVAL, or a DATE and days."""
    if len(node.expressions) == 3 and str(node.this).lower() == "date_sub":
        return _bind_whole_units(self, node, None)
    if len(node.expressions) != 2:
        raise unknown_function(f"{str(node.this).upper()} takes a moment and an INTERVAL", span=span_of(node))
    moment = self.bind(node.expressions[0], TIMESTAMP)
    amount = self.bind(node.expressions[1], INTERVAL_TIME)
    return self.call("+" if str(node.this).lower() == "date_add" else "-", node, moment, amount)


def _bind_field(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind YEAR(x) and its kin: EXTRACT(YEAR FROM x)."""
    if len(node.expressions) != 1:
        raise unknown_function(f"{str(node.this).upper()} takes one argument", span=span_of(node))
    field = _FIELD_FUNCTIONS[str(node.this).lower()]
    return _field(self, node, field, self.bind(node.expressions[0], TIMESTAMP))


_FIELD_FUNCTIONS = {
    **{name: name for name in EXTRACTED | _MADE_FIELDS},
    "dayofmonth": "day",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "weekday": "dow",
    "weekofyear": "week",
}


def _name_and_rest(node: Any, count: int) -> tuple[Any, ...]:
    """Return the text of the first argument, which must be a literal, and the other arguments."""
    arguments = node.expressions
    if len(arguments) != count or not (isinstance(arguments[0], exp.Literal) and arguments[0].is_string):
        what = "a name in quotes and a value" if count == 2 else f"a name in quotes and {count - 1} values"
        raise unknown_function(f"{str(node.this).upper()} takes {what}", span=span_of(node))
    return (str(arguments[0].this), *arguments[1:])


_SHORT = {
    "centuries": "century",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "millennia": "millennium",
    "millenniums": "millennium",
    "ms": "millisecond",
    "us": "microsecond",
    "weekday": "dow",
}
"""Other names of fields and units."""


def _one_of(node: Any, written: str, known: frozenset[str], what: str) -> str:
    name = written.lower()
    for candidate in (name, name.removesuffix("s"), _SHORT.get(name, name)):
        if candidate in known:
            return candidate
    hint = nearest(name, sorted(known)) or f"It is one of {', '.join(sorted(known))}."
    raise bad_argument(f"unknown {what}: {written}", span=span_of(node), suggestion=hint)


FORMS: dict[str, Binder] = {
    "date_part": _bind_date_part,
    "datepart": _bind_date_part,
    "date_trunc": _bind_truncation,
    "datetrunc": _bind_truncation,
    "date_diff": _bind_difference,
    "datediff": _bind_difference,
    "date_add": _bind_move,
    "date_sub": _bind_move,
    **dict.fromkeys(_FIELD_FUNCTIONS, _bind_field),
}
NODES: Binders = {
    exp.Extract: _bind_extract,
    exp.AtTimeZone: _bind_time_zone,
    **dict.fromkeys(_CLOCK, _bind_clock),
}
PARTS: Parts = {
    exp.Extract: frozenset({"this", "expression"}),
    exp.AtTimeZone: frozenset({"this", "zone"}),
    **dict.fromkeys(_CLOCK, frozenset()),
}
