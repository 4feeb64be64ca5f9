"""The commands that findings about locks, evidence, imports and clusters print work when they are typed in that state.

Those of an example that its `right` half plays already count as played.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_examples import EXAMPLES, play, run

CODES = [code for code in EXAMPLES if code.startswith(("IPC04", "IPC05", "IPC08", "IPC09"))]
HELP = re.compile(r"^ *= help: (.*)$", re.MULTILINE)
COMMAND = re.compile(
    r"\bipamc (?:lock|compile|import|refresh|show|which|why|plan|init|runbook|suggest|audit|resize|test)\b[^;,:()`]*"
)
WORDS = re.compile(
    r" (?:then|and|with|takes|brings|makes|gives|lists|once|or|where|if|says|to|for|shows|asks)\b.*"
)
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z]+\b|…|\.\.\.")


AFTER_A_STEP = {
    "ipamc lock lab --release worker-2": "its node leaves the inventory before",
}
"""Commands that come after another step of their sentence."""


def commands(said: str, code: str) -> Iterator[str]:
    """Yield the complete commands of ipamc in the helps of a code's findings."""
    for part in re.split(r"(?=^(?:error|warning|note)\[)", said, flags=re.MULTILINE):
        if part.startswith(tuple(f"{word}[{code}]" for word in ("error", "warning", "note"))):
            for line in HELP.findall(part):
                for found in COMMAND.findall(line):
                    command = WORDS.sub("", found).strip()
                    if not PLACEHOLDER.search(command):
                        yield command


@pytest.mark.parametrize("code", CODES)
def test_a_printed_command_works_in_that_state(code: str, tmp_path: Path) -> None:
    example = EXAMPLES[code]
    (tmp_path / "0").mkdir()
    said = play(example, example.wrong, tmp_path / "0").stdout
    for number, command in enumerate(dict.fromkeys(commands(said, code)), 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        play(example, example.wrong, folder)
        files = [word for word in shlex.split(command) if word.endswith((".json", ".yaml"))]
        if command in AFTER_A_STEP or not all((folder / name).exists() for name in files):
            continue
        done = run(folder, command)
        assert done.returncode in {0, 1}, f"{command}\n{done.stdout}"
        if command.startswith("ipamc lock"):
            assert f"error[{code}]" not in done.stdout, f"{command}\n{done.stdout}"
