"""What sqlglot's parser reads over without a word: found in the tokens of a query that it has taken for a good one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from remuda.errors import parsing_error
from remuda.sql.parse.tokens import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def refuse_overlooked(tokens: Sequence[Token]) -> None:
    _refuse_open_parentheses(tokens)
    kinds = {token.token_type for token in tokens}
    for kind, refuse in _BY_KIND:
        if kind in kinds:
            refuse(tokens)
    for position, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type in _PLAIN and following.token_type is not TokenType.DOT:
            continue  # most of a long VALUES
        if (token.token_type, following.token_type) in _NEVER_TOGETHER:
            raise _not_expected(following)
        if token.token_type in _NEEDS_EXPRESSION and following.token_type in _NO_EXPRESSION:
            raise _not_expected(following)
        if token.token_type is following.token_type and token.token_type in _NEVER_TWICE:
            raise _not_expected(following)
        if token.token_type is TokenType.VALUES and _begins_value(tokens, position + 1):
            raise parsing_error(f"expected (, found {following.text!r}", span=span_of(following))
        is_split = following.start > token.end + 1 and token.token_type is following.token_type
        if is_split and token.token_type in {TokenType.GT, TokenType.LT}:  # x > > 1, which is not x >> 1
            raise _not_expected(following)
        is_upsert = token.token_type is TokenType.UPDATE and position and tokens[position - 1].text.upper() == "DO"
        if is_upsert and following.token_type is not TokenType.SET:
            raise parsing_error(f"expected SET, found {following.text!r}", span=span_of(following))
        if token.token_type is TokenType.DISTINCT and following.token_type is TokenType.ON:
            _refuse_comma_after_list(tokens, position + 2)
        if following.token_type is TokenType.NUMBER and token.token_type in _TYPES:
            raise _not_expected(following)  # sqlglot reads INTEGER 1, and even NULL 1, as a cast
        if token.token_type is TokenType.OVER and not _begins_window(following):
            raise parsing_error("OVER needs a window behind it", span=span_of(token))
        if following.token_type is TokenType.DOT and not _ends_name(token) and not _is_fraction(tokens, position + 1):
            raise _not_expected(following)
        if token.token_type is TokenType.L_PAREN and following.token_type is TokenType.R_PAREN:
            _refuse_empty_list(tokens, position)
        if token.token_type is TokenType.ALIAS and following.token_type in _NO_NAME:
            raise parsing_error("AS needs a name behind it", span=span_of(token))
    if tokens[-1].token_type is TokenType.IN:
        raise parsing_error("IN needs a list or a query behind it", span=span_of(tokens[-1]))
    if tokens[-1].token_type in {TokenType.ALIAS, TokenType.OVER}:
        what = "AS needs a name" if tokens[-1].token_type is TokenType.ALIAS else "OVER needs a window"
        raise parsing_error(f"{what} behind it", span=span_of(tokens[-1]))


_PLAIN = frozenset({TokenType.COMMA, TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING, TokenType.IDENTIFIER})
"""After these any word is the parser's business."""
_NO_NAME = frozenset({TokenType.COMMA, TokenType.R_PAREN, TokenType.NUMBER})
_NEEDS_EXPRESSION = frozenset(
    {TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.PLUS, TokenType.IN}
)
_NO_EXPRESSION = frozenset(
    {
        *(TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
        *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.UNION, TokenType.EXCEPT),
        *(TokenType.INTERSECT, TokenType.ROWS, TokenType.ALIAS),
    }
)
_NEVER_TOGETHER = frozenset({(TokenType.SELECT, TokenType.ALIAS), (TokenType.NOT, TokenType.IS)})
_NEVER_TWICE = frozenset(
    {
        *(TokenType.ALIAS, TokenType.AND, TokenType.BETWEEN, TokenType.DISTINCT, TokenType.ELSE, TokenType.FROM),
        *(
            TokenType.HAVING,
            TokenType.ILIKE,
            TokenType.IN,
            TokenType.INTO,
            TokenType.IS,
            TokenType.JOIN,
            TokenType.LIKE,
        ),
        *(TokenType.LIMIT, TokenType.OFFSET, TokenType.ON, TokenType.OR, TokenType.OVER, TokenType.SELECT),
        *(TokenType.SET, TokenType.THEN, TokenType.UNION, TokenType.USING, TokenType.VALUES, TokenType.WHEN),
        *(TokenType.WHERE, TokenType.WITH),
    }
)
_CONSTANTS = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE})
_TYPES = frozenset(Parser.TYPE_TOKENS) - {TokenType.INTERVAL, TokenType.RANGE}
_BEFORE_NAMES = frozenset(
    {
        *(TokenType.AND, TokenType.ALIAS, TokenType.DISTINCT, TokenType.FROM, TokenType.INTO, TokenType.JOIN),
        *(
            TokenType.NOT,
            TokenType.ON,
            TokenType.OR,
            TokenType.SELECT,
            TokenType.SET,
            TokenType.UPDATE,
            TokenType.WHERE,
        ),
    }
)
_LISTS = frozenset({"ON", "USING", "EXCLUDE", "EXCEPT", "REPLACE", "RENAME"})
_FRAME_ENDS = frozenset({"PRECEDING", "FOLLOWING", "ROW"})
_FRAME_UNITS = frozenset({"ROWS", "RANGE", "GROUPS"})


