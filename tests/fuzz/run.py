"""Run mutated inputs of one kind: by their number or for a time; make what fails small, and show it as a case file."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from tests.fuzz import bases, commands, folders, merges, requests
from tests.fuzz.laws import examine
from tests.fuzz.mutate import mutated
from tests.fuzz.subjects import Subject

SLOW = 10.0
"""Seconds of processor time that no input of this size may take."""
LONGEST = 3000
"""The most characters of what a failure says."""
PATIENCE = 30.0
"""Seconds for making one failure small."""


@dataclass(frozen=True)
class Kind:
    """A kind of input: how one is made, and what must hold of it. `examine` gives a word for what became of it."""

    name: str
    made: Callable[[random.Random], Subject]
    examine: Callable[[Subject], str]


def _examine_case(subject: Subject) -> str:
    return examine(subject.inputs())


CASES = Kind("cases", mutated, _examine_case)
BASES = Kind("bases", bases.made, bases.examine)
MERGES = Kind("merges", merges.made, merges.examine)
COMMANDS = Kind("commands", commands.made, commands.examine)
FOLDERS = Kind("folders", folders.made, folders.examine)
REQUESTS = Kind("requests", requests.made, requests.examine)
KINDS = (CASES, BASES, MERGES, COMMANDS, FOLDERS, REQUESTS)


@dataclass(frozen=True)
class Failure:
    """An input that broke a law."""

    kind: str
    seed: str
    """FUZZ_SEED and the number of the input: `7/1234`."""
    said: str
    """The exception, and where it was raised."""
    subject: Subject

    def __str__(self) -> str:
        """Show it as a case file."""
        again = f"FUZZ_AGAIN={self.kind}/{self.seed} make fuzz"
        return self.subject.text(
            f"Found by make fuzz; as it was, before it was made small: {again}\n{self.said}"
        )


@dataclass
class Tally:
    """What became of all inputs."""

    inputs: int = 0
    became: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)
    """By what they have in common: one is enough."""


def fuzz(kind: Kind, seed: int, *, number: int = 0, seconds: float = 0, slow: bool = False) -> Tally:
    """Run so many inputs of a kind, or for so many seconds; `slow`: one that takes too long is a failure, too."""
    tally, end = Tally(), time.monotonic() + seconds
    while tally.inputs < number or time.monotonic() < end:
        subject = numbered(kind, f"{seed}/{tally.inputs}")
        problem = problem_of(kind, subject, slow=slow, became=tally.became)
        if problem:
            tally.became["failed"] += 1
            if problem.key not in tally.failures:
                small = smallest(kind, subject, problem.key, slow=slow)
                tally.failures[problem.key] = Failure(
                    kind.name, f"{seed}/{tally.inputs}", problem.said, small
                )
        tally.inputs += 1
    return tally


def numbered(kind: Kind, seed: str) -> Subject:
    """Return the input of a seed and a number."""
    return kind.made(random.Random(seed))  # noqa: S311 - the same inputs every time


@dataclass(frozen=True)
class Problem:
    """How an input failed."""

    key: str
    said: str


def problem_of(
    kind: Kind, subject: Subject, *, slow: bool, became: Counter[str] | None = None
) -> Problem | None:
    """Examine an input; count what became of it, or return how it failed."""
    began = time.process_time()
    try:
        word = kind.examine(subject)
    except Exception as problem:  # noqa: BLE001 - every exception is a finding here
        at = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{at.filename.rpartition('/ipamc/')[2].rpartition('/tests/')[2]}:{at.lineno} {at.name}"
        said = f"{type(problem).__name__}: {problem}"[:LONGEST]
        return Problem(f"{type(problem).__name__} {where}", f"{said}\nat {where}")
    if became is not None:
        became[word] += 1
    taken = time.process_time() - began
    if slow and taken > SLOW:
        return Problem("slow", f"it took {taken:.1f} s of processor time, and has {subject.size:,} bytes")
    return None


def smallest(kind: Kind, subject: Subject, key: str, *, slow: bool) -> Subject:
    """Drop files and lines as long as it fails in the same way."""
    end = time.monotonic() + PATIENCE
    parts = 1
    while time.monotonic() < end:
        for smaller in _smaller(subject, parts):
            problem = problem_of(kind, smaller, slow=slow)
            if problem and problem.key == key:
                subject = smaller
                break
            if time.monotonic() > end:
                return subject
        else:
            if parts > max((text.count(b"\n") for text in subject.files.values()), default=0):
                return subject
            parts *= 2
    return subject


def _smaller(subject: Subject, parts: int) -> Iterator[Subject]:
    """Yield the subject without a file; then without each of so many parts of the lines of each file."""
    for name in subject.files if len(subject.files) > 1 else ():
        yield replace(subject, files={other: text for other, text in subject.files.items() if other != name})
    for name, text in subject.files.items():
        rows = text.split(b"\n")
        step = max(len(rows) // parts, 1)
        for at in range(0, len(rows), step):
            fewer = b"\n".join(rows[:at] + rows[at + step :])
            if fewer != text:
                yield replace(subject, files={**subject.files, name: fewer})
