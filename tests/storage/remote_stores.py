"""What tests do to remote stores behind their backs."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from remuda.storage.folder.manifest import NAME, decode_manifest, encode_manifest
from remuda.storage.remote.roots import FOLDER, root_name, root_number
from tests.storage.s3_server import S3Server


def root_numbers(s3: S3Server, place: str) -> list[int]:
    """The numbers of all roots of a store, in ascending order."""
    found = (root_number(PurePosixPath(name).name) for name in s3.files(f"{place}/{FOLDER}"))
    return sorted(number for number in found if number is not None)


def newest_root(s3: S3Server, place: str) -> int:
    return root_numbers(s3, place)[-1]


def to_old_form(s3: S3Server, place: str) -> None:
    """Make a store what versions before numbered roots have written: one manifest, which is replaced."""
    path = f"{place}/{root_name(newest_root(s3, place))}"
    s3.write(f"{place}/{NAME}", encode_manifest(decode_manifest(s3.read(path), path)))
    s3.filesystem.delete_dir(f"{place}/{FOLDER}")


def forget_cached(cache: Path) -> None:
    """Remove what is in a cache, as if others had needed the room."""
    for path in [*(cache / "files").rglob("*.*"), *(cache / "blocks").rglob("*.*")]:
        path.unlink()


def held_bytes(cache: Path) -> int:
    """The bytes on disk of what is in a cache."""
    paths = [*(cache / "files").rglob("*.*"), *(cache / "blocks").rglob("*.*")]
    return sum(512 * path.stat().st_blocks for path in paths)