def _begins_value(tokens: Sequence[Token], position: int) -> bool:
    """Test for `VALUES 1` and `VALUES upper('a')`; `values` may be the name of a column too."""
    kind = tokens[position].token_type
    is_called = kind in _TYPES | {TokenType.VAR} and _kind(tokens, position + 1) is TokenType.L_PAREN
    return kind in _CONSTANTS or is_called


def _refuse_comma_after_list(tokens: Sequence[Token], position: int) -> None:
    """Refuse `SELECT DISTINCT ON (a), b`."""
    after = _after_parentheses(tokens, position)
    if _kind(tokens, after) is TokenType.COMMA:
        raise _not_expected(tokens[after])


def _refuse_windows_without_as(tokens: Sequence[Token]) -> None:
    """Refuse `WINDOW a AS (PARTITION BY g), b`."""
    for position, token in enumerate(tokens):
        if token.token_type is not TokenType.WINDOW or _kind(tokens, position + 2) is not TokenType.ALIAS:
            continue
        at = _after_parentheses(tokens, position + 3)
        while _kind(tokens, at) is TokenType.COMMA:
            if _kind(tokens, at + 2) is not TokenType.ALIAS:
                raise parsing_error(
                    "a window is written: name AS (...)", span=span_of(tokens[min(at + 1, len(tokens) - 1)])
                )
            at = _after_parentheses(tokens, at + 3)


def _begins_window(token: Token) -> bool:
    """Test for `OVER (...)` and `OVER name`."""
    if token.token_type in {TokenType.L_PAREN, TokenType.IDENTIFIER}:
        return True
    return token.text.isidentifier() and token.token_type not in {TokenType.FROM, TokenType.ALIAS}


def _is_fraction(tokens: Sequence[Token], position: int) -> bool:
    """Test for `.5`, but not for that of `1 .5` or `(1).5`."""
    is_number = (
        _kind(tokens, position + 1) is TokenType.NUMBER and tokens[position + 1].start == tokens[position].end + 1
    )
    return is_number and tokens[position - 1].token_type not in {TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING}


def _ends_name(token: Token) -> bool:
    """Test whether a dot may follow: `orders.id`, `"my table".id`."""
    is_word = token.text.replace("$", "_").isidentifier() and token.token_type not in _BEFORE_NAMES
    return is_word or token.token_type is TokenType.IDENTIFIER


def _refuse_empty_list(tokens: Sequence[Token], position: int) -> None:
    """Refuse `* EXCLUDE ()` and `DISTINCT ON ()`."""
    if position and tokens[position - 1].text.upper() in _LISTS:
        raise parsing_error(
            f"{tokens[position - 1].text.upper()} needs a name in its list", span=span_of(tokens[position])
        )
    if position > 1 and tokens[position - 2].text.upper() == "EXCLUDE":  # * EXCLUDE name ()
        raise _not_expected(tokens[position])


def _refuse_common_tables_without_as(tokens: Sequence[Token]) -> None:
    """Refuse `WITH q (SELECT 1) SELECT * FROM q`."""
    for position, token in enumerate(tokens):
        if token.token_type is not TokenType.WITH or _kind(tokens, position + 2) is None:
            continue
        if tokens[position + 1].text.upper() in {"TIME", "TIES", "ORDINALITY"}:
            continue
        at = position + 1 + (tokens[position + 1].text.upper() == "RECURSIVE")
        while at + 1 < len(tokens):
            at += 1
            if tokens[at].token_type is TokenType.L_PAREN:
                at = _after_parentheses(tokens, at)
            if _kind(tokens, at) is not TokenType.ALIAS:
                blamed = tokens[min(at, len(tokens) - 1)]
                raise parsing_error(f"expected AS, found {blamed.text!r}", span=span_of(blamed))
            while at < len(tokens) and tokens[at].token_type is not TokenType.L_PAREN:
                at += 1
            at = _after_parentheses(tokens, at)
            if _kind(tokens, at) is not TokenType.COMMA:
                break
            at += 1


def _kind(tokens: Sequence[Token], position: int) -> TokenType | None:
    return tokens[position].token_type if position < len(tokens) else None


