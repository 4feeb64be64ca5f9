"""Every command of docs/show.md prints what the page shows. `pytest FILE --update` rewrites the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/show.md"
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def printed(command: str, folder: Path) -> str:
    ipamc = f'ipamc() {{ "{sys.executable}" -m ipamc "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", ipamc + command],
        cwd=folder,
        env={
            **os.environ,
            "SOURCE_DATE_EPOCH": "1795000000",
            "NO_COLOR": "1",
            "COLUMNS": "80",
            "GITHUB_ACTIONS": "",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode().replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "clusters", tmp_path / "clusters")
    return tmp_path


def test_the_page_shows_what_is_printed(folder: Path, *, update: bool) -> None:
    text = PAGE.read_text()

    def rewritten(found: re.Match[str]) -> str:
        shown = "".join(f"$ {each}\n{printed(each, folder)}" for each in commands(found[1]))
        return f"```console\n{shown}```\n"

    now = BLOCK.sub(rewritten, text)
    if update:
        PAGE.write_text(now)
    assert now == text or update


def test_the_readme_shows_what_is_printed(folder: Path) -> None:
    command = "ipamc show zones"
    assert f"$ {command}\n{printed(command, folder)}" in (ROOT / "README.md").read_text()
