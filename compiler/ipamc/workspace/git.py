"""Queries to git about history and configuration, and merges.

`git_run` decides how git is run, `git_tree` reads the files of a commit. Functions raise EnvironmentFailure
if git cannot answer; None means that git answered and there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.workspace import git_run, git_tree
from ipamc.workspace.clusters import top_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.git_run import must, run

APPLIED = "refs/ipamc/applied/"
"""The prefix, before a cluster's name, of the ref of the commit that was last applied to it completely."""

root = top_of
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?").fullmatch


def configure(folder: str, settings: Mapping[str, str]) -> list[str]:
    """Set keys in the configuration of a folder's repository; return those that changed."""
    changed = [key for key, value in settings.items() if get(folder, key) != value]
    for key in changed:
        must(folder, "config", "--local", "--replace-all", key, settings[key])
    return changed


def get(folder: str, key: str) -> str | None:
    """Return the value of a key of the repository's own configuration; None where it is not set."""
    found = run(folder, "config", "--local", "--get", key)
    return found.text.rstrip("\n") if found.code == 0 else None


def names_of_revisions(folder: str) -> list[str]:
    """Return the names of a repository's local and remote branches and of its tags."""
    kinds = ("refs/heads", "refs/remotes", "refs/tags")
    found = run(folder, "for-each-ref", "--format=%(refname:short)", *kinds)
    return found.text.split() if found.code == 0 else []


def trunk(folder: str) -> str:
    """Return the revision with the published locks: `git config ipamc.trunk`, else origin/HEAD."""
    return run(folder, "config", "--get", "ipamc.trunk").text.strip() or "origin/HEAD"


def likely_trunk(folder: str) -> str:
    """Guess the trunk's name if `trunk` finds none; return "" if it does, or if there is no evidence.
    `git clone` writes origin/HEAD, `git remote add` does not. Then the guess is a branch of origin with a
    usual name of a trunk, or with the name of the branch that is checked out, if that one has such a name.
    """
    if commit(folder, trunk(folder)) or "origin" not in remotes(folder):
        return ""
    default = run(folder, "config", "--get", "init.defaultBranch").text.strip()
    usual = [name for name in dict.fromkeys((default, "main", "master")) if name]
    there = [name for name in usual if commit(folder, f"refs/remotes/origin/{name}")]
    here = run(folder, "symbolic-ref", "--short", "HEAD").text.strip()
    found = there or [name for name in usual if name == here]
    return f"origin/{found[0]}" if found else ""


def has_driver(folder: str, name: str) -> bool:
    """Return whether git knows a merge driver, from any of its configurations."""
    return run(folder, "config", "--get", f"merge.{name}.driver").code == 0


def show(folder: str, revision: str, path: str) -> bytes | None:
    """Return a file of a revision, or None. In a failed merge `:1` is the base, `:2` ours, `:3` theirs."""
    if revision.startswith(":"):
        return git_tree.staged(folder, int(revision[1:]), path)
    found = commit(folder, revision)
    return git_tree.blobs(folder, found, [path]).get(path) if found else None


