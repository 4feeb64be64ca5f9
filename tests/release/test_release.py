"""What a release does before anybody sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ipamc import __version__
from tools.release import smoke
from tools.release.build import reproduced
from tools.release.notes import notes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return reproduced(tmp_path_factory.mktemp("build"))


@pytest.mark.deep
def test_two_builds_have_the_same_bytes(built: list[Path]) -> None:
    assert [path.suffix for path in built] == [".whl", ".gz"]


@pytest.mark.deep
def test_what_was_built_is_installed_and_compiles_the_examples(built: list[Path], tmp_path: Path) -> None:
    (wheel,) = (path for path in built if path.suffix == ".whl")
    said = smoke.tried(wheel, sys.executable, "lowest", tmp_path)
    assert "click==8.1.7 " in said


def test_the_lowest_versions_are_those_of_the_python() -> None:
    assert "msgspec==0.19" in smoke.lowest("3.11")
    assert {"msgspec==0.20", "pyyaml==6.0.3"} <= set(smoke.lowest("3.14"))


TEXT = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2027-01-02\n\n### Added\n- b\n\n## 0.1.0 - 2026-11-22\n\n- a\n"


def test_the_text_of_a_release_is_its_part_of_the_changelog() -> None:
    assert notes(TEXT, "0.2.0") == "### Added\n- b\n"
    assert notes(TEXT, "0.1.0") == "- a\n"


@pytest.mark.parametrize(
    ("text", "version", "says"),
    [
        (TEXT, "0.3.0", "no '## 0.3.0 - DAY'"),
        (TEXT.replace(" - 2027-01-02", ""), "0.2.0", "no '## 0.2.0 - DAY'"),
        (TEXT.replace("Unreleased\n", "Unreleased\n- c\n"), "0.2.0", "under Unreleased, '- c'"),
    ],
)
def test_a_changelog_that_is_not_ready_is_refused(text: str, version: str, says: str) -> None:
    with pytest.raises(SystemExit, match=says):
        notes(text, version)


def test_the_version_is_the_one_that_the_build_took_from_git() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ipamc", "--version"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == f"ipamc {__version__}\n"
