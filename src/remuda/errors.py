"""Every exception of Remuda, its code, the place in the SQL text, and the one renderer that draws the caret.

A user's mistake always surfaces as an exception from here. The code that finds the mistake knows the `Span`
(character offsets) and raises; the SQL text is attached at the grid, which knows it, by `SqlError.with_text`.
This module knows nothing of the rest of the engine.
"""

from __future__ import annotations

from enum import IntEnum
from errno import EACCES, EDQUOT, ENOENT, ENOSPC, EPERM, EROFS
from typing import TYPE_CHECKING

from remuda.presentation.nearest import nearest as nearest  # noqa: PLC0414  (where its callers find it)
from remuda.presentation.nearest import nearest_column as nearest_column  # noqa: PLC0414
from remuda.presentation.source_text import Position as Position  # noqa: PLC0414
from remuda.presentation.source_text import Span as Span  # noqa: PLC0414
from remuda.presentation.source_text import excerpt, position_of, with_parentheses

if TYPE_CHECKING:
    from pathlib import Path


class ErrorCode(IntEnum):
    """Stable numbers that programs may rely on.

    MAP_LOADING_IN_PROGRESS is kept for programs that know it: a map is read as it was until a load is complete.
    """

    GENERIC = -1
    CONNECTION_PROBLEM = 1001
    CANCELLED_BY_USER = 1003
    TIMEOUT = 1004
    PARTITION_DISTRIBUTION = 1005
    MAP_DESTROYED = 1006
    MAP_LOADING_IN_PROGRESS = 1007
    PARSING = 1008
    INDEX_INVALID = 1009
    OBJECT_NOT_FOUND = 1010
    TOPOLOGY_CHANGE = 1011
    OUTCOME_UNKNOWN = 1012
    DATA_EXCEPTION = 2000


SQLSTATES = {
    ErrorCode.GENERIC: "XX000",
    ErrorCode.CONNECTION_PROBLEM: "08006",
    ErrorCode.CANCELLED_BY_USER: "57014",
    ErrorCode.TIMEOUT: "57014",
    ErrorCode.PARTITION_DISTRIBUTION: "40001",
    ErrorCode.MAP_DESTROYED: "42P01",
    ErrorCode.MAP_LOADING_IN_PROGRESS: "55006",
    ErrorCode.PARSING: "42601",
    ErrorCode.INDEX_INVALID: "42704",
    ErrorCode.OBJECT_NOT_FOUND: "42P01",
    ErrorCode.TOPOLOGY_CHANGE: "40001",
    ErrorCode.OUTCOME_UNKNOWN: "40003",
    ErrorCode.DATA_EXCEPTION: "22000",
}
"""The SQLSTATE of an error by its code, where the raise site does not say more."""

IO_ERROR = "58030"
_SYSTEM_ERRORS = {ENOSPC: "53100", EDQUOT: "53100", ENOENT: "58P01", EACCES: "42501", EPERM: "42501", EROFS: "42501"}
"""Disk full, no such file, no permission: the SQLSTATE by the number of the operating system."""

INVALIDATING_CODES = frozenset({ErrorCode.PARTITION_DISTRIBUTION, ErrorCode.MAP_DESTROYED, ErrorCode.INDEX_INVALID})
"""An error with one of these codes says that the plan is stale: it is removed from the plan cache and made anew."""


class RemudaError(Exception):
    """The base of everything Remuda raises on purpose: `code` and `sqlstate` tell programs what happened."""

    code = ErrorCode.GENERIC
    _sqlstate = SQLSTATES[ErrorCode.GENERIC]

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        if sqlstate is not None:
            self._sqlstate = sqlstate

    @property
    def sqlstate(self) -> str:
        """Five characters, PostgreSQL's where it has the case: `docs/errors.md` lists them."""
        return self._sqlstate


class StorageError(RemudaError):
    """A folder or a file is damaged, locked, missing or cannot be written.

    A statement that ends with it has changed nothing, except with the code OUTCOME_UNKNOWN.
    """

    _sqlstate = IO_ERROR

    def __init__(
        self, message: str, path: Path | str | None = None, offset: int | None = None, *, sqlstate: str | None = None
    ) -> None:
        place = "" if path is None else f" ({path}" + ("" if offset is None else f", offset {offset}") + ")"
        super().__init__(message + place, sqlstate=sqlstate)
        self.reason = message
        self.path = None if path is None else str(path)
        self.offset = offset

    @property
    def sqlstate(self) -> str:
        """As given at the raise site, else by the error of the operating system that is the cause."""
        cause = self.__cause__
        if self._sqlstate == IO_ERROR and isinstance(cause, OSError):
            return _SYSTEM_ERRORS.get(cause.errno or 0, IO_ERROR)
        if self._sqlstate == IO_ERROR and isinstance(cause, StorageError):
            return cause.sqlstate
        return self._sqlstate


