r"""The options of a shell, which `\pset` sets and shows; `\x`, `\timing` and `\rows` set one each."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

from remuda.cli.output import FORMS
from remuda.dataclass import dataclass
from remuda.errors import RemudaError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable


def _one_of(*values: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.casefold() not in values:
            raise ValueError
        return text.casefold()

    return read


def _switch(text: str) -> bool:
    return _one_of("on", "off")(text) == "on"


def _number(text: str) -> int:
    number = int(text.replace(",", "").replace("_", ""))
    if number < 1:
        raise ValueError
    return number


def _option(default: Any, read: Callable[[str], Any], values: str, meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "values": values, "meaning": meaning})


@dataclass(slots=True)
class Options:
    format: str = _option("table", _one_of(*FORMS), ", ".join(FORMS), "the form of answers")
    expanded: str = _option("auto", _one_of("on", "off", "auto"), "on, off, auto", "a line for each value")
    null: str = _option("NULL", str, "any text", "what is shown for NULL")
    pager: str = _option("on", _one_of("on", "off", "always"), "on, off, always", "page answers beyond the screen")
    rows: int = _option(1_000, _number, "a number", "rows that a terminal shows of an answer")
    timing: bool = _option(False, _switch, "on, off", "show how long each statement takes")

    def change(self, name: str, value: str) -> str:
        """Set one option and return the sentence that says so."""
        known = OPTIONS.get(name.casefold())
        if known is None:
            hint = nearest(name, OPTIONS)
            raise RemudaError(
                f"unknown option: {name}. " + (f'Did you mean "{hint}"?' if hint else _LISTED), sqlstate="22023"
            )
        try:
            setattr(self, known.name, known.metadata["read"](value))
        except ValueError:
            raise RemudaError(
                f"{known.name} is one of {known.metadata['values']}, not {value}", sqlstate="22023"
            ) from None
        return f"{known.name} is {self.shown(known.name)}."

    def shown(self, name: str) -> str:
        """Return the value of an option as it is written.

        >>> Options(timing=True).shown("timing"), Options().shown("rows"), Options(null="").shown("null")
        ('on', '1,000', "''")
        """
        match getattr(self, name):
            case bool() as value:
                return "on" if value else "off"
            case int() as value:
                return f"{value:,}"
            case value:
                return value or "''"


OPTIONS = {each.name: each for each in fields(Options)}
_LISTED = f"The options are {', '.join(OPTIONS)}."
