"""What `.ci/run` has of the tests on real servers and agents: each promise once. CONTRIBUTING.md names what it leaves to `.ci/all`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SERVERS = ("kubernetes-1.35.4", "kubernetes-1.37.2", "cilium-1.18.5", "agent-1.18.5")
"""Nothing of them is started: tests are only collected."""
COLLECT = """
import json, pathlib, sys, pytest

class Parts:
    def pytest_deselected(self, items):
        self.left = items

    def pytest_collection_finish(self, session):
        found = ((item, played) for items, played in ((session.items, True), (self.left, False)) for item in items)
        rows = [
            (item.nodeid, played, [word for mark in item.iter_markers("deep") for word in mark.args])
            for item, played in found
        ]
        pathlib.Path(sys.argv[1]).write_text(json.dumps(rows))

pytest.main(["--collect-only", "--quiet", "tests/e2e"], plugins=[Parts()])
"""


class Case(NamedTuple):
    """A collected test."""

    name: str
    """`tests/e2e/test_bgp.py::test_the_apiserver_takes_what_is_rendered_as_it_is[cilium-1.18.5-kubernetes]`."""
    played: bool
    """Whether the part has it."""
    words: list[str]
    """By which the part chooses among the cases of its function."""

    @property
    def function(self) -> str:
        return self.name.partition("[")[0].removeprefix("tests/e2e/")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    file = tmp_path_factory.mktemp("parts") / "cases.json"
    environment = {**os.environ, "IPAMC_SERVERS": " ".join(SERVERS), "IPAMC_TESTS": ""}
    subprocess.run(
        [sys.executable, "-c", COLLECT, file], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    return [Case(*each) for each in json.loads(file.read_text())]


def test_what_is_left_out_as_a_whole_is_named_with_its_reason(cases: list[Case]) -> None:
    rows = re.findall(r"^\| `([\w/]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    played = {case.function for case in cases if case.played}
    left = {case.function for case in cases} - played
    assert sorted({function.partition(".py::")[0] for function in left}) == sorted(rows)


def test_each_word_chooses_a_case(cases: list[Case]) -> None:
    words = {(case.function, word) for case in cases for word in case.words}
    chosen = {
        (case.function, word)
        for case in cases
        for word in case.words
        if case.played and word in case.name.partition("[")[2]
    }
    assert chosen
    assert words - chosen == set()
