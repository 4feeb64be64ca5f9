"""The questions that ipamc asks git about history, configuration and a merge.

`git_run` says how git is run, `git_tree` reads the files of a commit. Functions raise Trouble where git
cannot tell; None means that git knows there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ipamc.workspace import git_run, git_tree
from ipamc.workspace.git_run import must, run
from ipamc.workspace.trouble import Trouble

APPLIED = "refs/ipamc/applied/"
"""Before the name of a cluster: the ref of the commit that was applied to it last, and completely."""

root = git_run.top_of
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
    """Return the names of the branches, also those of remotes, and of the tags of a folder's repository."""
    kinds = ("refs/heads", "refs/remotes", "refs/tags")
    found = run(folder, "for-each-ref", "--format=%(refname:short)", *kinds)
    return found.text.split() if found.code == 0 else []


def trunk(folder: str) -> str:
    """Return the revision whose locks are published: `git config ipamc.trunk`, else origin/HEAD."""
    return run(folder, "config", "--get", "ipamc.trunk").text.strip() or "origin/HEAD"


def likely_trunk(folder: str) -> str:
    """Return the trunk's name for a repository that does not know it; "" where it does, or nothing tells.
    `git clone` writes origin/HEAD, `git remote add` does not: then it is the branch of origin that is called
    as trunks are, or as the one that is checked out, if that one is.
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
    """Tell whether git knows a merge driver, from any of its configurations."""
    return run(folder, "config", "--get", f"merge.{name}.driver").code == 0


def show(folder: str, revision: str, path: str) -> bytes | None:
    """Return a file of a revision, or of a failed merge: `:1` base, `:2` ours, `:3` theirs; or None."""
    if revision.startswith(":"):
        return git_tree.staged(folder, int(revision[1:]), path)
    found = commit(folder, revision)
    return git_tree.blobs(folder, found, [path]).get(path) if found else None


def commit(folder: str, revision: str) -> str | None:
    """Return the commit that a revision names, or None. Raises Trouble for a tag with a branch's name."""
    found = run(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if "is ambiguous" in found.complaint:
        better = "write refs/heads/… or refs/remotes/…"
        raise Trouble(f"{revision!r} is ambiguous here, a branch and a tag for example: {better}")
    name = found.text.strip()
    return name if found.code == 0 and _OBJECT(name) else None


def remotes(folder: str) -> list[str]:
    """Return the names of the remotes."""
    return run(folder, "remote").text.split()


def before(folder: str, second: int) -> str | None:
    """Return HEAD's last commit, by first parents, up to a second (since 1970), or None."""
    if second < 0:  # git would take it for a large number
        return None
    found = run(folder, "rev-list", "--max-count=1", "--first-parent", f"--min-age={second}", "HEAD")
    return found.text.strip() or None if found.code == 0 else None


def committed(folder: str, commit: str) -> int:
    """Return the second (since 1970) at which a commit was committed."""
    return int(must(folder, "rev-list", "--max-count=1", "--timestamp", commit).text.split()[0])


def last_change(folder: str, *paths: str) -> int | None:
    """Return the second (since 1970) of HEAD's last commit to some files; None in a shallow clone."""
    found = run(folder, "rev-list", "--max-count=1", "--timestamp", "HEAD", "--", *paths)
    if found.code or not found.text or is_shallow(folder):  # whose oldest commit seems to have all
        return None
    return int(found.text.split()[0])


def first(folder: str) -> str | None:
    """Return the first commit of HEAD's history, by first parents, that was fetched; None without any."""
    found = run(folder, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
    return found.text.split()[-1] if found.code == 0 and found.text else None


def is_shallow(folder: str) -> bool:
    """Tell whether a clone has only the newer part of its history."""
    return run(folder, "rev-parse", "--is-shallow-repository").text.strip() == "true"


def parents(folder: str, revision: str) -> list[str]:
    """Return the parents of a commit, the first one first."""
    return must(folder, "rev-list", "--parents", "--max-count=1", revision).text.split()[1:]


def merge_base(folder: str, one: str, two: str) -> str | None:
    """Return the best common ancestor of two revisions; None without one, as in a shallow clone."""
    return next(iter(merge_bases(folder, one, two)), None)


def merge_bases(folder: str, one: str, two: str) -> list[str]:
    """Return all best common ancestors of two revisions: several where both ways were merged."""
    found = run(folder, "merge-base", "--all", one, two)
    return found.text.split() if found.code == 0 else []


def changed(folder: str, base: str) -> list[str]:
    """Return the files that differ between a commit and HEAD, below the repository's top, sorted.
    A file that moved has both names. Submodules are among them: `.gitmodules` of the branch could say that
    they never differ, and git would obey that between two trees, too.
    """
    options = ("-r", "--name-only", "--no-renames", "--ignore-submodules=none", "-z")
    return sorted(must(folder, "diff-tree", *options, base, "HEAD", "--").text.split("\0")[:-1])


def begin_merge(folder: str, revision: str) -> str | None:
    """Merge a revision into work tree and index, uncommitted; return why that did not begin, or None."""
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


def restore(folder: str, side: int, paths: Iterable[str]) -> None:
    """Take one side, 2 (ours) or 3 (theirs), of files that git could not merge."""
    options = ({2: "--ours", 3: "--theirs"}[side], "--pathspec-from-file=-", "--pathspec-file-nul")
    stdin = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    must(folder, "checkout", *options, options=git_run.neutral(folder), stdin=stdin)


def is_clean(folder: str, path: str = ".") -> bool:
    """Tell whether the work tree is as HEAD has it at and below a path, without untracked files."""
    status = ("status", "--porcelain", "--ignore-submodules=all", "--", path)
    return not must(folder, *status, options=git_run.neutral(folder)).output


def is_ignored(folder: str, path: str) -> bool:
    """Tell whether git leaves out a file that it does not have yet; outside of a repository it does not."""
    return bool(root(folder)) and bool(
        run(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "--", path).output
    )


def take_back(folder: str, path: str = ".") -> None:
    """Reset a work tree that was clean at and below a path to HEAD: what was merged and written is gone."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    must(folder, "reset", "--hard", "--quiet", "HEAD", options=options)


def finish_merge(folder: str, path: str) -> None:
    """Commit a merge with everything at and below a path now; by ipamc if git knows no author."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    must(folder, "commit", "--no-edit", "--quiet", options=(*options, *_identity(folder)))


def commit_beside(folder: str, path: str, message: str) -> str:
    """Return a new commit on HEAD, of no branch, with all at and below a path, and reset that."""
    options = git_run.neutral(folder)
    must(folder, "add", "--all", "--", path, options=options)
    arguments = ("-p", "HEAD", "-m", message, must(folder, "write-tree").text.strip())
    found = must(folder, "commit-tree", *arguments, options=(*options, *_identity(folder))).text.strip()
    take_back(folder, path)
    return found


def _identity(folder: str) -> tuple[str, ...]:
    known = run(folder, "var", "GIT_COMMITTER_IDENT")
    return () if known.code == 0 else ("-c", "user.name=ipamc", "-c", "user.email=ipamc@localhost")
