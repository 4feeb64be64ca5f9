"""The recordings of docs/recordings are what the tapes print now: `make recordings` draws them again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "recordings"
TAPES = sorted(FOLDER.glob("*.tape"))


def record(into: Path, tape: Path, seed: str = "0") -> subprocess.CompletedProcess[str]:
    """Record a tape as `make recordings` does, from elsewhere and with another environment."""
    return subprocess.run(
        [sys.executable, FOLDER / "record.py", "--into", into, tape],
        cwd=into,
        env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed, "NO_COLOR": "1", "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
@pytest.mark.parametrize("tape", TAPES, ids=lambda tape: tape.stem)
def test_a_recording_is_what_its_tape_gives(tape: Path, tmp_path: Path) -> None:
    done = record(tmp_path, tape)
    assert done.returncode == 0, done.stdout + done.stderr
    new = tmp_path / f"{tape.stem}.svg"
    assert new.read_bytes() == (FOLDER / new.name).read_bytes(), "run: make recordings"


def test_every_picture_has_a_tape() -> None:
    assert [path.stem for path in sorted(FOLDER.glob("*.svg"))] == [path.stem for path in TAPES] != []


@pytest.mark.parametrize("tape", TAPES, ids=lambda tape: tape.stem)
def test_a_picture_stands_alone(tape: Path) -> None:
    """It has no script and no address; it moves only where the reader wants it; without motion it is complete."""
    text = (FOLDER / f"{tape.stem}.svg").read_text()
    assert len(text.encode()) < 100_000
    root = ET.fromstring(text)  # noqa: S314 - our own file
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "title", "desc", "style", "rect", "path", "text", "tspan", "g"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if "href" in name or name.startswith("on") or name == "style"}
    assert "url(" not in text
    assert "@import" not in text
    still, moving = text.split("@media (prefers-reduced-motion:no-preference)")
    assert "animation" not in still
    assert "prefers-color-scheme:dark" in still
    assert 'opacity="0"' not in moving
    commands = [line[2:] for line in tape.read_text().splitlines() if line.startswith("$ ")]
    shown = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [row[2:] for row in shown if row.startswith("$ ") and row[2:] in commands] == commands


@pytest.mark.deep
@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("$ false", "tape: `false` ended with 1"),
        ("! true", "tape: `true` ended with 0"),
        ("$ printf '\\033[2J'", "which is not drawn"),
        ("$ printf 'a\\rb'", "which is not drawn"),
        ("> true", "is no step of a tape"),
        ("$ seq 100000", "more than 100,000"),
    ],
)
def test_what_cannot_be_drawn_is_refused(steps: str, said: str, tmp_path: Path) -> None:
    tape = tmp_path / "tape.tape"
    tape.write_text(f"title: t\nabout: a\nsize: 40x10\n{steps}\n")
    done = record(tmp_path, tape)
    assert done.returncode == 1
    assert said in done.stderr
    assert not (tmp_path / "tape.svg").exists()


def test_a_wide_line_is_wrapped_as_a_terminal_does(tmp_path: Path) -> None:
    tape = tmp_path / "tape.tape"
    tape.write_text("title: <t>\nabout: a & b\nsize: 10x4\n$ printf '\\033[1;31m0123456789ab\\033[0m<&'\n")
    assert record(tmp_path, tape).returncode == 0
    text = (tmp_path / "tape.svg").read_text()
    assert '<tspan class="r B">0123456789</tspan></text>' in text
    assert '<tspan class="r B">ab</tspan>&lt;&amp;</text>' in text
    assert '<title id="t">&lt;t&gt;</title>' in text
