"""Find the name that a mistyped one meant. A suggestion that is far-fetched misleads more than none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTEST_PREFIX = 4
_MOST_LISTED = 12


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the existing name that a mistyped one most probably meant; None where none is near.

    Near is one slip (a letter added, left out, replaced, or two swapped) in a name of up to five letters, two in one of
    up to ten, three in a longer one; more than one slip only behind the same first letter. Else near is the only name
    that begins with what was written.

    >>> nearest("ordesr", ["orders", "customers"]), nearest("DEALLOCATE", ["DELETE"]), nearest("cust", ["customer"])
    ('orders', None, 'customer')
    """
    wanted = name.casefold()
    by_folded = {candidate.casefold(): candidate for candidate in names}
    if wanted in by_folded:
        return by_folded[wanted]
    allowed = 1 if len(wanted) <= 5 else 2 if len(wanted) <= 10 else 3
    found = min(((_slips(wanted, folded, allowed), folded) for folded in by_folded), default=(allowed + 1, ""))
    if found[0] <= allowed and len(wanted) > 1:
        return by_folded[found[1]]
    longer = [folded for folded in by_folded if folded.startswith(wanted)]
    return by_folded[longer[0]] if len(longer) == 1 and len(wanted) >= _SHORTEST_PREFIX else None


def nearest_column(name: str, columns: Iterable[str]) -> str | None:
    """Return the nearest column, else a sentence with all of them; None where there are too many to read.

    >>> columns = ["id", "amount"]
    >>> nearest_column("amont", columns), nearest_column("price", columns)
    ('amount', 'The columns are id, amount.')
    """
    known = list(dict.fromkeys(columns))
    listed = f"The columns are {', '.join(known)}." if 1 < len(known) <= _MOST_LISTED else None
    return nearest(name, known) or listed


def _slips(left: str, right: str, most: int) -> int:
    """Count the slips between two names; `most + 1` where there are more, or where first letters differ too.

    >>> _slips("ordesr", "orders", 2), _slips("amont", "amount", 1), _slips("serial", "real", 2)
    (1, 1, 3)
    """
    if abs(len(left) - len(right)) > most or (left[0] != right[:1] and len(left) < 3):
        return most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for position, letter in enumerate(left, 1):
        older, before, row = before, row, [position]
        for other, candidate in enumerate(right, 1):
            least = min(before[other] + 1, row[-1] + 1, before[other - 1] + (letter != candidate))
            if position > 1 and other > 1 and letter == right[other - 2] and left[position - 2] == candidate:
                least = min(least, older[other - 2] + 1)
            row.append(least)
    return most + 1 if row[-1] > 1 and left[0] != right[0] else min(row[-1], most + 1)
