"""Rules about the text of a lock: one function a rule, whose docstring is its entry for `ipamc explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from shlex import quote

from ipamc.model.address_sets import overlaps
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.lock import Line, State
from ipamc.model.wording import shown

FORMAT = 1
"""The format that this version writes, and the only one it reads."""

_CONFLICT_MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")

MERGE_AGAIN = (
    "merge the two sides by rule: ipamc lock --onto REV; REV is the other branch, or HEAD where the merge is committed already; "
    "after ipamc init git does it by itself in this clone"
)
"""The way out where git merged two locks as text."""


def row_at(path: str, number: int, row: bytes, value: object = "") -> Span:
    """Return the place of a value in a line of the lock, or of the whole line; `number` counts from 1."""
    text = row.decode(errors="replace")
    word = f'"{value}"' if isinstance(value, str) else f":{value}"
    start = text.find(word) if value else -1
    if start < 0:
        return Span(path, number, 1, len(text) + 1, text)
    start += not isinstance(value, str)
    return Span(path, number, start + 1, text.find(word) + len(word) + 1, text)


def lock_missing(path: str) -> Diagnostic:
    """IPC0401: a lock beside a rendered tree must not be missing.

    The manifests in `rendered/` were made from a lock that is no longer there.

    Why: without the lock every node would be a newcomer, and would get a block by its name: the whole
    cluster would be renumbered.

    Run: `git checkout HEAD -- clusters/CLUSTER/ipam.lock` brings it back. To start over on purpose, delete
    `rendered/` as well: `git rm -r clusters/CLUSTER/rendered`. Then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0401",
        Span(path),
        "no lock beside an existing rendered/: the record of which node has which block is lost",
        help=f"{_restored(path)}; where a commit deleted it: git checkout $(git rev-list -1 HEAD -- {quote(path)})~1 -- {quote(path)}; only where nothing was ever applied: delete rendered/ too",
    )


def lock_empty(path: str) -> Diagnostic:
    """IPC0402: a lock is never empty.

    Even a lock without blocks has a header line.

    Why: an empty file was cut off, by a full disk or a broken checkout. A compile with it would renumber
    every node.

    Run: `git checkout HEAD -- clusters/CLUSTER/ipam.lock` brings the lock back; then `ipamc compile
    CLUSTER`.
    """
    return error(
        "IPC0402",
        Span(path),
        "the lock is empty: the record of which node has which block is lost",
        help=_restored(path),
    )


def lock_unreadable(path: str, number: int, row: bytes, problem: str) -> Diagnostic:
    """IPC0403: every line of the lock is readable.

    The lock is JSON Lines that only the tool writes: a header, then one line per block. A conflict marker,
    a line that was cut off and an edit by hand are refused; so are numbers that no cluster needs, such as
    more than 1,048,576 shards.

    Why: what a line lacks cannot be guessed. A node of which it was lost would get another block than its
    pods use.

    Run: in a merge `ipamc lock CLUSTER --onto REV` merges the two sides by rule; REV is the other branch,
    or HEAD where the merge is committed already. Else restore the file: `git checkout HEAD --
    clusters/CLUSTER/ipam.lock`. The merge driver that `ipamc init CLUSTER` sets up prevents this.
    """
    marker = row.startswith(_CONFLICT_MARKERS)
    return error(
        "IPC0403",
        row_at(path, number, row),
        f"line {number} is a conflict marker" if marker else f"line {number}: {problem}",
        help=MERGE_AGAIN if marker else f"{_restored(path)}, then compile again",
    )


def newer_format(path: str, row: bytes, found: int) -> Diagnostic:
    """IPC0404: this version knows the lock's format.

    The number in the header, `"lock":1`, is the version of the format.

    Why: a newer ipamc wrote the lock. This one cannot know what the format means, and could move blocks.

    Run: install the version that wrote it, on your machine and in CI; `ipamc --version` shows which one
    runs. To go back, restore the lock and `rendered/` of before: `git checkout REV -- clusters/CLUSTER`.
    """
    return error(
        "IPC0404",
        row_at(path, 1, row, found),
        f"lock format {found} is not {FORMAT}, the one that this version reads",
        help=f"install the ipamc that wrote it; git log -1 -- {quote(path)} tells who did, and when",
    )


def foreign_lock(path: str, row: bytes, found: str, cluster: Cluster) -> Diagnostic:
    """IPC0405: the lock is this cluster's own.

    The header of the lock names its cluster.

    Why: a copy of a cluster's folder has a copy of its lock: two clusters would give the same blocks to
    their nodes. Where a cluster that runs got another name, its lock is the only record of who has which
    block.

    Run: delete the copied lock and the copied `rendered/` if this is a new cluster: `git rm -r
    clusters/CLUSTER/ipam.lock clusters/CLUSTER/rendered`. If a cluster was renamed, keep its lock: write the
    new name into its first line, or give the folder and the Cluster its old name again. Then `ipamc compile
    CLUSTER`.
    """
    theirs, ours = (f'"cluster":{dumps(name)}' for name in (found, cluster.name))
    return error(
        "IPC0405",
        row_at(path, 1, row, found),
        f"this is the lock of cluster {shown(found)}, not of {cluster.name!r}",
        also=[Related(cluster.field("metadata", "name"), f"{cluster.name} is named here")],
        help=f"if the folder is a copy for another cluster, delete {path} and rendered/; if the cluster got another name, write {ours} in place of {theirs} in line 1, and compile",
    )


