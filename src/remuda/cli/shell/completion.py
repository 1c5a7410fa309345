"""What the Tab key offers at a place in the text. Knows nothing of the library that reads the keys."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from remuda.cli.shell.command_completion import Completion, complete_command, complete_path, matching
from remuda.cli.shell.statement_help import SYNTAX
from remuda.cli.statement_text import Token, quoted, split, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.cli.shell.names import Names

_BEFORE_TABLE = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "TRUNCATE", "ANALYZE", "COPY"})
_MAY_PRECEDE_TABLE = _BEFORE_TABLE | {","}
_ENDS_FROM = frozenset(
    {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "SET", "VALUES", "SELECT", "ON", "UNION"}
)
_NO_ALIAS = (
    _ENDS_FROM | _BEFORE_TABLE | {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "USING", "AS", "LATERAL"}
)
_BEFORE_VALUE = frozenset(
    {"SELECT", "DISTINCT", "WHERE", "HAVING", "QUALIFY", "ON", "BY", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE"}
) | {"BETWEEN", "LIKE", "ILIKE", "SET", "LIMIT", "OFFSET"}
_BEGIN_VALUE = frozenset(
    {"ALL", "ANY", "CASE", "CAST", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "DATE", "DISTINCT", "EXISTS"}
) | {"EXTRACT", "FALSE", "INTERVAL", "JSON", "NOT", "NULL", "SELECT", "TIME", "TIMESTAMP", "TRUE", "TRY_CAST"}
_FREQUENT = frozenset(
    {"AND", "AS", "BY", "FROM", "GROUP", "INTO", "IS", "JOIN", "LEFT", "LIMIT", "ON", "ORDER", "WHERE"}
)
"""Offered before other keywords."""
_FIRST_WORDS = sorted({*(each.name.split()[0] for each in SYNTAX), "FROM", "TABLE", "VALUES", "WITH"})
_PATH = re.compile(r"\bCOPY\b.*\b(?:FROM|TO)\s+'(?P<path>[^']*)$", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"[\w$]*$")


def complete(text: str, cursor: int, names: Names) -> list[Completion]:
    """Return what the word before the cursor may become: the likeliest first, and columns before keywords.

    `text` is all that is typed, also behind the cursor: FROM may stand there.
    """
    before = text[:cursor]
    start = _start_of_piece(before)
    found = complete_command(before[start:], names)
    if found is not None:
        return found
    statement, begun = text[start:], before[start:]
    path = _PATH.search(begun)
    if path is not None:
        return complete_path(path["path"])
    written = list(tokens(begun))
    if written and written[-1].kind in {"open", "comment", "number"}:
        return []
    word = _WORD.search(begun)
    assert word is not None, "the pattern may match nothing"
    earlier = [token for token in written if token.end <= word.start() and token.kind not in {"space", "comment"}]
    return _complete_word(word[0], earlier, _Relations(statement, names), names)


def _complete_word(word: str, earlier: Sequence[Token], relations: _Relations, names: Names) -> list[Completion]:
    previous = [token.text.upper() for token in earlier[-2:]]
    if previous[-1:] == ["."]:
        return matching(word, [(column, "column") for column in relations.behind(earlier)])
    match previous:
        case [*_, "SET"] if len(earlier) == 1:
            return matching(word, [(f"{setting} = ", "setting") for setting in names.settings])
        case [setting, "=" | "TO"] if earlier[0].text.upper() == "SET":
            values = re.findall(r"\w+", names.settings.get(setting.lower(), ""))
            return matching(word, [(value, "value") for value in values if value not in {"or", "a"}])
        case [*_, "SHOW"]:
            shown = ("TABLES", "VIEWS", "INDEXES", "PARTITIONS", "MEMBERS", "PLANS", "SETTINGS", "FUNCTIONS")
            return matching(word, [(_cased(each, word), "keyword") for each in (*shown, "KEYWORDS", "COLUMNS FROM")])
    if _wants_table(earlier):
        tables = [(_written(name), "table") for name in chain(relations.queries, names.tables)]
        return matching(word, [*tables, *((f"{name}(", "function") for name in ("generate_series", "range"))])
    if not earlier:
        return matching(word, [(_cased(each, word), "keyword") for each in _FIRST_WORDS]) if word else []
    columns = [(quoted(name), "column") for name in relations.columns]
    aliases = [(quoted(alias), "table") for alias in relations.aliases]
    if not word:
        return matching(word, [*columns, *aliases])
    functions = [(f"{_cased(name.upper(), word)}(", "function") for name in sorted(names.functions)]
    tables = [(_written(name), "table") for name in names.tables]
    if _wants_value(earlier[-1]):
        keywords = [(_cased(keyword, word), "keyword") for keyword in sorted(names.keywords & _BEGIN_VALUE)]
        return matching(word, [*columns, *aliases, *functions, *keywords, *tables])
    ranked = sorted(names.keywords, key=lambda keyword: (keyword not in _FREQUENT, keyword))
    keywords = [(_cased(keyword, word), "keyword") for keyword in ranked]
    return matching(word, [*keywords, *columns, *aliases, *functions, *tables])


def _wants_value(previous: Token) -> bool:
    """Test whether an expression begins after this token; a `*` may be a product or all columns."""
    if previous.kind == "operator":
        return previous.text not in {")", "*", "."}
    return previous.kind == "word" and previous.text.upper() in _BEFORE_VALUE


class _Relations:
    """The tables that a statement names in FROM and its kin, with their aliases, and the queries of WITH."""

    def __init__(self, statement: str, names: Names) -> None:
        self._names = names
        self.aliases: dict[str, str] = {}
        """The table of each alias; a table without one is its own."""
        self.queries: list[str] = []
        written = [token for token in tokens(statement) if token.kind not in {"space", "comment"}]
        for at, token in enumerate(written):
            is_name = token.kind in {"word", "name"}
            if is_name and at and written[at - 1].text.upper() in _MAY_PRECEDE_TABLE and _wants_table(written[:at]):
                self._add(written, at)
            following = [each.text.upper() for each in written[at + 1 : at + 3]]
            if is_name and following == ["AS", "("]:
                self.queries.append(token.text)

    def _add(self, written: Sequence[Token], at: int) -> None:
        name = _bare(written[at].text)
        if [token.text for token in written[at + 1 : at + 2]] == ["."] and len(written) > at + 2:
            at += 2
            name = f"{name}.{_bare(written[at].text)}"
        following = [token for token in written[at + 1 : at + 3] if token.text.upper() != "AS"]
        has_alias = bool(following) and following[0].kind in {"word", "name"}
        has_alias = has_alias and following[0].text.upper() not in _NO_ALIAS
        self.aliases[_bare(following[0].text) if has_alias else name] = name

    @property
    def columns(self) -> list[str]:
        """The columns of the tables that are named; of all tables where none is, or none that is known."""
        known = [self._columns_of(table) for table in self.aliases.values()]
        return list(dict.fromkeys(chain.from_iterable(known if any(known) else self._names.tables.values())))

    def behind(self, earlier: Sequence[Token]) -> list[str]:
        """Return what may follow the dot at the end of these tokens: columns of a table, or tables of a schema."""
        before = _bare(earlier[-2].text) if len(earlier) > 1 else ""
        aliases = {alias.casefold(): table for alias, table in self.aliases.items()}
        columns = self._columns_of(aliases.get(before.casefold(), before))
        prefix = f"{before.casefold()}."
        tables = [name.partition(".")[2] for name in self._names.tables if name.casefold().startswith(prefix)]
        return [quoted(name) for name in (*columns, *tables)]

    def _columns_of(self, table: str) -> tuple[str, ...]:
        folded = {name.casefold(): columns for name, columns in self._names.tables.items()}
        return folded.get(table.casefold(), ())


def _wants_table(earlier: Sequence[Token]) -> bool:
    """Test whether the name of a table comes next: after FROM and its kin, and after a comma in a FROM clause."""
    if not earlier:
        return False
    last = earlier[-1].text.upper()
    if last in _BEFORE_TABLE:
        return not (last == "FROM" and _is_of_function(earlier))
    if last != ",":
        return False
    depth = 0
    for token in reversed(earlier):
        depth += (token.text == ")") - (token.text == "(")
        word = token.text.upper()
        if depth < 0 or (depth == 0 and word in _ENDS_FROM):
            return False
        if depth == 0 and word == "FROM":
            return True
    return False


def _is_of_function(earlier: Sequence[Token]) -> bool:
    """Test whether the FROM at the end belongs to `EXTRACT(YEAR FROM d)` and its kin, or to `IS DISTINCT FROM`."""
    words = [token.text.upper() for token in earlier]
    if words[-2:-1] == ["DISTINCT"]:
        return True
    opened = next((at for at in range(len(words) - 1, -1, -1) if words[at] == "("), 0)
    return opened > 0 and words[opened - 1] in {"EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"}


def _start_of_piece(before: str) -> int:
    """Return where the statement or the command begins that is being typed."""
    pieces, rest = split(before)
    if rest is not None:
        return rest.start
    if pieces and pieces[-1].command is not None and "\n" not in before[pieces[-1].start :].lstrip("\n"):
        return pieces[-1].start
    return len(before) - len(before.rpartition(";")[2].lstrip())


def _written(table: str) -> str:
    schema, dot, name = table.rpartition(".")
    return f"{schema}.{quoted(name)}" if dot else quoted(table)


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _cased(keyword: str, word: str) -> str:
    """Return a keyword in the case in which it was begun."""
    return keyword.lower() if word[:1].islower() else keyword
