"""format() and printf() with a template that is written out: its pieces and the values between them, joined."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Literal
from remuda.sql.parse.places import place_of
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.binding import Binder, Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_PLACES = {"format": re.compile(r"\{\{|\}\}|\{\}"), "printf": re.compile(r"%%|%s|%d")}
_WRITTEN_TWICE = {"{{": "{", "}}": "}", "%%": "%"}
_SPECIAL = {"format": re.compile(r"[{}]"), "printf": re.compile("%")}


def _bind_template(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """`format('{} of {}', a, b)`, `printf('%s of %d', a, b)`: NULL where a value is."""
    name, span = str(node.this).lower(), place_of(node)
    arguments = node.expressions
    if not arguments or not (isinstance(arguments[0], exp.Literal) and arguments[0].is_string):
        raise parsing_error(f"{name} takes a template in quotes and values", span=span)
    pieces, kinds = _pieces(name, str(arguments[0].this), arguments[0])
    if len(kinds) != len(arguments) - 1:
        message = f"the template has {len(kinds)} places, {len(arguments) - 1} values are given"
        raise parsing_error(message, span=span)
    text: Expression = Literal(pieces[0], VARCHAR)
    for kind, piece, argument in zip(kinds, pieces[1:], arguments[1:], strict=True):
        value = self.bind(argument, VARCHAR)
        if kind == "%d" and not value.type.is_integer:
            raise parsing_error(f"%d takes a whole number, this is {value.type}", span=place_of(argument))
        text = self.call("||", node, self.call("||", node, text, value), Literal(piece, VARCHAR))
    return text


def _pieces(name: str, template: str, node: Any) -> tuple[list[str], list[str]]:
    """The text between the places, and what is written at each place."""
    pieces, kinds, end = [""], [], 0
    for found in (*_PLACES[name].finditer(template), None):
        between = template[end : None if found is None else found.start()]
        if _SPECIAL[name].search(between):
            known = "{}" if name == "format" else "%s and %d"
            raise parsing_error(f"the template of {name} may have {known} only", span=place_of(node))
        pieces[-1] += between
        if found is None:
            break
        end = found.end()
        if found[0] in _WRITTEN_TWICE:
            pieces[-1] += _WRITTEN_TWICE[found[0]]
        else:
            kinds.append(found[0])
            pieces.append("")
    return pieces, kinds


FORMS: dict[str, Binder] = {"format": _bind_template, "printf": _bind_template}
NODES: Binders = {}
PARTS: Parts = {}
