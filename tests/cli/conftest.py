"""What the tests of the shell share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import remuda
from remuda.cli.shell import Screen, Shell
from tests.cli.terminal import open_terminal

__all__ = ["open_terminal"]


@pytest.fixture
def shell() -> Iterator[Shell]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (k BIGINT, name VARCHAR, PRIMARY KEY (k))")
        grid.sql("CREATE INDEX t_name ON t (name) TYPE HASH")
        grid.sql("INSERT INTO t VALUES (1, 'ann'), (2, NULL)")
        yield Shell(grid, Screen(interactive=True))


@pytest.fixture
def feed(shell: Shell, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Return a function that runs a text and returns what is printed, without the last line break."""

    def run(text: str) -> str:
        shell.run(text)
        printed = capsys.readouterr()
        return (printed.out + printed.err).removesuffix("\n")

    return run
