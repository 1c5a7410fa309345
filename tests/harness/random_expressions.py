"""Random expressions as trees, printed with as few parentheses as PostgreSQL's precedence allows, or with all of them.

Two printings of one tree must have one value: that is how a parser which binds an operator too tightly is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

COLUMNS = {"integer": ("a", "b", "c"), "boolean": ("p", "q"), "text": ("s",)}
SETUP = (
    "CREATE TABLE e (id BIGINT, a INTEGER, b INTEGER, c INTEGER, p BOOLEAN, q BOOLEAN, s VARCHAR, PRIMARY KEY (id))",
    "INSERT INTO e VALUES (1, 5, 3, NULL, TRUE, FALSE, 'x'), (2, -7, 2, 4, FALSE, NULL, '12')",
    "INSERT INTO e VALUES (3, 0, 9, -1, NULL, TRUE, NULL), (4, 6, 6, 1, TRUE, TRUE, 'x1')",
)

CAST, SIGN, POWER, TIMES, PLUS, OTHER, RANGE, COMPARISON, IS, NOT, AND, OR = range(12, 0, -1)
"""PostgreSQL's table of precedence, the tightest first (Table 4.2 of its manual)."""
_ATOM = 99


@dataclass(frozen=True, slots=True)
class Tree:
    """An expression. `pieces` are texts and operands in turn; an operand stands in a slot of least precedence."""

    level: int
    pieces: tuple[str | tuple[Tree, int], ...]

    @property
    def is_prefix(self) -> bool:
        return len(self.pieces) == 2 and isinstance(self.pieces[0], str)

    def full(self) -> str:
        """With parentheses around every operand that is no atom."""
        parts = (each if isinstance(each, str) else _enclosed(each[0], each[0].full()) for each in self.pieces)
        return "".join(parts)

    def least(self) -> str:
        """With the parentheses that PostgreSQL needs."""
        parts: list[str] = []
        for number, each in enumerate(self.pieces):
            if isinstance(each, str):
                parts.append(each)
                continue
            operand, level = each
            text = operand.least()
            is_last = number == len(self.pieces) - 1
            captures = not is_last and operand.right_edge() < self.level
            parts.append(f"({text})" if operand.level < level or captures else text)
        return "".join(parts)

    def right_edge(self) -> int:
        """The least level of a prefix operator that would take what follows this text into its operand."""
        last = self.pieces[-1]
        if isinstance(last, str):
            return _ATOM
        operand, level = last
        inner = operand.right_edge() if operand.level >= level else _ATOM
        return min(inner, self.level) if self.is_prefix else inner


def _enclosed(tree: Tree, text: str) -> str:
    return text if tree.level == _ATOM else f"({text})"


def _atom(text: str) -> Tree:
    return Tree(_ATOM, (text,))


