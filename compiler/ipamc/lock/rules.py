"""What a lock's text must be: one rule a function, each with its entry for `ipamc explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.lock import Line, State

FORMAT = 1
"""The format that this version writes, and the only one it reads."""

CONFLICT_MARKER = "a conflict marker"
MERGE_AGAIN = "merge the two sides by rule: ipamc lock --onto REV; REV is the other branch, or HEAD where the merge is committed already"


def row_at(path: str, number: int, row: bytes) -> Span:
    """Give a line of the lock as a place, the line from 1."""
    text = row.decode(errors="replace")
    return Span(path, number, 1, len(text) + 1, text)


def lock_missing(path: str) -> Diagnostic:
    """IPC0401: a lock beside a rendered tree must not be missing.

    The manifests in `rendered/` were made from a lock that is no longer there. Without it every node would look like a newcomer and the whole
    cluster would be renumbered. Restore it from git; to start over on purpose, delete `rendered/` as well.
    """
    return error(
        "IPC0401",
        Span(path),
        "no lock beside an existing rendered/: its memory is lost",
        help=f"git checkout -- {path}, or delete rendered/ too to start over",
    )


def lock_empty(path: str) -> Diagnostic:
    """IPC0402: a lock is never empty.

    Even a lock without blocks has a header line. An empty file is a truncated one, and compiling with it would renumber every node.
    """
    return error(
        "IPC0402", Span(path), "the lock is empty: its memory is lost", help=f"git checkout -- {path}"
    )


def lock_unreadable(path: str, number: int, row: bytes, problem: str) -> Diagnostic:
    """IPC0403: every line of the lock is readable.

    The lock is JSON Lines that only the tool writes: a header, then one line per block. A conflict marker, a cut-off line or a hand edit is
    refused, never guessed at. Restore the file from git, or repair a merge with the merge driver that `ipamc init` sets up.
    """
    return error(
        "IPC0403",
        row_at(path, number, row),
        f"line {number} is {problem}" if problem.startswith("a ") else f"line {number}: {problem}",
        help=MERGE_AGAIN if problem == CONFLICT_MARKER else f"git checkout -- {path}, then compile again",
    )


def newer_format(path: str, row: bytes, found: int) -> Diagnostic:
    """IPC0404: the lock's format is one that this version knows.

    A newer ipamc wrote it. An older one that guessed could move blocks, so it refuses.
    """
    return error(
        "IPC0404",
        row_at(path, 1, row),
        f"lock format {found} is not {FORMAT}, the one that this version reads",
        help="install the ipamc that wrote it",
    )


def foreign_lock(path: str, row: bytes, found: str, cluster: Cluster) -> Diagnostic:
    """IPC0405: the lock is this cluster's own.

    Copying a cluster's folder copies its lock, and two clusters would hold the same blocks without knowing. Delete the copied lock (and the copied
    `rendered/`), or restore this cluster's.
    """
    return error(
        "IPC0405",
        row_at(path, 1, row),
        f"this is the lock of cluster {found!r}, not of {cluster.name!r}",
        also=[Related(cluster.field("metadata", "name"), f"{cluster.name} is named here")],
        help=f"restore the lock of {cluster.name}, or delete the copied one with its rendered/",
    )


def other_mode(path: str, row: bytes, found: str, cluster: Cluster) -> Diagnostic:
    """IPC0406: the lock was made for the mode that the Cluster names.

    Changing `spec.ipam.mode` changes who hands out addresses in the cluster; running nodes do not follow by themselves. It takes consent.
    """
    return error(
        "IPC0406",
        row_at(path, 1, row),
        f"the lock was made for mode {found}, and the Cluster says {cluster.mode}",
        also=[Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")],
        help=f"set mode: {found} again, or ipamc lock {cluster.name} --mode",
    )


def overlapping_lines(lines: list[tuple[int, Line]], path: str, rows: list[bytes]) -> Iterator[Diagnostic]:
    """IPC0407: no two lines of the lock share an address.

    A block stands twice, or one block lies inside another: two nodes would have one address. This is what a textual merge of two branches leaves
    behind where no merge driver ran. `ipamc lock --onto` merges the two sides again, by rule: what is published stays, the other is placed again.
    """
    widest: tuple[int, Line] | None = None
    for number, line in sorted(lines, key=lambda each: each[1].block):
        if widest and widest[1].block.overlaps(line.block):
            yield error(
                "IPC0407",
                row_at(path, number, rows[number - 1]),
                f"{line.block} of node {line.node} overlaps {widest[1].block} of node {widest[1].node}",
                also=[Related(row_at(path, widest[0], rows[widest[0] - 1]), "claimed here")],
                help=MERGE_AGAIN,
            )
        else:
            widest = (number, line)


def two_held(
    lines: Iterable[tuple[int, Line]], path: str, rows: list[bytes], mode: Mode
) -> Iterator[Diagnostic]:
    """IPC0408: a node has one held line a family where the mode gives it one block.

    In kubernetes and cluster-pool mode Cilium gives pods addresses of the first block only; two held lines, or two pending ones, are the trace of a bad
    merge.
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
                row_at(path, number, rows[number - 1]),
                f"node {line.node} has two {line.state} IPv{line.block.family} lines: {before[1].block} and {line.block}",
                also=[Related(row_at(path, before[0], rows[before[0] - 1]), "the other one")],
                help=MERGE_AGAIN,
            )


def not_canonical(path: str, number: int, row: bytes, wish: bytes) -> Diagnostic:
    """IPC0409: the lock's text is exactly what the tool writes.

    Lines in another order, other spacing, another spelling of an address: somebody edited or merged the file as text. What it says may still be
    sound, but nobody checked; restore it from git, or take the order and spelling that the message shows.
    """
    return error(
        "IPC0409",
        row_at(path, number, row),
        f"line {number} is not as the tool writes it; it would write {wish.decode() or 'the end of the file'}",
        help=f"git checkout -- {path}, then compile again",
    )
