"""What SET changes, for the grid on which it is said."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from remuda.errors import Span, nearest, parsing_error


class Engine(Enum):
    """AUTO takes the cheaper one; LOCAL and SPARK force it."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class Settings:
    engine: Engine = Engine.AUTO
    partition_pruning: bool = True
    timeout: float | None = None
    """Seconds that a statement may take; none by default."""
    memory_limit: int | None = None
    """Bytes that the sorts, aggregates, joins and windows of a statement may hold together; none by default."""


_SWITCHES = {"on": True, "true": True, "off": False, "false": False}
OPTIONS = ("engine", "memory_limit", "partition_pruning", "timeout")
_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def with_option(settings: Settings, option: str, value: str, span: Span, option_span: Span) -> Settings:
    """The settings after `SET option = value`; the spans are those of the value and of the option."""
    match option:
        case "engine":
            if value.casefold() not in {engine.value for engine in Engine}:
                raise parsing_error(f"engine must be auto, local or spark, not {value}", span=span)
            return replace(settings, engine=Engine(value.casefold()))
        case "partition_pruning":
            if value.casefold() not in _SWITCHES:
                raise parsing_error(f"partition_pruning must be on or off, not {value}", span=span)
            return replace(settings, partition_pruning=_SWITCHES[value.casefold()])
        case "memory_limit":
            return replace(settings, memory_limit=_bytes(value, span))
        case "timeout":
            return replace(settings, timeout=_seconds(value, span))
        case _:
            hint = nearest(option, OPTIONS) or f"The options are {', '.join(OPTIONS)}."
            raise parsing_error(f"unknown option: {option}", span=option_span, suggestion=hint)


def _seconds(value: str, span: Span) -> float | None:
    """A number of seconds; 0 or `off` for none."""
    if value.casefold() == "off":
        return None
    try:
        seconds = float(value)
    except ValueError as error:
        raise parsing_error(f"timeout must be a number of seconds, not {value}", span=span) from error
    if seconds < 0:
        raise parsing_error("timeout must not be negative", span=span)
    return seconds or None


def _bytes(value: str, span: Span) -> int | None:
    """A size such as 512MB or 2GiB, or a number of bytes; 0 or `off` for none."""
    if value.casefold() == "off":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value.strip())
    if found is None or found[2].casefold() not in _SIZES:
        raise parsing_error(f"memory_limit must be a size such as 512MB, not {value}", span=span)
    return int(float(found[1]) * _SIZES[found[2].casefold()]) or None
