"""docs/tests.md is true: its tests are made on the example that it names, and print what it shows; `…` stands for any lines.

`pytest tests/cli/test_tests_page.py --update` writes what they print into the page.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.examples import NAMES
from tests.support.in_process import ipamc
from tests.support.page_story import agrees, commands

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tests.md"
HEAD = "apiVersion: ipamc/v1alpha1\nkind: Tests\ntests:\n"
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)


def played(section: str, folder: Path) -> str:
    """Return a section with what its commands print; each begins with the example as it is in the repository."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "clusters" / "zones", folder / "clusters" / "zones")

    def play(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "yaml":
            if not text.startswith("#"):
                whole = text if text.startswith("apiVersion") else HEAD + text
                (folder / "clusters/zones/tests.yaml").write_text(whole)
            return block[0]
        out = ""
        for command in commands(text):
            printed = said(command.typed, folder)
            out += f"{command.typed}\n{command.shown if agrees(command.shown, printed) else printed}"
        return f"```console\n{out}```"

    return BLOCK.sub(play, section)


def said(line: str, folder: Path) -> str:
    words = shlex.split(line.removeprefix("$ ipamc"))
    environment = {"SOURCE_DATE_EPOCH": "1795305600", "COLUMNS": "110"}
    return ipamc(*words, cwd=folder, environment=environment, one_stream=True).stdout


def test_the_page_shows_what_is_printed(tmp_path: Path, update: bool) -> None:  # noqa: FBT001 - a fixture
    text = PAGE.read_text()
    sections = re.split(r"(?=^## )", text, flags=re.MULTILINE)
    now = "".join(played(section, tmp_path / "play") for section in sections)
    if update:
        PAGE.write_text(now)
        return
    assert now == text


def test_the_page_shows_every_kind_of_failure() -> None:
    found = set(re.findall(r"^(?:error|warning)\[(IPC\d+)\]", PAGE.read_text(), re.MULTILINE))
    assert found >= {f"IPC100{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9)}


@pytest.mark.parametrize("name", NAMES)
def test_each_example_has_tests_that_pass(name: str) -> None:
    done = ipamc("test", f"clusters/{name}", cwd=ROOT, environment={})
    assert done.returncode == 0, done.stderr
    assert re.match(rf"{name}: (\d+) tests?, \1 passed\n", done.stdout)
