"""Opens, maps, lists and removes the files of a store without following symbolic links.

A folder may come from an attacker. The path that a user names may be a link; whatever lies below it must be a real
folder or a regular file, or a link in it could make the store read, overwrite or delete what is not its own. So a file
is opened relative to a handle of its folder, each step with `O_NOFOLLOW`, and only regular files are removed.

`levels` is how many folders lie between the store's own folder and the file: none for MANIFEST, one for `wal/1.log`,
two for `maps/<map>/<segment>.arrow`. Those are the folders that must not be links.

A mapping holds no file descriptor (`map_file`): a process may have many maps of many segments, and often has only
1,024 descriptors.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import stat
import weakref
from contextlib import contextmanager, suppress
from errno import ELOOP, ENOTDIR
from typing import TYPE_CHECKING, BinaryIO

from remuda.errors import StorageError, damage_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = re.compile(r"[0-9a-f]{16}")
"""What `catalog.new_id` makes."""
_SEGMENT_ID = r"(load[0-9a-f]{16}-)?[0-9a-f]{16}"
SEGMENT_ID = re.compile(_SEGMENT_ID)
"""That of a segment which a Spark job has written begins with the id of the job."""
DELETION_FILE = re.compile(_SEGMENT_ID + r"\.[0-9a-f]{16}\.deleted")
MAP_FILE = re.compile(rf"{_SEGMENT_ID}(\.arrow|\.keys|\.[0-9a-f]{{16}}\.(index|deleted))|{ID.pattern}\.group")
"""A file in the folder of a map: of a segment, or of a partition group."""
DELIVERY_ID = re.compile(r"(load)?[0-9a-f]{16}")

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A FIFO in the place of a file would keep the process waiting for ever: it is opened without waiting, and refused.
_FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_folder(path: Path, levels: int) -> Iterator[int]:
    """Open a folder for calls that take a `dir_fd`; its last `levels` steps must not be links."""
    *_, trusted = path, *path.parents[:levels]
    descriptor = os.open(trusted, _FOLDER_FLAGS)
    try:
        for name in path.parts[len(trusted.parts) :]:
            outer, descriptor = descriptor, os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(outer)  # Not the one that is closed below: a thread that is interrupted here would do it twice.
        yield descriptor
    except OSError as error:
        if error.errno in {ELOOP, ENOTDIR}:
            raise StorageError("a symbolic link or a file stands where a store has a folder", path) from error
        raise
    finally:
        os.close(descriptor)


def open_file(path: Path, flags: int, *, levels: int) -> int:
    """Open a regular file. A new one gets the permissions of its folder, so that a group can share a store."""
    try:
        with open_folder(path.parent, levels) as folder:
            descriptor = os.open(path.name, flags | _FILE_FLAGS, 0o600, dir_fd=folder)
            mode = os.fstat(folder).st_mode & 0o666
    except OSError as error:
        if error.errno == ELOOP:
            raise StorageError("a symbolic link stands where a store has a file", path) from error
        raise
    try:
        found = os.fstat(descriptor)
        if flags & os.O_CREAT and found.st_size == 0 and stat.S_IMODE(found.st_mode) != mode:
            with suppress(OSError):  # It may be a file that another user has made.
                os.fchmod(descriptor, mode)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise StorageError("this is no regular file", path)
    return descriptor


def create_file(path: Path, *, levels: int) -> BinaryIO:
    """Open a new file for writing, in the place of one that a killed process has left."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = open_file(path, flags, levels=levels)
    except FileExistsError:
        remove_file(path, levels=levels)
        descriptor = open_file(path, flags, levels=levels)
    return os.fdopen(descriptor, "wb")


def open_for_reading(path: Path, *, levels: int) -> BinaryIO:
    return os.fdopen(open_file(path, os.O_RDONLY, levels=levels), "rb")


def read_file(path: Path, *, levels: int, most: int | None = None) -> bytes:
    """Read a whole file, which is damaged if it has more bytes than `most`."""
    with open_for_reading(path, levels=levels) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise damage_error(f"the file has more than {most} bytes", path, most)
        return file.read()


def check_form(form: re.Pattern[str], name: str) -> None:
    """Raise `ValueError` for a name that does not have the form of those that a store gives."""
    if not form.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is no name that a store gives")


def make_folder(path: Path) -> None:
    """Make a folder with the permissions of the one that it stands in; one that exists stays as it is."""
    if not path.parent.exists():
        make_folder(path.parent)
    mode = path.parent.stat().st_mode & 0o2777
    try:
        path.mkdir()
    except FileExistsError:
        refuse_link(path)
        return
    if stat.S_IMODE(path.stat().st_mode) != mode:
        with suppress(OSError):
            path.chmod(mode)


def refuse_link(path: Path) -> None:
    """Raise if this is there and no real folder."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise StorageError("a symbolic link or a file stands where a store has a folder", path)


def list_names(folder: Path, *, levels: int) -> list[str]:
    """Return the names of all that is in a folder: none where it is missing or is none of ours."""
    try:
        with open_folder(folder, levels) as descriptor:
            return os.listdir(descriptor)  # noqa: PTH208 - a descriptor is no path
    except (FileNotFoundError, StorageError):
        return []


def list_files(folder: Path, *, levels: int, form: re.Pattern[str]) -> list[str]:
    """Return names of the regular files whose names have this form: none where the folder is missing or is none of
    ours."""
    try:
        with open_folder(folder, levels) as descriptor, os.scandir(descriptor) as entries:
            return sorted(
                entry.name for entry in entries if form.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            )
    except (FileNotFoundError, StorageError):
        return []


def remove_file(path: Path, *, levels: int) -> None:
    """Remove a regular file; nothing happens where there is none, or something else of that name."""
    try:
        with open_folder(path.parent, levels) as folder:
            if stat.S_ISREG(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(path.name, dir_fd=folder)
    except (FileNotFoundError, StorageError):
        return


def map_file(path: Path, *, levels: int) -> memoryview:
    """Map a file for reading. The mapping goes when the last view of it does, and holds no descriptor meanwhile."""
    descriptor = open_file(path, os.O_RDONLY, levels=levels)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return memoryview(b"")
        address = _mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == _MAP_FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)
    mapped = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(mapped, _munmap, address, size).atexit = False
    return memoryview(mapped).cast("B").toreadonly()


def address_of(mapped: memoryview) -> int:
    """Return where in memory a mapped file, or a part of it that begins where the file does, begins."""
    return ctypes.addressof(mapped.obj) if isinstance(mapped.obj, ctypes.Array) else 0


# Python's own mmap keeps a duplicate of the descriptor as long as it lives (before 3.13 without a choice), Arrow's the
# file itself.
_libc = ctypes.CDLL(None, use_errno=True)
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_munmap = _libc.munmap
_munmap.restype = ctypes.c_int
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value
