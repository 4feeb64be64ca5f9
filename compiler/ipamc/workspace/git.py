"""git: the only module that runs it. Functions return what git prints as values, and None where git fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence


def root(folder: str) -> str | None:
    """Return the top folder of the repository that a folder is in; None outside of one, or without git."""
    found = _git(folder, "rev-parse", "--show-toplevel")
    return found.stdout.rstrip("\n") if found and found.returncode == 0 else None


def configure(folder: str, settings: Mapping[str, str]) -> list[str]:
    """Set keys in the configuration of a folder's repository; return those that changed.

    Raises OSError with what git prints.
    """
    changed = [key for key, value in settings.items() if get(folder, key) != value]
    for key in changed:
        done = _git(folder, "config", "--local", "--replace-all", key, settings[key])
        if not done or done.returncode:
            raise OSError(f"git config {key}: {done.stderr.strip() if done else 'there is no git'}")
    return changed


def get(folder: str, key: str) -> str | None:
    """Return the value of a key of the repository's own configuration; None where it is not set."""
    found = _git(folder, "config", "--local", "--get", key)
    return found.stdout.rstrip("\n") if found and found.returncode == 0 else None


def trunk(folder: str) -> str:
    """Return the revision whose locks are published: `git config ipamc.trunk`, else origin/HEAD."""
    found = _git(folder, "config", "--get", "ipamc.trunk")
    return found.stdout.strip() if found and found.returncode == 0 and found.stdout.strip() else "origin/HEAD"


def show(folder: str, revision: str, path: str) -> bytes | None:
    """Return a file of a revision, by its path below the repository's top; None where there is none.

    `:1`, `:2` and `:3` are the base, ours and theirs of a file that git could not merge.
    """
    found = _run(folder, "cat-file", "blob", f"{revision}:{path}")
    return found.stdout if found and found.returncode == 0 else None


def commit(folder: str, revision: str) -> str | None:
    """Return the commit that a revision names; None if git knows none."""
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return found.stdout.strip() if found and found.returncode == 0 else None


def before(folder: str, second: int) -> str | None:
    """Return the last commit of HEAD's history that was committed at a second (since 1970) or before.

    The history is that of first parents. None where there is no such commit.
    """
    found = _git(folder, "rev-list", "--max-count=1", "--first-parent", f"--min-age={second}", "HEAD")
    return found.stdout.strip() or None if found and found.returncode == 0 else None


def committed(folder: str, commit: str) -> int:
    """Return the second (since 1970) at which a commit was committed."""
    found = _git(folder, "rev-list", "--max-count=1", "--timestamp", commit)
    return int(found.stdout.split()[0]) if found and found.returncode == 0 else 0


