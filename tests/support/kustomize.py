"""The real kustomize: `$KUSTOMIZE_BUILD`, which the Makefile sets, or `$KUSTOMIZE`, `kustomize`, or `kubectl kustomize`, whichever is there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest


def command() -> list[str]:
    """Return the command that builds a folder; skip the test where there is none."""
    if command := os.environ.get("KUSTOMIZE_BUILD"):
        return shlex.split(command)
    if command := os.environ.get("KUSTOMIZE"):
        return [*shlex.split(command), "build"]
    if found := shutil.which("kustomize"):
        return [found, "build"]
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    pytest.skip("no kustomize and no kubectl")


def build(folder: Path) -> str:
    """Build a folder, or fail with what kustomize says."""
    done = attempt(folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def attempt(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a folder, whatever comes of it."""
    return subprocess.run([*command(), str(folder)], capture_output=True, text=True, check=False)


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write files below a folder, and give the folder."""
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder
