"""Values at the edges of each type, as texts that CAST reads, and one map for each type that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = ("0", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32768", "2147483647", "2147483648")
FRACTIONS = ("0.5", "-0.5", "1.5", "2.5", "-2.5", "0.05", "99.995", "0.125")
LARGE = ("9223372036854775807", "-9223372036854775808", "9007199254740993", "99999999999999999999")
DATES = ("0001-01-01", "1582-10-15", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31")
CLOCKS = ("00:00:00", "23:59:59.999999", "12:30:00", "01:02:03.5")

EDGES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("0", "1", "-1", "127", "-128"),
    "SMALLINT": ("0", "127", "128", "-129", "32767", "-32768"),
    "INTEGER": (*NUMBERS[:-1], "-2147483648"),
    "BIGINT": (*NUMBERS, *LARGE[:3]),
    "DECIMAL(4, 2)": ("0", "99.99", "-99.99", "0.5", "1.5", "2.5", "-2.5", "0.01"),
    "DECIMAL(20, 0)": (*NUMBERS, *LARGE),
    "DECIMAL(38, 10)": (*NUMBERS, *FRACTIONS, *LARGE, "0.0000000001", "9999999999999999999999999999.9999999999"),
    "REAL": (*NUMBERS[:6], *FRACTIONS, "3.4e38", "1e-40", "NaN", "Infinity", "-Infinity", "-0.0"),
    "DOUBLE": (*NUMBERS, *FRACTIONS, *LARGE, "1e39", "1.7e308", "5e-324", "NaN", "Infinity", "-Infinity", "-0.0"),
    "DATE": DATES,
    "TIME": CLOCKS,
    "TIMESTAMP": tuple(f"{day} {clock}" for day in DATES for clock in CLOCKS),
    "TIMESTAMP WITH TIME ZONE": tuple(f"{day} {clock}+00" for day in DATES for clock in CLOCKS),
    "JSON": ("1", "null", '"x"', "[1, 2]", '{"a": 1}'),
    "VARBINARY": (),
    "VARCHAR": (
        *NUMBERS,
        *FRACTIONS,
        *LARGE,
        *DATES,
        *CLOCKS,
        *(
            "",
            " ",
            "x",
            "NULL",
            "null",
            "true",
            "T",
            "off",
            "2",
            " 7 ",
            "+7",
            "+-7",
            "--7",
            "7.",
            ".7",
            ".",
            "+",
            "-",
            "1e3",
        ),
        *("1e400", "-1e400", "1e-400", "1E5", "0x10", "0X1f", "1_000", "1,000", "٣", "7\n", "\t7", "1 2", "1e", "e1"),
        *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "infinity", "-Infinity", "INF", "infinit", "1e39", "1e308"),
        *(
            "0000-01-01",
            "0000-00-00",
            "0000-12-31 23:59:59",
            "-0001-01-01",
            "10000-01-01",
            "9999-12-31 23:59:59.9999999",
        ),
        *(
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-1-5",
            "20240105",
            "2024-01",
            "2024",
            "01/02/2024",
        ),
        *("2024-01-01T10:00:00", "2024-01-01 25:00:00", "2024-01-01 10:60", "2024-01-01 10:00:60", "2024-01-01 10"),
        *(
            "2024-01-01 10:00+02",
            "0001-01-01 00:00:00+14",
            "9999-12-31 23:59:59-14",
            "2024-01-01 10:00:00Z",
            "2024-W01-1",
        ),
        *(
            "2024-01-01 10:00 Europe/Berlin",
            "2024-01-01 10:00+99",
            "10:00",
            "1:2:3",
            "24:00:00",
            "10:00:00.1234567",
            "10",
        ),
        *(
            "99999999999999999999999999999999999999",
            "100000000000000000000000000000000000000",
            "0.00000000000000000000001",
        ),
        *(
            "1" * 5000,
            "0." + "3" * 500,
            "1 day",
            "1 month",
            "-1 day 02:00",
            "1 month 1 day",
            "99999999999 years",
            "P1D",
        ),
        *("[1, 2", "{}", "[]", '{"a": 1}', '"x"', "\u00e9", "\U0001f40e", "a\x00b", "1\x00", "999999999999999999 days"),
    ),
}
"""Texts by the type that reads them; those of VARCHAR are texts that some type reads, or nearly."""

TARGETS = (*EDGES, "DECIMAL(38, 38)", "DECIMAL(1, 0)", "DECIMAL(38, 0)", "VARCHAR(3)")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def constant(type_: str, text: str) -> str:
    """The value of a type, written without a column."""
    return quoted(text) if type_ == "VARCHAR" else f"CAST({quoted(text)} AS {type_})"


def pairs() -> Iterator[tuple[str, str]]:
    return ((source, target) for source in EDGES for target in TARGETS)
