"""Checksums of files and of parts of them, read piece by piece so that others get their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from xxhash import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1 << 20
"""Bytes. Reading and hashing so many takes a fifth of a millisecond."""


def no_pause() -> None:
    """For whoever waits for the answer."""


def checksum_of(file: BinaryIO, offset: int, length: int, pause: Callable[[], None] = no_pause) -> str:
    """The checksum of a part of a file; `pause` is called after each piece."""
    digest, piece = xxh3_64(), bytearray(min(PIECE, length))
    file.seek(offset)
    while length > 0:
        view = memoryview(piece)[: min(PIECE, length)]
        got = file.readinto(view)  # type: ignore[attr-defined]
        if not got:
            break
        digest.update(view[:got])
        length -= got
        pause()
    return digest.hexdigest()
