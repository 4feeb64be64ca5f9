"""The programs of `tools/benchmarks/`, as modules and as processes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).parents[2] / "tools/benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text())


class Cost(NamedTuple):
    """What a process took: the fields of `tools/benchmarks/measure.py`, in its order."""

    wall: float
    seconds: float
    memory: float
    code: int = 0


def module(name: str) -> Any:
    """Import a module as those beside it do: by its bare name, with their folder on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return importlib.import_module(name)


def run(script: str, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    """Run a program; return what it prints."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *arguments],
        env=dict(environment) or None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
