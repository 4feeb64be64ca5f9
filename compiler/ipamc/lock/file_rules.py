"""Rules about the text of a lock's file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from shlex import quote

from ipamc.model.address_sets import overlaps
from ipamc.model.cluster import LOCK_MODES, LockMode, Scheme
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.lock import Line, Lock, State
from ipamc.model.wording import shown

FORMAT = 1
"""The format that this version writes, and the only one it reads."""

LFS = b"version https://git-lfs.github.com/spec/"
"""The beginning of a pointer of Git LFS."""
CONFLICT_MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")

MERGE_AGAIN = (
    "merge both sides: ipamc lock --onto REV (the other branch, or HEAD if the merge is committed); "
    "after ipamc init, git does this"
)
"""The fix if git merged two locks as text."""


def row_at(path: str, number: int, row: bytes, value: object = "") -> Span:
    """Return the place of a value in a line of the lock, or of the whole line; `number` counts from 1."""
    text = row.decode(errors="replace")
    word = f'"{value}"' if isinstance(value, str) else f":{value}"
    start = text.find(word) if value else -1
    if start < 0:
        return Span(path, number, 1, len(text) + 1, text)
    start += not isinstance(value, str)
    return Span(path, number, start + 1, text.find(word) + len(word) + 1, text)


def lock_missing(path: str, *, committed: bool) -> Diagnostic:
    """IPC0401: ipam.lock exists if `rendered/` exists or the last commit contains the lock."""
    there = ", but HEAD has one" if committed else " beside rendered/"
    message = f"no lock{there}: the record of which node holds which block is lost"
    older = f"git checkout $(git rev-list -1 HEAD -- {quote(path)})~1 -- {quote(path)}"
    then = ", then compile again" if committed else f"; if a commit deleted it: {older}"
    return error("IPC0401", Span(path), message, help=f"{_restored(path)}{then}")


def lock_empty(path: str) -> Diagnostic:
    """IPC0402: ipam.lock is not empty."""
    message = "the lock is empty: the record of which node holds which block is lost"
    return error("IPC0402", Span(path), message, help=_restored(path))


def lock_unreadable(path: str, number: int, row: bytes, problem: str) -> Diagnostic:
    """IPC0403: every line of the lock is readable."""
    marker = row.startswith(CONFLICT_MARKERS)
    message = f"line {number} is a conflict marker" if marker else f"line {number}: {problem}"
    fix = MERGE_AGAIN if marker else f"{_restored(path)}, then compile again"
    if row.startswith(LFS):
        fix = "run git lfs pull, and keep the lock out of Git LFS, which cannot merge it"
    return error("IPC0403", row_at(path, number, row), message, help=fix)


def newer_format(path: str, row: bytes, found: int) -> Diagnostic:
    """IPC0404: this version of ipamc knows the lock's format."""
    message = f"lock format {found} is unknown: this version of ipamc reads format {FORMAT}"
    fix = f"install the version of ipamc that wrote it; git log -1 -- {quote(path)} shows who did, and when"
    return error("IPC0404", row_at(path, 1, row, found), message, help=fix)


def foreign_lock(path: str, row: bytes, found: str, cluster: Scheme) -> Diagnostic:
    """IPC0405: the lock belongs to this cluster."""
    theirs, ours = (f'"cluster":{dumps(name)}' for name in (found, cluster.name))
    message = f"this is the lock of cluster {shown(found)}, not of {cluster.name!r}"
    also = [Related(cluster.field("metadata", "name"), f"the name {cluster.name} is set here")]
    copy = "for a new cluster, copy only the input files into a new folder"
    fix = f"{copy}; if the cluster was renamed, replace {theirs} by {ours} in line 1, and compile"
    return error("IPC0405", row_at(path, 1, row, found), message, also=also, help=fix)


def keeps_blocks(old: str, new: str) -> bool:
    """Tell whether running nodes can keep their blocks, one of a family, in this change of mode."""
    ways = {"kubernetes", "cluster-pool"}
    return old != new and old in {*ways, "crd"} and new in {*ways, "multi-pool"}


def empty_nodes(cluster: Scheme) -> frozenset[str]:
    """Return the names of the nodes on which no pod can run."""
    return frozenset(node.name for node in cluster.nodes if not cluster.may_run(node))