class Expressions:
    def __init__(self, random: Random) -> None:
        self.random = random

    def of_any_kind(self, depth: int = 3) -> Tree:
        return self.random.choice((self.integer, self.boolean, self.boolean, self.text))(depth)

    # Kinds

    def integer(self, depth: int) -> Tree:
        if depth <= 0:
            return self._leaf("integer", lambda: str(self.random.randint(0, 9)))
        one, other = self.integer(depth - 1), self.integer(self.random.randint(0, depth - 1))
        word, level = self.random.choice(
            (
                *(("+", PLUS), ("-", PLUS), ("*", TIMES), ("&", OTHER), ("|", OTHER), ("<<", OTHER), (">>", OTHER)),
                *(("unary -", SIGN), ("~", OTHER), ("~", OTHER), ("::", CAST), ("case", _ATOM), ("%", TIMES)),
            )
        )
        match word:
            case "unary -":
                return Tree(SIGN, ("- ", (one, SIGN)))
            case "~":
                return Tree(OTHER, ("~ ", (one, OTHER + 1)))
            case "::":
                return Tree(CAST, ((one, CAST), "::BIGINT"))
            case "case":
                return Tree(_ATOM, ("CASE WHEN ", (self.boolean(0), 0), " THEN ", (one, 0), " ELSE 1 END"))
            case "<<" | ">>" | "%":
                return Tree(level, ((one, level), f" {word} ", (_atom(str(self.random.randint(1, 3))), level + 1)))
            case _:
                return _binary(word, level, one, other)

    def boolean(self, depth: int) -> Tree:
        if depth <= 0:
            return self._leaf("boolean", lambda: self.random.choice(("TRUE", "FALSE", "NULL::BOOLEAN")))
        make: Callable[[int], Tree] = self.random.choice(
            (self._comparison, self._comparison, self._range, self._is, self._not, self._connected, self._connected)
        )
        return make(depth - 1)

    def text(self, depth: int) -> Tree:
        if depth <= 0:
            return self._leaf("text", lambda: self.random.choice(("'x'", "''", "'1'")))
        if self.random.random() < 0.3:
            return Tree(CAST, ((self.integer(depth - 1), CAST), "::VARCHAR"))
        return _binary("||", OTHER, self.text(depth - 1), self.text(self.random.randint(0, depth - 1)))

    def _leaf(self, kind: str, literal: Callable[[], str]) -> Tree:
        text = self.random.choice(COLUMNS[kind]) if self.random.random() < 0.6 else literal()
        return Tree(CAST, ((_atom("NULL"), CAST), "::BOOLEAN")) if "::" in text else _atom(text)

    # Conditions

    def _comparison(self, depth: int) -> Tree:
        make = self.random.choice((self.integer, self.integer, self.text, self.boolean))
        word = self.random.choice(("=", "<>", "<", ">", "<=", ">="))
        one, other = make(depth), make(self.random.randint(0, max(depth, 0)))
        return Tree(COMPARISON, ((one, COMPARISON + 1), f" {word} ", (other, COMPARISON + 1)))

    def _range(self, depth: int) -> Tree:
        negated = self.random.choice(("", "NOT "))
        match self.random.choice(("between", "in", "like")):
            case "between":
                low, high = self.integer(self.random.randint(0, 1)), self.integer(self.random.randint(0, 1))
                operands = ((low, RANGE + 1), " AND ", (high, RANGE + 1))
                return Tree(RANGE, ((self.integer(depth), RANGE + 1), f" {negated}BETWEEN ", *operands))
            case "in":
                items = ", ".join(str(self.random.randint(-3, 9)) for _ in range(self.random.randint(1, 3)))
                return Tree(RANGE, ((self.integer(depth), RANGE + 1), f" {negated}IN ({items})"))
            case _:
                pattern = Tree(_ATOM, (self.random.choice(("'x%'", "'%1'", "'_'")),))
                return Tree(RANGE, ((self.text(depth), RANGE + 1), f" {negated}LIKE ", (pattern, RANGE + 1)))

    def _is(self, depth: int) -> Tree:
        word = self.random.choice(("NULL", "NOT NULL", "TRUE", "NOT FALSE", "UNKNOWN"))
        make = (
            self.boolean
            if word in {"TRUE", "NOT FALSE", "UNKNOWN"}
            else self.random.choice((self.integer, self.boolean))
        )
        return Tree(IS, ((make(depth), IS), f" IS {word}"))

    def _not(self, depth: int) -> Tree:
        return Tree(NOT, ("NOT ", (self.boolean(depth), NOT)))

    def _connected(self, depth: int) -> Tree:
        word, level = self.random.choice((("AND", AND), ("OR", OR)))
        return _binary(word, level, self.boolean(depth), self.boolean(self.random.randint(0, max(depth, 0))))


def _binary(word: str, level: int, left: Tree, right: Tree) -> Tree:
    return Tree(level, ((left, level), f" {word} ", (right, level + 1)))