def commit(folder: str, revision: str) -> str | None:
    """Return the commit of a revision, or None.
    Raises EnvironmentFailure if a tag and a branch have this name.
    """
    found = run(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if "is ambiguous" in found.complaint:
        better = "write refs/heads/… or refs/remotes/…"
        raise EnvironmentFailure(f"{revision!r} is ambiguous (a branch and a tag, for example): {better}")
    name = found.text.strip()
    return name if found.code == 0 and _OBJECT(name) else None


def remotes(folder: str) -> list[str]:
    """Return the names of the remotes."""
    return run(folder, "remote").text.split()


def before(folder: str, second: int) -> str | None:
    """Return the last commit of HEAD's first parents up to a time (seconds since 1970), or None."""
    if second < 0:  # git would take it for a large number
        return None
    found = run(folder, "rev-list", "--max-count=1", "--first-parent", f"--min-age={second}", "HEAD")
    return found.text.strip() or None if found.code == 0 else None


def committed(folder: str, commit: str) -> int:
    """Return the time (seconds since 1970) of a commit."""
    return int(must(folder, "rev-list", "--max-count=1", "--timestamp", commit).text.split()[0])


def last_change(folder: str, *paths: str) -> int | None:
    """Return the time (seconds since 1970) of HEAD's last commit to some files; None in a shallow clone."""
    found = run(folder, "rev-list", "--max-count=1", "--timestamp", "HEAD", "--", *paths)
    if found.code or not found.text or is_shallow(folder):  # its oldest commit seems to have all files
        return None
    return int(found.text.split()[0])


def before_deletion(folder: str, path: str) -> str:
    """Return the last commit that had a file which HEAD has no more; "" if none had it."""
    found = run(folder, "rev-list", "--max-count=1", "--abbrev-commit", "HEAD", "--", path).text.strip()
    return found and f"{found}~1"


def first(folder: str) -> str | None:
    """Return the oldest fetched commit of HEAD's first parents; None if there is no commit."""
    found = run(folder, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
    return found.text.split()[-1] if found.code == 0 and found.text else None


def is_shallow(folder: str) -> bool:
    """Return whether a clone has only the newer part of its history."""
    return run(folder, "rev-parse", "--is-shallow-repository").text.strip() == "true"


def parents(folder: str, revision: str) -> list[str]:
    """Return the parents of a commit, the first one first."""
    return must(folder, "rev-list", "--parents", "--max-count=1", revision).text.split()[1:]


def merge_base(folder: str, one: str, two: str) -> str | None:
    """Return the best common ancestor of two revisions; None without one, as in a shallow clone."""
    return next(iter(merge_bases(folder, one, two)), None)


def merge_bases(folder: str, one: str, two: str) -> list[str]:
    """Return all best common ancestors of two revisions: several after merges in both directions."""
    found = run(folder, "merge-base", "--all", one, two)
    return found.text.split() if found.code == 0 else []


def changed(folder: str, base: str) -> list[str]:
    """Return the files that differ between a commit and HEAD, below the repository's top, sorted.
    A moved file is listed under both names. Submodules are listed, too: `.gitmodules` of the branch could
    declare that they never differ, and git would obey that even between two trees.
    """
    options = ("-r", "--name-only", "--no-renames", "--ignore-submodules=none", "-z")
    return sorted(must(folder, "diff-tree", *options, base, "HEAD", "--").text.split("\0")[:-1])


def attributes(
    folder: str, paths: Iterable[str], names: Sequence[str], *how: str
) -> Iterator[tuple[str, str, str]]:
    """Yield (path, attribute, value) for these attributes of files; `how` is `--cached`, or `--source` and a
    commit, which git before 2.40 cannot read: then nothing. One process.
    """
    stdin = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    ask = run if "--source" in how else must
    found = ask(folder, "check-attr", *how, "-z", "--stdin", *names, stdin=stdin)
    rows = [] if found.code else found.text.split("\0")
    yield from zip(rows[0::3], rows[1::3], rows[2::3], strict=False)


def begin_merge(folder: str, revision: str) -> str | None:
    """Merge a revision into work tree and index without a commit; return why that did not begin, or None."""
    options = (*git_run.neutral(folder), *_identity(folder))
    done = run(folder, "merge", "--no-ff", "--no-commit", "--quiet", revision, options=options)
    return None if done.code == 0 or unmerged(folder) else (done.complaint or done.text).strip()


def unmerged(folder: str) -> dict[str, set[int]]:
    """Return the files that git could not merge, with the sides of each: 1 is the base, 2 ours, 3 theirs."""
    found = must(folder, "ls-files", "--unmerged", "--full-name", "-z")
    sides: dict[str, set[int]] = {}
    for row in found.text.split("\0")[:-1]:
        head, path = row.split("\t", 1)
        sides.setdefault(path, set()).add(int(head.split()[2]))
    return sides


def is_staged(top: str, path: str) -> bool:
    """Return whether the index has a file, by its path below the top of the work tree."""
    return bool(run(top, "ls-files", "--", path).output)


def restore(folder: str, side: int, paths: Iterable[str]) -> None:
    """Resolve files that git could not merge: take their side 2 (ours) or 3 (theirs)."""
    options = ({2: "--ours", 3: "--theirs"}[side], "--pathspec-from-file=-", "--pathspec-file-nul")
    stdin = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    must(folder, "checkout", *options, options=git_run.neutral(folder), stdin=stdin)


def is_clean(folder: str, path: str = ".") -> bool:
    """Return whether the work tree equals HEAD at and below a path, without untracked files."""
    status = ("status", "--porcelain", "--ignore-submodules=all", "--", path)
    return not must(folder, *status, options=git_run.neutral(folder)).output


def is_ignored(folder: str, path: str) -> bool:
    """Return whether git ignores an untracked file; False outside of a repository."""
    return bool(root(folder)) and bool(
        run(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "--", path).output
    )


def take_back(folder: str, path: str = ".") -> None:
    """Reset the work tree at and below a path to HEAD. The caller knows that it was clean before."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    must(folder, "reset", "--hard", "--quiet", "HEAD", options=options)


def finish_merge(folder: str, path: str) -> None:
    """Commit a merge with all present files at and below a path, as author ipamc if git knows no author."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    must(folder, "commit", "--no-edit", "--quiet", options=(*options, *_identity(folder)))


def commit_beside(folder: str, path: str, message: str) -> str:
    """Commit all files at and below a path on top of HEAD, on no branch; reset them; return the commit."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    arguments = ("-p", "HEAD", "-m", message, must(folder, "write-tree").text.strip())
    found = must(folder, "commit-tree", *arguments, options=(*options, *_identity(folder))).text.strip()
    take_back(folder, path)
    return found


def _identity(folder: str) -> tuple[str, ...]:
    known = run(folder, "var", "GIT_COMMITTER_IDENT")
    return () if known.code == 0 else ("-c", "user.name=ipamc", "-c", "user.email=ipamc@localhost")
