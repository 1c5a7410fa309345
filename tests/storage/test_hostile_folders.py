"""Opening a folder that a stranger has prepared, or in which others have left files, harms nothing outside it."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

import remuda
from remuda.errors import RemudaError, StorageError
from remuda.storage.folder.group_file import SegmentEntry, encode_group, group_name, read_group
from remuda.storage.folder.inbox import Delivery
from remuda.storage.folder.manifest import Manifest, decode_manifest, encode_manifest

HEX = "0123456789abcdef"
VICTIMS = (f"{HEX}.arrow", f"{HEX}.keys", f"{HEX}.{HEX}.index", "00000001.log", f"{HEX}.lease", "notes.txt", "MANIFEST")
"""Names that a careless clean-up could take for files of a store."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a map that has an index, segments, deletions and records in the write-ahead log."""
    path = tmp_path_factory.mktemp("template") / "shop"
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, s VARCHAR)")
        grid.sql("CREATE INDEX t_s ON t (s) TYPE SORTED")
        grid.load("t", pa.table({"id": range(20_000), "s": [f"s{number}" for number in range(20_000)]}))
        grid.sql("DELETE FROM t WHERE id < 10")
        grid.checkpoint()
        grid.sql("INSERT INTO t VALUES (1, 'one')")
    return path