ONLINE = frozenset(
    {
        ("kubernetes", "cluster-pool"),
        ("cluster-pool", "kubernetes"),
        ("kubernetes", "multi-pool"),
        ("cluster-pool", "multi-pool"),
    }
)
"""(old, new): the changes of mode in which running nodes can keep their blocks."""


def other_mode(path: str, row: bytes, found: str, cluster: Cluster) -> Diagnostic:
    """IPC0406: the lock was made for the mode that the Cluster names.

    Some modes nodes cannot leave (IPC0543).

    Why: another `spec.ipam.mode` changes who hands out addresses in the cluster. Running nodes do not
    follow by themselves: agents that restart with the new mode look for their blocks in other fields.

    Run: `ipamc lock CLUSTER --mode` consents. `ipamc runbook CLUSTER --change mode --to MODE` prints the
    order of the steps before, and `ipamc plan CLUSTER` shows what changes.
    """
    possible = (found, cluster.mode.value) in ONLINE
    way_out = f", or ipamc lock {cluster.name} --mode" if possible else "; ipamc explain IPC0543 tells why"
    return error(
        "IPC0406",
        row_at(path, 1, row, found),
        f"the lock was made for mode {found}, and the Cluster says {cluster.mode}",
        also=[Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")],
        help=f"set mode: {found} again{way_out}",
    )


def _written(numbered: tuple[int, Line], path: str, rows: list[bytes]) -> Span:
    number, line = numbered
    return row_at(path, number, rows[number - 1], str(line.block))


def overlapping_lines(lines: list[tuple[int, Line]], path: str, rows: list[bytes]) -> Iterator[Diagnostic]:
    """IPC0407: no two lines of the lock share an address.

    A block stands there twice, or one block lies inside another.

    Why: two nodes would have one address. A merge of two branches as text, without the merge driver, leaves
    this behind.

    Run: `ipamc lock CLUSTER --onto REV` merges the two sides again, by rule: what is published stays, and
    the other is placed again. REV is the other branch, or HEAD where the merge is committed already. `ipamc
    init CLUSTER` sets up the merge driver.
    """
    for around, inside in overlaps(lines, lambda numbered: numbered[1].block):
        outer, line = around[1], inside[1]
        yield error(
            "IPC0407",
            _written(inside, path, rows),
            f"{line.block} of node {line.node} overlaps {outer.block} of node {outer.node}",
            also=[Related(_written(around, path, rows), f"{outer.block} is here")],
            help=f"{MERGE_AGAIN}; after an edit by hand: {_restored(path)}",
        )


def two_held(
    lines: Iterable[tuple[int, Line]], path: str, rows: list[bytes], mode: Mode
) -> Iterator[Diagnostic]:
    """IPC0408: a node has one held line a family where the mode gives it one block.

    Two held lines of a node, or two pending ones, come from a wrong merge.

    Why: in kubernetes and cluster-pool mode Cilium gives pods addresses of the first block only; the second
    would be taken for nothing. Kubernetes refuses a Node with two podCIDRs of one family.

    Run: `ipamc lock CLUSTER --onto REV` merges the two sides again, by rule; REV is the other branch, or
    HEAD where the merge is committed already.
    """
    if not mode.one_block:
        return
    seen: dict[tuple[str, int, State], tuple[int, Line]] = {}
    for number, line in lines:
        if not line.in_use:
            continue
        before = seen.setdefault((line.node, line.block.family, line.state), (number, line))
        if before[1] is not line:
            yield error(
                "IPC0408",
                _written((number, line), path, rows),
                f"node {line.node} has two {line.state} IPv{line.block.family} lines: {before[1].block} and {line.block}",
                also=[Related(_written(before, path, rows), f"{before[1].block} is here")],
                help=f"{MERGE_AGAIN}; after an edit by hand: {_restored(path)}",
            )


def has_two_held(lines: Sequence[Line], mode: Mode) -> bool:
    """Tell whether `two_held` has something to say about lines."""
    if not mode.one_block or len({line.node for line in lines}) == len(lines):
        return False
    keys = [(line.node, line.block.family, line.state) for line in lines if line.in_use]
    return len(set(keys)) < len(keys)


def not_canonical(
    path: str, number: int, row: bytes, canonical: bytes, *, misplaced: bool = False
) -> Diagnostic:
    """IPC0409: the lock's text is exactly what the tool writes.

    Lines in another order, other spacing, another spelling of an address: somebody edited the file, or
    merged it as text.

    Why: its content may still be right, but it was not checked: a block may be in it that another node
    holds. Reviews would show changes in lines in which nothing changed.

    Run: restore it: `git checkout HEAD -- clusters/CLUSTER/ipam.lock`; or write it in the order and
    spelling that the message shows. Then `ipamc compile CLUSTER`.
    """
    wanted = canonical.decode()
    if row.endswith(b"\r"):
        problem = f"line {number} ends in a carriage return: git or an editor gave the file the line ends of Windows"
        way_out = f"ipamc init writes the .gitattributes that prevents it; then: rm {quote(path)} && {_restored(path)}"
    else:
        problem = (
            f"line {number} is not as the tool writes it; it would write {wanted or 'the end of the file'}"
        )
        way_out = f"{_restored(path)}, then compile again"
        if misplaced:
            problem = f"line {number} is not in its place: lines are in order of family and address, and here {wanted} would stand"
    return error("IPC0409", row_at(path, number, row), problem, help=way_out)


def _restored(path: str) -> str:
    return f"git checkout HEAD -- {quote(path)}"
