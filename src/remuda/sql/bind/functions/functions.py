"""Binding of functions by their names: an entry of the registry, another name of one, or a form of its own.

sqlglot's parser has nodes of its own for hundreds of functions. Those that are bound here by name are hidden from it
(see `sql/parse/parse_query.py`): a function is what the registry says, and nothing rearranges its arguments on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import nearest, parsing_error, unknown_function
from remuda.expr import FUNCTIONS, Expression
from remuda.plan.aggregates import AGGREGATES
from remuda.sql.bind.bind_context import COMMON_PARTS, Binder, Binders, Parts
from remuda.sql.bind.functions import (
    aggregate_binding,
    date_functions,
    special_forms,
)
from remuda.sql.parse import other_names
from remuda.sql.parse.spans import span_of

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_MODULES = (
    date_functions,
    special_forms,
)

ALIASES: dict[str, str] = {
    "base64": "to_base64",
    "btrim": "trim",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "from_hex": "unhex",
    "ifnull": "coalesce",
    "instr": "position",
    "json_build_array": "json_array",
    "json_build_object": "json_object",
    "lcase": "lower",
    "len": "length",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "strpos": "position",
    "ord": "ascii",
    "prefix": "starts_with",
    "regexp_like": "regexp_matches",
    "strlen": "octet_length",
    "substr": "substring",
    "suffix": "ends_with",
    "to_hex": "hex",
    "ucase": "upper",
    "unicode": "ascii",
    "xor": "#",
}
"""Other names of functions of the registry."""

FORMS: dict[str, Binder] = {
    name: bind for module in _MODULES for name, bind in module.FORMS.items()
} | aggregate_binding.FORMS
"""Functions that are more, or something else, than a call of the registry's function."""

_REGISTERED = {name for name, function in FUNCTIONS.items() if function.symbol is None and name.isidentifier()} - {"in"}
TABLE_FUNCTIONS = ("generate_series", "range")
"""Functions that stand in FROM: see `table_functions.py`."""

NAMES = frozenset({*ALIASES, *FORMS, *TABLE_FUNCTIONS, *_REGISTERED})


def _bind_by_name(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    written = str(node.this).lower()
    if written in TABLE_FUNCTIONS:
        raise parsing_error(f"{written} gives rows: it stands in FROM", span=span_of(node))
    if written in FORMS:
        return FORMS[written](self, node, expected)
    name = ALIASES.get(written, written)
    if written in NAMES:
        return self.call_with(name, node, node.expressions, expected)
    known = sorted({*NAMES, *AGGREGATES})
    hint = other_names.FUNCTIONS.get(written) or nearest(written, known)
    raise unknown_function(f"unknown function: {node.name}", span=span_of(node), suggestion=hint)


NODES: Binders = {
    exp.Anonymous: _bind_by_name,
    **{node: bind for module in _MODULES for node, bind in module.NODES.items()},
}
PARTS: Parts = {
    exp.Anonymous: COMMON_PARTS,
    **{node: parts for module in _MODULES for node, parts in module.PARTS.items()},
}