def _after_parentheses(tokens: Sequence[Token], position: int) -> int:
    depth = 0
    for at in range(position, len(tokens)):
        depth += (tokens[at].token_type is TokenType.L_PAREN) - (tokens[at].token_type is TokenType.R_PAREN)
        if depth == 0:
            return at + 1
    return len(tokens)


def _refuse_branches_without_then(tokens: Sequence[Token]) -> None:
    """Refuse `CASE WHEN a = 1 2 ELSE 3 END`."""
    open_branches: list[bool] = []
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.CASE:
            open_branches.append(False)
        elif open_branches and kind in {TokenType.WHEN, TokenType.ELSE, TokenType.END} and open_branches[-1]:
            raise parsing_error(f"expected THEN, found {token.text!r}", span=span_of(token))
        elif open_branches and kind in {TokenType.WHEN, TokenType.THEN}:
            open_branches[-1] = kind is TokenType.WHEN
        if kind is TokenType.END and open_branches:
            open_branches.pop()


def _refuse_frames_without_between(tokens: Sequence[Token]) -> None:
    """Refuse `ROWS UNBOUNDED PRECEDING AND CURRENT ROW`: two ends need BETWEEN."""
    for position, token in enumerate(tokens):
        following = tokens[position + 1 : position + 6]
        if token.text.upper() not in _FRAME_UNITS or not following or following[0].token_type is TokenType.BETWEEN:
            continue
        for end, after in pairwise(following):
            if end.text.upper() in _FRAME_ENDS and after.token_type is TokenType.AND:
                raise _not_expected(after)


def refuse_missing_into(tokens: Sequence[Token]) -> None:
    """Refuse `INSERT orders VALUES (1)`, before the parse, which might complain of something else first."""
    if tokens[0].token_type is TokenType.INSERT:
        tokens = tokens[:4]
    for position, token in enumerate(tokens):
        if token.token_type is not TokenType.INSERT or (
            position and tokens[position - 1].token_type is not TokenType.R_PAREN
        ):
            continue
        following = tokens[position + 1 : position + 4]
        if following and following[0].token_type is TokenType.OR:  # INSERT OR IGNORE INTO
            following = following[2:]
        if following and following[0].token_type is not TokenType.INTO:
            word = following[0]
            hint = "Use INSERT INTO ... ON CONFLICT DO NOTHING." if word.text.upper() == "IGNORE" else None
            raise parsing_error(f"expected INTO, found {word.text!r}", span=span_of(word), suggestion=hint)


def _refuse_wrong_using(tokens: Sequence[Token]) -> None:
    """Refuse `JOIN u USING (nosuch.id)`, as a merged column has no table, and `JOIN u USING id`."""
    within = has_join = False
    for token, following in pairwise(tokens):
        has_join = has_join or token.token_type is TokenType.JOIN  # the first USING of a DELETE names tables
        if token.token_type is TokenType.USING:
            within = following.token_type is TokenType.L_PAREN
            if not within and has_join:
                raise parsing_error(f"expected (, found {following.text!r}", span=span_of(following))
        elif token.token_type is TokenType.R_PAREN:
            within = False
        elif within and following.token_type is TokenType.DOT:
            raise parsing_error("USING takes names of columns without their table", span=span_of(token))


def _refuse_open_parentheses(tokens: Sequence[Token]) -> None:
    """Refuse `SELECT CAST(1 AS INTEGER` and `SELECT EXTRACT(YEAR FROM day FROM orders`."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type is TokenType.R_PAREN and opened:
            opened.pop()
    if opened:
        raise parsing_error("( is never closed", span=span_of(opened[-1]))


def _refuse_clauses_twice(tokens: Sequence[Token]) -> None:
    """Refuse `UPDATE orders SET a = 1 SET b = 2` and `WHERE id = 1 WHERE id = 2`: only the last would count."""
    depth = 0
    seen: set[TokenType] | None = None
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.UPDATE and seen is None and before in {None, TokenType.R_PAREN}:
            seen = set()  # the verb, at the beginning or behind WITH; not that of ON CONFLICT DO UPDATE
        elif not depth and seen is not None and kind in _ONCE and before is not TokenType.DISTINCT:
            if kind in seen:
                raise _not_expected(token)
            seen.add(kind)
        before = kind


_ONCE = frozenset({TokenType.SET, TokenType.FROM, TokenType.WHERE})


def _not_expected(token: Token) -> Exception:
    return parsing_error(f"{token.text!r} is not expected here", span=span_of(token))


_BY_KIND = (
    (TokenType.UPDATE, _refuse_clauses_twice),
    (TokenType.USING, _refuse_wrong_using),
    (TokenType.WITH, _refuse_common_tables_without_as),
    (TokenType.OVER, _refuse_frames_without_between),
    (TokenType.WINDOW, _refuse_windows_without_as),
    (TokenType.CASE, _refuse_branches_without_then),
)
"""Checks of constructs, by a token that they all have."""
