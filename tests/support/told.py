"""What the line of an interrupt says, compared with the disk: it is true, or the test fails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

Tree = Mapping[str, bytes]
"""Files by path."""

_LEFT = re.compile(
    r"(?:ipam\.lock is (?P<lock>written|as it was|unchanged))"
    r"(?:, rendered/ is (?:(?P<whole>complete)|incomplete: (?P<some>[\d,]+) of (?P<all>[\d,]+) files))?$"
)


def line_of(said: str) -> str:
    """Return the line of an interrupt; there is one."""
    (line,) = (row for row in said.splitlines() if row.startswith(("interrupted", "stopped by ")))
    return line


def command_of(line: str) -> str:
    """Return what it says to run."""
    found = re.search(r"; run(?: again)?: (ipamc .*)$", line)
    assert found, line
    return found[1]


def check_one(said: str, folder: str, old: Tree, new: Tree, now: Tree) -> str:
    """Compare what is said of one cluster with its files: before the run, after one that ends well, and now."""
    lock = f"{folder}/ipam.lock"
    changed = {
        path
        for path in old.keys() | new.keys()
        if path.startswith(f"{folder}/") and old.get(path) != new.get(path)
    }
    there = {path for path in changed if now.get(path) == new.get(path)}
    others = {path for path in changed - there if now.get(path) != old.get(path)}
    assert not others, f"{said}: {sorted(others)} are neither as they were nor as they are to be"
    if said == "nothing was written":
        assert not there, f"{said}: {sorted(there)}"
        return "nothing"
    found = _LEFT.match(said)
    assert found, said
    assert {"written": lock in there, "as it was": lock in changed - there, "unchanged": lock not in changed}[
        found["lock"]
    ], f"{said}: {sorted(there)}"
    files, done = changed - {lock}, there - {lock}
    if found["some"]:
        numbers = [int(found[name].replace(",", "")) for name in ("some", "all")]
        assert numbers == [len(done), len(files)], f"{said}: {len(done)} of {len(files)}"
        assert done != files
        return "some"
    assert done == files, f"{said}: {len(done)} of {len(files)}"
    return "all"


def check_several(line: str, folders: Sequence[str], old: Tree, new: Tree, now: Tree) -> tuple[str, ...]:
    """Compare what is said of each cluster with its files; return what is said: done, before or some of it."""
    parts = line.partition(": ")[2].rpartition("; run")[0].split("; ")
    groups = dict(part.split(": ", 1) for part in parts)
    seen = []
    for folder in folders:
        name = PurePosixPath(folder).name
        if name in groups:
            assert check_one(groups[name], folder, old, new, now) == "some"
            seen.append("some")
            continue
        (group,) = (word for word, names in groups.items() if name in names.split(", "))
        wanted = {"done": new, "as before": old}[group]
        of = {path for path in now.keys() | wanted.keys() if path.startswith(f"{folder}/")}
        assert {path: now.get(path) for path in of} == {path: wanted.get(path) for path in of}, line
        seen.append(group.removeprefix("as "))
    return tuple(seen)
