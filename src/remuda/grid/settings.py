"""The settings of a session: each is one field of `Settings`, with its default, how SET reads it, and what it does."""

from __future__ import annotations

import math
import re
from dataclasses import field, fields, replace
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import bad_argument, nearest, option_error, unknown_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.sql import SetOption


class Engine(Enum):
    """AUTO takes the cheaper one; LOCAL and SPARK force it."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SECONDS = "a number of seconds"


def _switch(value: str) -> bool:
    if value not in {"on", "true", "off", "false"}:
        raise ValueError
    return value in {"on", "true"}


def _seconds(value: str) -> float | None:
    seconds = 0.0 if value == "off" else float(value)
    if not seconds >= 0:
        raise ValueError
    return seconds if 0 < seconds < math.inf else None


def _bytes(value: str) -> int | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", "0" if value == "off" else value.strip())
    if found is None or found[2] not in _SIZES:
        raise ValueError
    return int(float(found[1]) * _SIZES[found[2]]) or None


def _folder(value: str) -> Path | None:
    if value.casefold() == "off":
        return None
    folder = Path(value).expanduser().absolute()
    if not folder.is_dir():
        raise ValueError
    return folder


def _about(
    read: Callable[[str], Any], expected: str, doc: str, *, in_plans: bool = False, folded: bool = True
) -> dict[str, Any]:
    """Describe a setting: `read` takes the text that SET was given, and raises ValueError for any other text.

    `in_plans` says that plans depend on it: sessions share a plan only where they agree on all of those. `folded` says
    that upper and lower case are the same in it.
    """
    return {"read": read, "expected": expected, "doc": doc, "in_plans": in_plans, "folded": folded}


@dataclass(frozen=True, slots=True)
class Settings:
    engine: Engine = field(
        default=Engine.AUTO,
        metadata=_about(
            Engine, "auto, local or spark", "which engine runs a query; `auto` takes the cheaper one", in_plans=True
        ),
    )
    memory_limit: int | None = field(
        default=None,
        metadata=_about(
            _bytes,
            "a size such as 512MB",
            "bytes that sorts, aggregates, joins and windows of a statement may hold together; 0 or `off`: no limit",
        ),
    )
    partition_pruning: bool = field(
        default=True,
        metadata=_about(
            _switch, "on or off", "whether a query leaves out partitions that its filter excludes", in_plans=True
        ),
    )
    spill_folder: Path | None = field(
        default=None,
        metadata=_about(
            _folder,
            "a folder that exists",
            "folder of the files for rows beyond `memory_limit`; `off`: the system's temporary folder",
            folded=False,
        ),
    )
    timeout: float | None = field(
        default=None,
        metadata=_about(_seconds, _SECONDS, "seconds that a statement may take; 0 or `off`: no limit"),
    )

    @property
    def of_plans(self) -> tuple[Any, ...]:
        """The values that plans depend on."""
        return tuple(getattr(self, name) for name in _IN_PLANS)


SETTINGS = {each.name: each for each in fields(Settings)}
_IN_PLANS = tuple(name for name, each in SETTINGS.items() if each.metadata["in_plans"])


def with_option(settings: Settings, statement: SetOption) -> Settings:
    """Return the settings after `SET option = value`."""
    option, value = statement.option, statement.value
    known = SETTINGS.get(option)
    if known is None:
        hint = nearest(option, list(SETTINGS)) or f"The options are {', '.join(SETTINGS)}."
        raise unknown_object(f"unknown option: {option}", span=statement.option_span, suggestion=hint)
    try:
        return replace(
            settings, **{option: known.metadata["read"](value.casefold() if known.metadata["folded"] else value)}
        )
    except ValueError:
        message = f"{option} must be {known.metadata['expected']}, not {value}"
        raise bad_argument(message, span=statement.span) from None


def check_timeout(timeout: object) -> float | None:
    """Return the seconds of a call's `timeout=`; None where it is infinite: then the call has no limit."""
    seconds = math.nan if isinstance(timeout, bool) or not isinstance(timeout, Real) else float(timeout)
    if not seconds > 0:
        raise option_error(f"timeout must be {_SECONDS} above 0, not {timeout!r}")
    return None if seconds == math.inf else seconds
