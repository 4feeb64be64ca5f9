"""Two at once: two runs of ipamc, or a run and a git checkout. One of them is stopped before each thing that it does, while the other one runs."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.crash import places
from tests.crash.pieces import ALL, FIGURES, mine
from tests.crash.places import EDGE, LAB, VERBS, Verb
from tests.crash.runs import Forks, Run
from tests.crash.test_crash import Stage, forks, template, top  # noqa: F401 - fixtures

BUSY = "another ipamc is running"
BY_NAME = {verb.name: verb for verb in VERBS}
PAIRS = (
    ("compile", ("compile", "lab")),
    ("compile", ("lock", "lab", "--leave", "all")),
    ("lock", ("compile", "lab")),
    ("compile", ("compile", "edge")),
    ("compile of two", ("compile", "--jobs", "1")),
    ("gitlab", ("ci", "gitlab", "--sha256", "a1" * 32)),
)
"""What is stopped, and what runs meanwhile: on one folder, on two folders of one address space, on other files."""


def stops(stage: Stage) -> list[int]:
    """Return the events before which the first run is stopped; reading is one, too."""
    stage.fresh()
    events = stage.forks.run(stage.verb.arguments, stage.work, stage.environment, reads=True).events
    if ALL:
        return mine(range(len(events)))
    kinds = [kind for kind, _ in events]
    last_read = max((at for at, kind in enumerate(kinds) if kind == "read"), default=0)
    saved = [at for at, kind in enumerate(kinds) if kind == "fsync"]
    first = kinds.index("os.rename")
    return sorted(
        {0, last_read, *saved, first - 1, first, first + 1, len(events) - 1} & set(range(len(events)))
    )


def stopped(stage: Stage, at: int) -> Run:
    """Start a run, and stop it there."""
    return stage.forks.run(stage.verb.arguments, stage.work, stage.environment, at=at, act="stop", reads=True)


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    ("name", "other"), PAIRS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_two_runs_at_once_are_one_after_the_other_or_one_of_them_says_so(
    name: str,
    other: tuple[str, ...],
    template: Path,  # noqa: F811 - the fixture
    top: Path,  # noqa: F811 - as above
    forks: Forks,  # noqa: F811 - as above
) -> None:
    stage = Stage(BY_NAME[name], template, top, forks)
    after = {}
    for order in ((stage.verb.arguments, other), (other, stage.verb.arguments)):
        stage.fresh()
        for arguments in order:
            assert forks.run(arguments, stage.work, stage.environment).code == 0
        after[order] = places.tree(stage.work)
    became: Counter[str] = Counter()
    for at in stops(stage):
        stage.fresh()
        FIGURES["pairs"] += 1
        first = stopped(stage, at)
        assert first.code is None
        second = forks.run(other, stage.work, stage.environment)
        ended = forks.resume(first)
        said = f"stopped before event {at}, {first.events[-1]}: {second.said}\n{ended.said}"
        assert {ended.code, second.code} <= {0, 1}, said
        assert "Traceback" not in f"{ended.said}{second.said}", said
        if 1 in {ended.code, second.code}:
            assert BUSY in f"{ended.said}{second.said}" or "changed" in f"{ended.said}{second.said}", said
            became["one refused"] += 1
            again = forks.run(stage.verb.arguments if ended.code else other, stage.work, stage.environment)
            assert again.code == 0, again.said
        else:
            became["both done"] += 1
        now = {path: text for path, text in places.tree(stage.work).items() if not places.is_unfinished(path)}
        assert now in after.values(), said
    print(f"{name} beside {' '.join(other)}: {dict(became)}")  # noqa: T201 - what a long run is watched for


RACES = tuple(BY_NAME[name] for name in ("compile", "lock"))


@pytest.mark.deep
@pytest.mark.parametrize("verb", RACES, ids=lambda verb: verb.name)
def test_a_lock_is_never_written_onto_another_branch(
    verb: Verb,
    template: Path,  # noqa: F811 - the fixture
    top: Path,  # noqa: F811 - as above
    forks: Forks,  # noqa: F811 - as above
) -> None:
    """The lock on the disk descends from that of the branch that is checked out.

    A run looks at what is there, and then renames: no stop is between the two, which take microseconds.
    """
    stage = Stage(verb, template, top, forks)
    became: Counter[str] = Counter()
    for at in stops(stage):
        stage.fresh()
        # What is to be compiled is committed: git then takes another branch without a word.
        FIGURES["pairs"] += 1
        places.git(stage.work, "commit", "--quiet", "--all", "--message", "work")
        first = stopped(stage, at)
        assert first.code is None
        if first.events[-1][0] == "os.rename":
            forks.resume(first)
            continue
        switched = subprocess.run(
            ["git", "switch", "--quiet", "other"],
            cwd=stage.work,
            env=places.environment(stage.work),
            check=False,
            capture_output=True,
            text=True,
        )
        ended = forks.resume(first)
        said = f"stopped before event {at}, {first.events[-1]}, {switched.stderr}: {ended.said}"
        assert ended.code in {0, 1}, said
        assert "Traceback" not in ended.said, said
        became[f"{'switched' if switched.returncode == 0 else 'stayed'}, exit {ended.code}"] += 1
        for folder in (LAB, EDGE):
            theirs = places.git(stage.work, "show", f"HEAD:{folder}/ipam.lock").encode()
            now = (stage.work / folder / "ipam.lock").read_bytes()
            gone = {block for block, line in places.lines(theirs).items() if block not in places.lines(now)}
            others = {
                block
                for block, line in places.lines(theirs).items()
                if places.lines(now).get(block, line).split(b'"node":')[1].split(b'"')[1]
                != line.split(b'"node":')[1].split(b'"')[1]
            }
            assert not gone | others, f"{folder}: {gone | others}: {said}"
    print(f"git switch beside {verb.name}: {dict(became)}")  # noqa: T201 - as above
