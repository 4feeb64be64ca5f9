"""The door to git: the only module that runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping


def root(folder: str) -> str | None:
    """Give the top folder of the repository that a folder is in; None outside of one, or without git."""
    found = _git(folder, "rev-parse", "--show-toplevel")
    return found.stdout.rstrip("\n") if found and found.returncode == 0 else None


def configure(folder: str, settings: Mapping[str, str]) -> list[str]:
    """Set keys in the configuration of a folder's repository; give those that had another value, or none. Raises OSError with git's words."""
    changed = [key for key, value in settings.items() if get(folder, key) != value]
    for key in changed:
        done = _git(folder, "config", "--local", "--replace-all", key, settings[key])
        if not done or done.returncode:
            raise OSError(f"git config {key}: {done.stderr.strip() if done else 'there is no git'}")
    return changed


def get(folder: str, key: str) -> str | None:
    """Give the value of a key of the repository's own configuration; None where it is not set."""
    found = _git(folder, "config", "--local", "--get", key)
    return found.stdout.rstrip("\n") if found and found.returncode == 0 else None


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    try:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, check=False, encoding="utf-8", errors="surrogateescape")  # noqa: S603 - no shell
    except FileNotFoundError:
        return None
