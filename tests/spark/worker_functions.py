"""What the tests let tasks do. Workers import this file, which the tests hand to Spark."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.errors import Span, StorageError, data_error

if TYPE_CHECKING:
    from collections.abc import Iterator


def echo(payload: bytes) -> Iterator[bytes]:
    yield payload
    yield str(os.getpid()).encode()


def joined(shared: bytes, payload: bytes) -> Iterator[bytes]:
    yield shared + payload


def divide(payload: bytes) -> Iterator[bytes]:
    yield b"a first result"
    if payload == b"0":
        raise data_error("division by zero", span=Span(7, 12), suggestion="NULLIF")


def damaged(payload: bytes) -> Iterator[bytes]:
    raise StorageError("bad checksum", payload.decode(), 42)


def broken(payload: bytes) -> Iterator[bytes]:
    raise ValueError(f"cannot read {payload.decode()}")


def missing(payload: bytes) -> Iterator[bytes]:
    raise ModuleNotFoundError("No module named 'remuda'")


def leave(payload: bytes) -> Iterator[bytes]:
    os._exit(1)


def sleep(payload: bytes) -> Iterator[bytes]:
    time.sleep(float(payload))
    yield payload


def frozen_objects(payload: bytes) -> Iterator[bytes]:
    import gc

    yield str(gc.get_freeze_count()).encode()


def executor_process(payload: bytes) -> Iterator[bytes]:
    """The Java process: a worker is forked by a daemon, which that one started. It takes a while, so that all slots
    have something to do."""
    time.sleep(0.5)
    status = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
    yield status.rpartition(")")[2].split()[1].encode()
