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


def trunk(folder: str) -> str:
    """Give the revision whose locks are published: `git config ipamc.trunk`, else origin/HEAD."""
    found = _git(folder, "config", "--get", "ipamc.trunk")
    return found.stdout.strip() if found and found.returncode == 0 and found.stdout.strip() else "origin/HEAD"


def show(folder: str, revision: str, path: str) -> bytes | None:
    """Give a file of a revision, by its path below the repository's top; None where there is no such revision or file.

    `:1`, `:2` and `:3` are the base, ours and theirs of a file that git could not merge.
    """
    found = _run(folder, "cat-file", "blob", f"{revision}:{path}")
    return found.stdout if found and found.returncode == 0 else None


def commit(folder: str, revision: str) -> str | None:
    """Give the commit that a revision names; None if git knows none."""
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return found.stdout.strip() if found and found.returncode == 0 else None


def parents(folder: str, revision: str) -> list[str]:
    """Give the parents of a commit, the first one first."""
    found = _git(folder, "rev-list", "--parents", "--max-count=1", revision)
    return found.stdout.split()[1:] if found and found.returncode == 0 else []


def merge_base(folder: str, one: str, two: str) -> str | None:
    """Give the best common ancestor of two revisions; None without one, as in a shallow clone."""
    found = _git(folder, "merge-base", one, two)
    return found.stdout.strip() if found and found.returncode == 0 else None


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    done = _run(folder, *arguments)
    return None if done is None else subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))


def _text(output: bytes) -> str:
    return output.decode("utf-8", "surrogateescape")


def _run(folder: str, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    try:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
    except FileNotFoundError:
        return None
