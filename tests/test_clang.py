"""`.ci/clang`, which agents of the tests call: it compiles the same source once, and never gives the object of another one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = """#!/bin/sh
for each; do case $each in -I*) headers=${each#-I} ;; *.c) source=$each ;; esac; done
case "$*" in *' -E -P') exec cat "$headers/config.h" "$source" ;; esac
echo compiled >>"$(dirname "$0")/log"
grep -v '^$' "$headers/config.h" "$source" || exit 1
"""
"""In place of clang-19: its preprocessor puts the headers before the source; its objects are what it read. It refuses an empty source."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parents[1] / ".ci/clang", tmp_path)
    (tmp_path / "clang-19").write_text(COMPILER)
    (tmp_path / "clang-19").chmod(0o755)
    (tmp_path / "lxc.c").write_text("int lxc;\n")
    return tmp_path


def compiled(folder: Path, headers: str, config: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Compile with a node's headers, in a folder of their own, as an agent does."""
    (folder / headers).mkdir(exist_ok=True)
    (folder / headers / "config.h").write_text(config)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    command = [str(folder / "clang"), f"-I{folder / headers}", *flags, "-c", str(folder / "lxc.c"), "-o", "-"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def count(folder: Path) -> int:
    """Return how often the compiler compiled."""
    return len((folder / "log").read_text().split())


def test_the_same_source_is_compiled_once_wherever_its_headers_lie(folder: Path) -> None:
    first = compiled(folder, "a", "MAC 1\n")
    assert "MAC 1" in first.stdout
    assert compiled(folder, "b", "MAC 1\n").stdout == first.stdout
    assert count(folder) == 1


def test_another_source_and_other_flags_give_another_object(folder: Path) -> None:
    assert "MAC 1" in compiled(folder, "a", "MAC 1\n").stdout
    assert "MAC 2" in compiled(folder, "a", "MAC 2\n").stdout
    compiled(folder, "a", "MAC 1\n", "-mcpu=v2")
    assert count(folder) == 3


def test_what_clang_refuses_is_refused_each_time_and_nothing_of_it_is_kept(folder: Path) -> None:
    (folder / "lxc.c").write_text("")
    for _ in range(2):
        assert compiled(folder, "a", "").returncode == 1
    assert count(folder) == 2
    assert not list((folder / "objects").iterdir())