def lost_blocks(lock: Lock, cluster: Scheme, old: str, new: str) -> list[Line]:
    """Return the lines that their nodes cannot keep in a change of mode; one of a family is kept at best."""
    lines = [line for line in lock.lines if line.state in {State.HELD, State.PENDING}]
    number = Counter((line.node, line.block.family, line.state) for line in lines)
    several = {line for line in lines if number[line.node, line.block.family, line.state] > 1}
    of_empty = several if LOCK_MODES[new].one_block else ()  # nobody uses the blocks of an empty node
    # A mode with one block gave no others: further lines of its nodes are new.
    of_running = (set() if LOCK_MODES[old].one_block else several) if keeps_blocks(old, new) else set(lines)
    empty = empty_nodes(cluster)
    return [line for line in lines if line in (of_empty if line.node in empty else of_running)]


def other_mode(path: str, row: bytes, found: str, cluster: Scheme) -> Diagnostic:
    """IPC0406: the lock and the Cluster have the same mode."""
    way_out = "; for the reason: ipamc explain IPC0543"
    if keeps_blocks(found, cluster.mode):
        way_out = f", or consent: ipamc lock {cluster.name} --mode; steps: ipamc runbook {cluster.name}"
    at = row_at(path, 1, row, found)
    message = f"the lock is for mode {found}, but the Cluster sets {cluster.mode}"
    return error("IPC0406", at, message, also=[cluster.mode_here], help=f"restore mode: {found}{way_out}")


Numbered = tuple[int, Line]
"""A line with its row in the file, from 1."""


def _two_lines(
    code: str, message: str, one: Numbered, other: Numbered, path: str, rows: list[bytes]
) -> Diagnostic:
    """Return a finding about a line that conflicts with another one."""
    at, there = (row_at(path, row, rows[row - 1], str(line.block)) for row, line in (one, other))
    fix = f"{MERGE_AGAIN}; after an edit by hand: {_restored(path)}"
    return error(code, at, message, also=[Related(there, f"{other[1].block} is here")], help=fix)


def overlapping_lines(lines: list[Numbered], path: str, rows: list[bytes]) -> Iterator[Diagnostic]:
    """IPC0407: no two lines of the lock share an address."""
    for around, inside in overlaps(lines, lambda numbered: numbered[1].block):
        outer, line = around[1], inside[1]
        message = f"{line.block} of node {line.node} overlaps {outer.block} of node {outer.node}"
        yield _two_lines("IPC0407", message, inside, around, path, rows)


def two_held(lines: Iterable[Numbered], path: str, rows: list[bytes], mode: LockMode) -> Iterator[Diagnostic]:
    """IPC0408: in modes with one block per node, a node has one held line per IP family."""
    seen: dict[tuple[str, int, State], Numbered] = {}
    for number, line in lines if mode.one_block else ():
        family = line.block.family
        before = seen.setdefault((line.node, family, line.state), (number, line)) if line.in_use else None
        if before and before[1] is not line and not before[1].block.overlaps(line.block):
            two = f"two {line.state} IPv{family} lines: {before[1].block} and {line.block}"
            yield _two_lines("IPC0408", f"node {line.node} has {two}", (number, line), before, path, rows)


def has_two_held(lines: Sequence[Line], mode: LockMode) -> bool:
    """Return whether `two_held` has findings about lines."""
    if not mode.one_block or len({line.node for line in lines}) == len(lines):
        return False
    keys = [(line.node, line.block.family, line.state) for line in lines if line.in_use]
    return len(set(keys)) < len(keys)


def not_canonical(
    path: str, number: int, row: bytes, canonical: bytes, *, misplaced: bool = False
) -> Diagnostic:
    """IPC0409: the lock's text is exactly what ipamc writes."""
    wanted, fix = canonical.decode(), f"{_restored(path)}, then compile again"
    if row.endswith(b"\r"):
        problem = "ends in a carriage return: git or an editor converted the file to Windows line endings"
        init = "run ipamc init, whose .gitattributes prevents this"
        fix = f"{init}; then: rm {quote(path)} && {_restored(path)}"
    elif misplaced:
        problem = f"is out of order (by family and address); expected here: {wanted}"
    else:
        problem = f"is not as ipamc writes it; expected: {wanted or 'the end of the file'}"
    return error("IPC0409", row_at(path, number, row), f"line {number} {problem}", help=fix)


def _restored(path: str) -> str:
    return f"git checkout HEAD -- {quote(path)}"