def first(folder: str) -> str | None:
    """Return the first commit of HEAD's history, by first parents; None where nothing was committed.

    In a shallow clone, that is the oldest commit that was fetched.
    """
    found = _git(folder, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
    return found.stdout.split()[-1] if found and found.returncode == 0 and found.stdout else None


def is_shallow(folder: str) -> bool:
    """Tell whether a clone has only the newer part of its history."""
    found = _git(folder, "rev-parse", "--is-shallow-repository")
    return bool(found and found.stdout.strip() == "true")


def folders(folder: str, revision: str, path: str) -> list[str]:
    """Return the names of the folders right below a path in a revision, in order.

    "" is the repository's top. There are none where there is no such path.
    """
    found = _git(folder, "ls-tree", "-d", "-z", "--name-only", f"{revision}:{path}")
    return found.stdout.split("\0")[:-1] if found and found.returncode == 0 else []


def blobs(folder: str, revision: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Return those of some files that a revision has, by path below the repository's top.

    One process for any number of files.
    """
    asked = "".join(f"{revision}:{path}\n" for path in paths)
    return dict(_batch(folder, asked.encode("utf-8", "surrogateescape"), paths))


def parents(folder: str, revision: str) -> list[str]:
    """Return the parents of a commit, the first one first."""
    found = _git(folder, "rev-list", "--parents", "--max-count=1", revision)
    return found.stdout.split()[1:] if found and found.returncode == 0 else []


def merge_base(folder: str, one: str, two: str) -> str | None:
    """Return the best common ancestor of two revisions; None without one, as in a shallow clone."""
    found = _git(folder, "merge-base", one, two)
    return found.stdout.strip() if found and found.returncode == 0 else None


def changed(folder: str, base: str) -> list[str] | None:
    """Return the files that differ between a commit and HEAD, below the repository's top, sorted.

    A file that moved has both names. None where git cannot tell.
    """
    found = _git(folder, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base, "HEAD", "--")
    return sorted(found.stdout.split("\0")[:-1]) if found and found.returncode == 0 else None


def begin_merge(folder: str, revision: str) -> str | None:
    """Merge a revision into the work tree and the index; commit nothing.

    Return None, or git's message where the merge did not begin. After that, `unmerged` lists the files that
    git could not merge.
    """
    done = _git(folder, *_identity(folder), "merge", "--no-ff", "--no-commit", "--quiet", revision)
    if done and (done.returncode == 0 or unmerged(folder)):
        return None
    return (done.stderr or done.stdout).strip() if done else "there is no git"


def unmerged(folder: str) -> dict[str, set[int]]:
    """Return the files that git could not merge, below the repository's top, with the sides of each.

    1 is the base, 2 ours, 3 theirs.
    """
    found = _git(folder, "ls-files", "--unmerged", "--full-name", "-z")
    sides: dict[str, set[int]] = {}
    for row in found.stdout.split("\0")[:-1] if found else ():
        head, path = row.split("\t", 1)
        sides.setdefault(path, set()).add(int(head.split()[2]))
    return sides


def restore(folder: str, side: int, paths: Iterable[str]) -> None:
    """Take one side, 2 (ours) or 3 (theirs), of files that git could not merge."""
    _must(
        folder,
        "checkout",
        {2: "--ours", 3: "--theirs"}[side],
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
        paths=paths,
    )


def is_clean(folder: str) -> bool:
    """Tell whether the work tree is as HEAD has it, without untracked files."""
    found = _git(folder, "status", "--porcelain")
    return found is not None and found.returncode == 0 and not found.stdout


def take_back(folder: str) -> None:
    """Reset a work tree that was clean before to HEAD: what was merged and written since is gone."""
    _must(folder, "add", "--all")
    _must(folder, "reset", "--hard", "--quiet", "HEAD")


def finish_merge(folder: str, path: str) -> None:
    """Commit a merge with everything that is at and below a path now.

    The author is ipamc where git knows none.
    """
    _must(folder, "add", "--all", "--", path)
    _must(folder, *_identity(folder), "commit", "--no-edit", "--quiet")


def _identity(folder: str) -> tuple[str, ...]:
    known = _git(folder, "var", "GIT_COMMITTER_IDENT")
    return (
        ()
        if known and known.returncode == 0
        else ("-c", "user.name=ipamc", "-c", "user.email=ipamc@localhost")
    )


def _must(folder: str, *arguments: str, paths: Iterable[str] = ()) -> None:
    stdin = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    done = _run(folder, *arguments, stdin=stdin)
    if not done or done.returncode:
        raise OSError(
            f"git {' '.join(arguments)}: {_text(done.stderr).strip() if done else 'there is no git'}"
        )


def files(folder: str, revision: str, path: str) -> dict[str, bytes]:
    """Return all files of a revision at and below a path, in order of path.

    The path is below the repository's top; "" is the top. Two processes for any number of files. A symbolic
    link within the revision is followed, one step; a link to nothing is left out.
    """
    listed = _run(folder, "ls-tree", "-r", "-z", "--full-tree", revision, *(["--", path] if path else []))
    if not listed or listed.returncode:
        return {}
    names: list[tuple[str, str]] = []
    for row in listed.stdout.split(b"\0")[:-1]:
        head, name = row.split(b"\t", 1)
        mode, _, blob = head.decode().split()
        # A submodule is a commit of another repository; no name that we read has a line break.
        if mode != "160000" and b"\n" not in name:
            names.append((_text(name), blob if mode != "120000" else ""))
    asked = "".join(f"{blob or f'{revision}:{name}'}\n" for name, blob in names)
    return dict(_batch(folder, asked.encode("utf-8", "surrogateescape"), [name for name, _ in names]))


def _batch(folder: str, asked: bytes, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    found = _run(folder, "cat-file", "--batch", "--follow-symlinks", stdin=asked)
    output, at = found.stdout if found else b"", 0
    for name in names:
        end = output.find(b"\n", at)
        head = output[at:end].split()
        if len(head) != 3 or head[1] != b"blob":
            a_link = head and head[0] in {b"symlink", b"dangling", b"loop", b"notdir"}
            at = end + 1 + (int(head[-1]) + 1 if a_link else 0)
            continue
        size = int(head[2])
        yield name, output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    done = _run(folder, *arguments)
    return (
        None
        if done is None
        else subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))
    )


def _text(output: bytes) -> str:
    return output.decode("utf-8", "surrogateescape")


def _run(folder: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
    try:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, check=False)  # noqa: S603 - no shell
    except FileNotFoundError:
        return None
