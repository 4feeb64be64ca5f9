"""Mutated cases on the disk, beside a sound cluster: every verb that reads gives an answer or refuses, and the other cluster's stays what it was."""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import tempfile
from pathlib import Path

from tests.fuzz.commands import CODES, UNPRINTABLE, WORKFLOW_COMMAND
from tests.fuzz.mutate import mutated
from tests.fuzz.subjects import Subject
from tests.support import in_process

SOUND = "sound"
READING = (
    ("plan", "--jobs", "1", "--output", "json"),
    ("show", "--output", "json"),
    ("show", "--show-blocks"),
    ("which", "10.1.0.7"),
    ("which", "worker-1", "--output", "json"),
    ("why", "worker-1"),
    ("lock", "case", "--check"),
    ("compile", "--jobs", "1", "--check", "--format", "sarif"),
)
"""Verbs that write nothing."""
WRITING = (
    ("compile", "--jobs", "1", "--report", "junit=report.xml"),
    ("lock", "case", "--leave", "all"),
    ("lock", "case", "--release", "0.0.0.0/0"),
)


def made(chance: random.Random) -> Subject:
    """Return a mutated case."""
    return mutated(chance)


@functools.cache
def _top() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of our own there
    top = Path(tempfile.mkdtemp(prefix="ipamc-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    example = Path(__file__).parents[2] / "clusters" / "cluster-pool"
    shutil.copytree(example, top / SOUND / "clusters" / "cluster-pool")
    return top


def examine(subject: Subject) -> str:
    """Write it, and call three verbs."""
    top = _top() / "work"
    shutil.rmtree(top, ignore_errors=True)
    shutil.copytree(_top() / SOUND, top)
    for name, text in subject.files.items():
        path = top / "clusters" / "case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    chance = random.Random(subject.name)  # noqa: S311 - which verbs
    codes = []
    lock = top / "clusters" / "case" / "ipam.lock"
    for arguments in (*chance.sample(READING, 2), chance.choice(WRITING)):
        before = lock.read_bytes() if lock.exists() else None
        environment = {"PATH": str(top), "HOME": str(top), "SOURCE_DATE_EPOCH": "1795000000"}
        done = in_process.ipamc(*arguments, cwd=top, environment=environment)
        said = f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr[-1500:]}"
        assert done.returncode in CODES, said
        assert "Traceback" not in done.stderr, said
        assert not UNPRINTABLE.search(done.stderr), said
        assert not WORKFLOW_COMMAND.search(done.stderr), said
        assert not UNPRINTABLE.search(done.stdout), said
        if arguments in READING:
            assert (lock.read_bytes() if lock.exists() else None) == before, f"{said}: it wrote"
        codes.append(str(done.returncode))
    sound = top / "clusters" / "cluster-pool" / "ipam.lock"
    assert sound.read_bytes() == (_top() / SOUND / "clusters" / "cluster-pool" / "ipam.lock").read_bytes()
    return f"exit {' '.join(codes)}"