@pytest.fixture
def store(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop")


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder outside, which must be as it was when the test is over."""
    path = tmp_path / "victim"
    path.mkdir()
    for name in VICTIMS:
        (path / name).write_text(f"precious {name}")
    yield path
    assert {each.name: each.read_text() for each in path.iterdir()} == {name: f"precious {name}" for name in VICTIMS}


def use(path: Path) -> None:
    """Open, read, write, fold and drop: everything that looks at the folder or cleans it up."""
    with remuda.open(path, read_only=True) as grid:
        assert len(grid.map("t")) == 19_991
    with remuda.open(path) as grid:
        assert grid.sql("SELECT COUNT(*) FROM t WHERE s >= 's'").fetchone() == (19_990,)
        grid.sql("CREATE TABLE other (id BIGINT PRIMARY KEY)")
        grid.sql("INSERT INTO other SELECT i FROM range(5000) AS i")
        grid.sql("DELETE FROM t WHERE id BETWEEN 100 AND 200")
        grid.checkpoint()
        grid.sql("DROP TABLE other")
        grid.sql("TRUNCATE TABLE t")
        grid.checkpoint()


def use_or_refuse(path: Path) -> None:
    """A clear error is as good as an answer, but nothing else is."""
    with suppress(RemudaError):
        use(path)


def rewrite(path: Path, change: Callable[[Any], None]) -> None:
    """Change the manifest as somebody would who knows its format."""
    found = path / "MANIFEST"
    raw = msgspec.to_builtins(decode_manifest(found.read_bytes(), found))
    for entry in raw["maps"]:
        entry.setdefault("groups", [])
    change(raw)
    found.write_bytes(encode_manifest(msgspec.convert(raw, Manifest)))


def current_group(path: Path) -> Path:
    """Return the group file that the manifest names; group files of kept versions lie beside it."""
    found = path / "MANIFEST"
    (entry,) = decode_manifest(found.read_bytes(), found).maps
    (group,) = entry.groups
    return path / "maps" / entry.id / group_name(group)


def rewrite_group(path: Path, change: Callable[[Any], None]) -> None:
    """Change the only group file as somebody would who knows the formats of group files and of the root."""
    found = path / "MANIFEST"
    manifest = decode_manifest(found.read_bytes(), found)
    (entry,) = [each for each in manifest.maps if each.groups]
    (group,) = entry.groups
    folder = path / "maps" / entry.id
    raw = msgspec.to_builtins(read_group(folder, group), builtin_types=(bytes,))
    change(raw)
    ref, content = encode_group(group.first, group.end, msgspec.convert(raw, tuple[SegmentEntry, ...]))
    (folder / group_name(ref)).write_bytes(content)
    maps = [replace(each, groups=(ref,)) if each is entry else each for each in manifest.maps]
    found.write_bytes(encode_manifest(replace(manifest, maps=maps)))


def refuse_map(store: Path) -> None:
    """The map has a link in it and refuses everything; the rest of the store is in use."""
    for read_only in (True, False):
        with remuda.open(store, read_only=read_only) as grid:
            for use_map in (lambda: grid.map("t").get(1), lambda: grid.sql("SELECT * FROM t").fetchall()):
                with pytest.raises(StorageError, match="the map t cannot be used: a symbolic link"):
                    use_map()
    with remuda.open(store) as grid:
        grid.sql("CREATE TABLE other (id BIGINT PRIMARY KEY)")
        grid.sql("INSERT INTO other VALUES (1)")
        grid.checkpoint()
        assert grid.sql("SELECT * FROM other").fetchall() == [(1,)]
        grid.sql("DROP TABLE other")


@pytest.mark.parametrize("name", [HEX, "link", ".hidden"])
def test_a_link_among_the_maps_is_left_alone(store: Path, victim: Path, name: str) -> None:
    (store / "maps" / name).symlink_to(victim)
    use(store)
    assert (store / "maps" / name).is_symlink()


@pytest.mark.parametrize("name", ["maps", "wal", "readers", "inbox"])
def test_a_link_in_the_place_of_a_folder_is_refused(store: Path, victim: Path, name: str) -> None:
    if (store / name).exists():
        (store / name).rename(store / f"{name}.before")
    (store / name).symlink_to(victim)
    with pytest.raises(StorageError, match="symbolic link"):
        remuda.open(store)
    with suppress(StorageError):
        remuda.open(store, read_only=True).close()


def test_a_link_in_the_place_of_a_map_is_refused(store: Path, victim: Path) -> None:
    (folder,) = (store / "maps").iterdir()
    for each in folder.iterdir():
        (victim / each.name).write_bytes(each.read_bytes())
    added = {each.name for each in folder.iterdir()}
    folder.rename(store / "before")
    folder.symlink_to(victim)
    refuse_map(store)
    for name in added:
        (victim / name).unlink()


@pytest.mark.parametrize("name", ["MANIFEST", "MANIFEST.new", "LOCK"])
@pytest.mark.parametrize("target", ["notes.txt", "nothing.txt"])
def test_a_link_in_the_place_of_a_file_is_not_followed(store: Path, victim: Path, name: str, target: str) -> None:
    (store / name).unlink(missing_ok=True)
    (store / name).symlink_to(victim / target)
    use_or_refuse(store)


def test_links_among_the_files_of_maps_and_logs_are_not_followed(store: Path, victim: Path) -> None:
    (folder,) = (store / "maps").iterdir()
    for parent, name in (
        (folder, f"{HEX}.arrow"),
        (folder, f"{HEX}.{HEX}.deleted"),
        (store / "wal", "00000000.log"),
        (store / "readers", f"{HEX}.lease"),
    ):
        parent.mkdir(exist_ok=True)
        (parent / name).symlink_to(victim / VICTIMS[0])
    use(store)


@pytest.mark.parametrize("suffix", [".arrow", ".group", ".keys", ".index", ".deleted"])
def test_a_link_in_the_place_of_a_segments_file_is_refused(store: Path, victim: Path, suffix: str) -> None:
    group = current_group(store)
    path = group if suffix == ".group" else next(each for each in group.parent.iterdir() if each.suffix == suffix)
    path.unlink()
    path.symlink_to(victim / VICTIMS[0])
    refuse_map(store)


HOSTILE_IDS = ("..", "../victim", "../../victim", "{victim}", "a/b", "", "x" * 300, HEX.upper(), "load", "a\0b")


@pytest.mark.parametrize("name", HOSTILE_IDS)
@pytest.mark.parametrize("part", ["map", "index", "group", "delivery"])
def test_an_id_of_another_form_is_refused(store: Path, victim: Path, part: str, name: str) -> None:
    name = name.replace("{victim}", str(victim))

    def change(raw: Any) -> None:
        (entry,) = raw["maps"]
        match part:
            case "map":
                entry["id"] = name
            case "index":
                entry["indexes"][0]["id"] = name
            case "group":
                entry["groups"][0][0] = name
            case _:
                raw["deliveries"] = [name]

    rewrite(store, change)
    for read_only in (False, True):
        with pytest.raises(StorageError, match="no name that a store gives"):
            remuda.open(store, read_only=read_only)


@pytest.mark.parametrize("name", [*HOSTILE_IDS, f"{HEX}.group", f"{HEX}.arrow"])
@pytest.mark.parametrize("part", ["segment", "index", "deletions"])
def test_a_group_file_with_an_id_of_another_form_is_refused(store: Path, victim: Path, part: str, name: str) -> None:
    name = name.replace("{victim}", str(victim))
    ordinal = {"segment": 0, "index": 2, "deletions": 5}[part]

    def change(raw: Any) -> None:
        raw[0][ordinal] = [name] if part == "index" else name

    rewrite_group(store, change)
    for read_only in (True, False):
        with remuda.open(store, read_only=read_only) as grid:
            for use_map in (lambda: grid.map("t").get(1), lambda: grid.sql("SELECT * FROM t").fetchall()):
                with pytest.raises(StorageError, match=r"no name that a store gives.*\.group, offset 24"):
                    use_map()


@pytest.mark.parametrize(
    "ranges", [[(0, 272)], [(-1, 271)], [(5, 5)], [(9, 5)], [(0, 100), (99, 271)], [(100, 271), (0, 100)], [(2**70, 3)]]
)
def test_groups_of_impossible_partitions_are_refused(store: Path, ranges: list[tuple[int, int]]) -> None:
    def change(raw: Any) -> None:
        (entry,) = raw["maps"]
        (group,) = entry["groups"]
        entry["groups"] = [[group[0], *each, *group[3:]] for each in ranges]

    with suppress(OverflowError):  # MessagePack has no such number.
        rewrite(store, change)
        for read_only in (False, True):
            with pytest.raises(StorageError, match="MANIFEST"):
                remuda.open(store, read_only=read_only)


@pytest.mark.parametrize("name", ["MANIFEST", "group"])
def test_a_file_of_absurd_size_is_not_read(store: Path, name: str) -> None:
    path = store / name if name == "MANIFEST" else current_group(store)
    os.truncate(path, 1 << 40)
    with pytest.raises(StorageError, match="more than"), remuda.open(store, read_only=True) as grid:
        grid.map("t").get(1)


def open_and_read(path: Path, *, read_only: bool) -> None:
    with remuda.open(path, read_only=read_only) as grid:
        grid.map("t").get(1)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("kind of a column", "BIGFLOAT"),
        ("kind of an index", "BTREE"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_our_error(tmp_path: Path, part: str, value: Any) -> None:
    with remuda.open(tmp_path, durability="os") as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, d DECIMAL(20, 2))")
        grid.sql("CREATE INDEX t_d ON t (d) TYPE SORTED")
        grid.sql("INSERT INTO t VALUES (1, 1.25)")
        grid.checkpoint()

    def change(raw: Any) -> None:
        (entry,) = raw["maps"]
        if part == "kind of a column":
            entry["columns"][1]["kind"] = value
        else:
            entry["indexes"][0]["kind"] = value

    rewrite(tmp_path, change)
    for read_only in (True, False):
        with pytest.raises(StorageError, match="MANIFEST"):
            open_and_read(tmp_path, read_only=read_only)


@pytest.mark.parametrize("value", ["1.2x", [], 7, "no such column", "no summaries"])
def test_statistics_that_make_no_sense_are_our_error(tmp_path: Path, value: Any) -> None:
    with remuda.open(tmp_path, durability="os") as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, d DECIMAL(20, 2))")
        grid.sql("INSERT INTO t VALUES (1, 1.25)")
        grid.checkpoint()

    def change(raw: Any) -> None:
        summaries = msgspec.msgpack.decode(raw[0][6])
        if value == "no summaries":
            raw[0][6] = b"\xc1"
            return
        if value == "no such column":
            summaries[value] = summaries.pop("d")
        else:
            summaries["d"][3] = value
        raw[0][6] = msgspec.msgpack.encode(summaries)

    rewrite_group(tmp_path, change)
    for read_only in (True, False):
        with remuda.open(tmp_path, read_only=read_only) as grid:
            assert grid.map("t").get(1) is not None
            with pytest.raises(StorageError, match=r"statistics of the column d make no sense.*\.group"):
                grid.sql("SELECT * FROM t WHERE d > 1").fetchall()


@pytest.mark.parametrize("name", HOSTILE_IDS)
def test_a_delivery_cannot_name_files_outside(store: Path, victim: Path, name: str) -> None:
    found = store / "MANIFEST"
    (entry,) = decode_manifest(found.read_bytes(), found).maps
    (segment,) = read_group(store / "maps" / entry.id, entry.groups[0])
    segment = replace(segment, id=name.replace("{victim}", str(victim / HEX)))
    request = Delivery("append", replace(entry, groups=(), segments=(segment,)))
    (store / "inbox").mkdir(exist_ok=True)
    (store / "inbox" / f"{HEX}.request").write_bytes(msgspec.msgpack.encode(request))
    (store / "inbox" / HEX).symlink_to(victim)
    use(store)


def test_foreign_files_stop_nothing_and_stay(store: Path) -> None:
    (map_folder,) = (store / "maps").iterdir()
    folders = [store, map_folder, *(store / name for name in ("maps", "wal", "readers", "inbox"))]
    left = []
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in (".DS_Store", "Thumbs.db", "desktop.ini", "²³.log", "12.log"):
            (folder / name).write_text("not ours")
            left.append(folder / name)
        for name in ("folder", f"{HEX}.lease.d", "cafe.lease"):
            (folder / name).mkdir()
            left.append(folder / name)
    (store / "readers" / f"{HEX}.lease").mkdir()
    (store / "wal" / "00000099.log").mkdir()
    (map_folder / f"{HEX}.arrow").mkdir()
    os.utime(store / "inbox" / ".DS_Store", (0, 0))
    use(store)
    use_after = [path for path in left if not path.exists() and map_folder not in path.parents]
    assert use_after == []


@pytest.mark.parametrize("name", ["MANIFEST", "MANIFEST.new", "LOCK", "wal/00000001.log", f"readers/{HEX}.lease"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(store: Path, name: str) -> None:
    path = store / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    signal.alarm(100)
    try:
        use_or_refuse(store)
    finally:
        signal.alarm(0)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list descriptors")


@needs_proc
def test_a_grid_that_is_dropped_without_being_closed_lets_go(store: Path) -> None:
    for read_only in (False, True):
        gc.collect()
        before = open_descriptors()
        grid = remuda.open(store, read_only=read_only)
        grid.sql("SELECT COUNT(*) FROM t").fetchall()
        grid.store.verification.wait()
        del grid
        gc.collect()
        assert open_descriptors() <= before
    remuda.open(store).close()


@pytest.mark.parametrize("options", [{"members": 0}, {"members": -1}, {"partitions": 0}, {"partitions": 7}])
def test_a_refused_option_leaves_the_folder_free(store: Path, options: dict[str, int]) -> None:
    with pytest.raises(RemudaError):
        remuda.open(store, **options)
    remuda.open(store).close()


def test_a_refused_option_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RemudaError):
        remuda.open(tmp_path / "new", members=0)
    assert not (tmp_path / "new").exists()


@needs_proc
def test_a_failed_opening_leaves_nothing_open(store: Path) -> None:
    path = store / "MANIFEST"
    kept = path.read_bytes()
    path.write_bytes(b"short")
    gc.collect()
    before = open_descriptors()
    for read_only in (False, True):
        with pytest.raises(StorageError):
            remuda.open(store, read_only=read_only)
    gc.collect()
    assert open_descriptors() <= before
    path.write_bytes(kept)
    use(store)


@needs_proc
def test_maps_hold_no_descriptors(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "many") as grid:
        before = open_descriptors()
        for number in range(12):
            grid.sql(f"CREATE TABLE t{number} (id BIGINT PRIMARY KEY, n BIGINT)")
            grid.sql(f"CREATE INDEX i{number} ON t{number} (n) TYPE HASH")
            grid.load(f"t{number}", pa.table({"id": range(100), "n": range(100)}))
            assert grid.sql(f"SELECT SUM(n) FROM t{number} WHERE n = 7").fetchone() == (7,)
        assert open_descriptors() <= before


def test_too_few_descriptors_are_our_error(store: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(StorageError, match="Too many open files"):
            remuda.open(store)
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    use(store)


AS_ANOTHER = """
import os, sys, tempfile, remuda
with tempfile.TemporaryDirectory() as folder:  # what is imported later may be out of reach for the other user
    with remuda.open(folder) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        len(grid.map("t"))
    with remuda.open(folder, read_only=True) as grid:
        len(grid.map("t"))
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(1234)
with remuda.open(sys.argv[1], read_only=True) as grid:
    print(len(grid.map("t")), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Folders of tests are their user's alone."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser starts processes of other users")
@pytest.mark.parametrize("leaves", ["ended", "killed"])
def test_a_reader_of_another_user_shares_the_folder_by_its_group(open_to_all: Path, leaves: str) -> None:
    """The writer, here the superuser, has less to fear than most: the modes of the files tell what others may do."""
    group = 4242
    path = open_to_all / "shop"
    path.mkdir()
    os.chown(path, -1, group)
    path.chmod(0o2770)
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        grid.sql("INSERT INTO t SELECT i FROM range(100) AS i")
        grid.checkpoint()
        command = [sys.executable, "-c", AS_ANOTHER, str(path), str(group)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "100\n"
            (lease,) = (path / "readers").iterdir()
            assert (lease.stat().st_uid, lease.stat().st_gid, lease.stat().st_mode & 0o777) == (1234, group, 0o660)
            if leaves == "killed":
                reader.kill()
            reader.communicate()
        grid.sql("INSERT INTO t VALUES (1000)")
        grid.checkpoint()
        grid.sql("DELETE FROM t WHERE id < 50")
        grid.checkpoint()
        assert list((path / "readers").iterdir()) == []
    for each in path.rglob("*"):
        assert (each.stat().st_gid, each.stat().st_mode & 0o060) == (group, 0o060), each