class FolderInUseError(StorageError):
    """A grid, in this process or in another one, has the folder open for writing."""

    _sqlstate = "55006"


class OutcomeUnknownError(StorageError):
    """A commit was written and its sync failed: a crash, or the next opening, may find it or not.

    The store refuses further writes until it is opened again, which settles the outcome.
    """

    code = ErrorCode.OUTCOME_UNKNOWN
    _sqlstate = SQLSTATES[code]

    def __str__(self) -> str:
        return f"[{int(self.code)} {self.code.name}] {super().__str__()}"


class SqlError(RemudaError):
    """What is wrong with a statement or with the values it met.

    >>> error = SqlError(ErrorCode.PARSING, "unknown column: amont", span=Span(7, 12), suggestion="amount")
    >>> print(error.with_text("SELECT amont FROM orders"))
    [1008 PARSING] unknown column: amont, at line 1, column 8
      SELECT amont FROM orders
             ^^^^^
      Did you mean "amount"?
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        span: Span | None = None,
        suggestion: str | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message, sqlstate=sqlstate or SQLSTATES[code])
        self.code = code
        self.message = message
        self.span = span
        self.suggestion = suggestion
        self.text: str | None = None

    @property
    def invalidates_plan(self) -> bool:
        return self.code in INVALIDATING_CODES

    @property
    def position(self) -> Position | None:
        if self.span is None or self.text is None:
            return None
        return position_of(self.text, self.span.start)

    def restated(self, message: str | None = None, span: Span | None = None) -> SqlError:
        """Return the same error with another message, or with a span: a caller knows more than the raise site."""
        condition = Condition(self.code, self.sqlstate)
        return condition(message or self.message, span=span or self.span, suggestion=self.suggestion)

    def with_text(self, text: str) -> SqlError:
        """Attaches the SQL text, once: an error that already has one keeps it."""
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        return render(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.code, self.message, self.span, self.suggestion, self.sqlstate, self.text)


class UntypedParametersError(SqlError):
    """Parameters stand where nothing tells their types, as in `SELECT ?`: only their values can."""

    numbers: tuple[int, ...] = ()


class ConstraintError(SqlError):
    """A row that its map does not allow: a key that exists already, a NULL where none may be.

    `row` is its number among those of the statement, from 0, where that is known; `columns` are those in question.
    """

    row: int | None = None
    columns: tuple[str, ...] = ()


def _restore(
    kind: type[SqlError],
    code: ErrorCode,
    message: str,
    span: Span | None,
    suggestion: str | None,
    sqlstate: str,
    text: str | None,
) -> SqlError:
    error = kind(code, message, span=span, suggestion=suggestion, sqlstate=sqlstate)
    error.text = text
    return error


def render(error: SqlError) -> str:
    """Render the message with its code and, where the span is known, the line of SQL with carets under it."""
    head = f"[{int(error.code)} {error.code.name}] {error.message}"
    lines = [head]
    position = error.position
    if position is not None and error.text is not None and error.span is not None:
        lines[0] += f", at line {position.line}, column {position.column}"
        line = error.text.split("\n")[position.line - 1]
        source, start = excerpt(line, position.column - 1)
        span = with_parentheses(error.text, error.span)
        width = max(1, min(span.end - span.start, len(source) - start))
        # A tab stays a tab in the caret line, so that both lines are indented alike on any terminal.
        indent = "".join("\t" if character == "\t" else " " for character in source[:start])
        lines += ["  " + source, "  " + indent + "^" * width]
    if error.suggestion:
        lines.append("  " + suggestion_sentence(error.suggestion))
    return "\n".join(lines)


def suggestion_sentence(suggestion: str) -> str:
    """Write a suggestion: a bare name becomes a question, a whole sentence stays as it is."""
    return suggestion if " " in suggestion else f'Did you mean "{suggestion}"?'


LONGEST_VALUE = 200
"""Characters of a value that a message shows: a document of a gigabyte would hide the message, and fill a log."""


def shown(value: object) -> str:
    """Return a value as messages quote it: its beginning, where it is long.

    >>> shown("x"), len(shown("x" * 1_000_000)), shown(10**5_000)
    ("'x'", 200, 'a number of thousands of digits')
    """
    if isinstance(value, str | bytes | bytearray) and len(value) > LONGEST_VALUE:
        value = value[:LONGEST_VALUE]  # `repr` of a long text would be made in full
        return f"{repr(value)[: LONGEST_VALUE - 1]}…"
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def kind_of(value: object) -> str:
    """Return the Python type of a value as messages name it, with its article.

    >>> kind_of(5), kind_of([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


class Condition:
    """A kind of mistake: `raise unknown_column("unknown column: x", span=span)` makes the error with code and SQLSTATE.

    The SQLSTATEs are PostgreSQL's; `docs/errors.md` describes each of them.
    """

    __slots__ = ("code", "sqlstate")

    def __init__(self, code: ErrorCode, sqlstate: str) -> None:
        self.code = code
        self.sqlstate = sqlstate

    def __call__(self, message: str, *, span: Span | None = None, suggestion: str | None = None) -> SqlError:
        return SqlError(self.code, message, span=span, suggestion=suggestion, sqlstate=self.sqlstate)


# Mistakes in a statement, found before it runs.

_PARSING = ErrorCode.PARSING
parsing_error = Condition(_PARSING, "42601")
not_supported = Condition(_PARSING, "0A000")
bad_argument = Condition(_PARSING, "22023")
bad_frame = Condition(_PARSING, "22013")
bad_interval = Condition(_PARSING, "22007")
bad_limit = Condition(_PARSING, "2201W")
number_too_long = Condition(_PARSING, "22003")
missing_value = Condition(_PARSING, "23502")
unknown_schema = Condition(_PARSING, "3F000")
column_twice = Condition(_PARSING, "42701")
ambiguous_column = Condition(_PARSING, "42702")
unknown_column = Condition(_PARSING, "42703")
unknown_object = Condition(_PARSING, "42704")
object_exists = Condition(_PARSING, "42710")
alias_twice = Condition(_PARSING, "42712")
grouping_error = Condition(_PARSING, "42803")
type_error = Condition(_PARSING, "42804")
wrong_object = Condition(_PARSING, "42809")
cast_error = Condition(_PARSING, "42846")
unknown_function = Condition(_PARSING, "42883")
unknown_alias = Condition(_PARSING, "42P01")
table_exists = Condition(_PARSING, "42P07")
bad_reference = Condition(_PARSING, "42P10")
bad_definition = Condition(_PARSING, "42P16")
bad_recursion = Condition(_PARSING, "42P19")
window_error = Condition(_PARSING, "42P20")
too_complex = Condition(_PARSING, "54001")
not_found = Condition(ErrorCode.OBJECT_NOT_FOUND, "42P01")
unknown_index = Condition(ErrorCode.OBJECT_NOT_FOUND, "42704")

# Mistakes in values: what a statement meets when it runs, and what a Python function is given.

_DATA = ErrorCode.DATA_EXCEPTION
data_error = Condition(_DATA, "22000")
parameter_error = Condition(_DATA, "07001")
too_many_rows = Condition(_DATA, "21000")
length_error = Condition(_DATA, "22001")
overflow_error = Condition(_DATA, "22003")
moment_error = Condition(_DATA, "22007")
calendar_error = Condition(_DATA, "22008")
substring_error = Condition(_DATA, "22011")
division_error = Condition(_DATA, "22012")
frame_error = Condition(_DATA, "22013")
ntile_error = Condition(_DATA, "22014")
nth_value_error = Condition(_DATA, "22016")
encoding_error = Condition(_DATA, "22021")
option_error = Condition(_DATA, "22023")
escape_error = Condition(_DATA, "22025")
pattern_error = Condition(_DATA, "2201B")
logarithm_error = Condition(_DATA, "2201E")
power_error = Condition(_DATA, "2201F")
limit_error = Condition(_DATA, "2201W")
text_error = Condition(_DATA, "22P02")
file_error = Condition(_DATA, "22P04")
null_error = Condition(_DATA, "23502")
duplicate_error = Condition(_DATA, "23505")
repeated_column = Condition(_DATA, "42701")
missing_column = Condition(_DATA, "42703")
value_error = Condition(_DATA, "42804")
untyped_error = Condition(_DATA, "42P18")
disk_error = Condition(_DATA, "53100")
memory_error = Condition(_DATA, "53200")
size_error = Condition(_DATA, "54000")
state_error = Condition(_DATA, "55000")
busy_error = Condition(_DATA, "55006")
output_error = Condition(_DATA, "58030")

# No other code fits.

closed_error = Condition(ErrorCode.GENERIC, "08003")
internal_error = Condition(ErrorCode.GENERIC, "XX000")


LESS_MEMORY = "Raise it by SET memory_limit, or ask for fewer rows."


def damage_error(message: str, path: Path | str | None = None, offset: int | None = None) -> StorageError:
    """Report a file whose bytes are not as they were written."""
    return StorageError(message, path, offset, sqlstate="XX001")


def is_damage(error: StorageError) -> bool:
    """Tell whether an error says that bytes are not as they were written."""
    return error.sqlstate == "XX001"


def nested_too_deeply(span: Span | None = None) -> SqlError:
    """Parsing, binding, planning, compiling and printing follow the nesting down; each may be the first to fail."""
    return too_complex("the statement is nested too deeply", span=span)


def constraint_error(kind: Condition, message: str, columns: tuple[str, ...] = ()) -> ConstraintError:
    error = ConstraintError(kind.code, message, sqlstate=kind.sqlstate)
    error.columns = columns
    return error
