"""What a person agreed to, applied to the lock's lines before anything else looks at them: rename, release, reshard.

Consent is given once, to `ipamc lock`, and shows in the lock's lines, where it is reviewed. One that matches nothing is a typo, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from ipamc.lock.file import first_shards, line_at
from ipamc.model.cidr import Block, CidrError, parse_block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Related, Span, error, names
from ipamc.model.lock import Consent, Line, Lock, State


def agreed(cluster: Cluster, lock: Lock, consent: Consent) -> tuple[Lock, list[Diagnostic]]:
    """Give the lock with nodes renamed, lines released and shards grown as agreed. The number and order of lines stay. O(lines)."""
    found: list[Diagnostic] = []
    lines = list(lock.lines)
    for old, new in consent.rename:
        refused = list(rename_refused(cluster, lock, lines, old, new))
        found += refused
        if not refused:
            lines = [
                msgspec.structs.replace(line, node=new)
                if line.node == old and line.state is not State.RELEASED
                else line
                for line in lines
            ]
    for target in sorted(consent.release):
        chosen = matching(lines, target)
        refused = list(release_refused(lock, chosen, target))
        found += refused
        if not refused:
            freed = {line.block for line in chosen if line.state is not State.HELD}
            lines = [_released(line) if line.block in freed else line for line in lines]
    shards = (
        max(lock.shards, first_shards(len(cluster.nodes), cluster.shard_size))
        if consent.reshard
        else lock.shards
    )
    return replace(lock, lines=tuple(lines), shards=shards), found


def _released(line: Line) -> Line:
    return Line(block=line.block, pool=line.pool, node=line.node, state=State.RELEASED)


def block_of(target: str) -> Block | None:
    """Read a consent's target as a CIDR; None if it is a name."""
    try:
        return parse_block(target, pods=False)
    except CidrError:
        return None


def matching(lines: list[Line], target: str) -> list[Line]:
    """Give the lines that a consent for NODE or CIDR is about: those of the node, or those that share an address with the CIDR."""
    block = block_of(target)
    if block is None:
        return [line for line in lines if line.node == target and line.state is not State.RELEASED]
    return [line for line in lines if line.block.overlaps(block) and line.state is not State.RELEASED]


def rename_refused(
    cluster: Cluster, lock: Lock, lines: list[Line], old: str, new: str
) -> Iterator[Diagnostic]:
    """IPC0430: `--rename OLD=NEW` hands a dead node's lines to its replacement.

    OLD must be gone from the inventory, or two nodes would claim one block, and NEW must hold nothing yet. A new machine under a new name then comes up
    with the addresses that firewalls and routers know.
    """
    present = {node.name: node for node in cluster.nodes}
    theirs = [line for line in lines if line.node == old and line.state is not State.RELEASED]
    if old in present:
        yield error(
            "IPC0430",
            present[old].at,
            f"{old} cannot be renamed to {new}: it is still in the inventory",
            help=f"take {old} out of the inventory first",
        )
    elif not theirs:
        yield error(
            "IPC0430",
            Span(lock.path),
            f"{old} cannot be renamed to {new}: it has no line in the lock",
            help=f"ipamc show {cluster.name} --show-blocks lists who has",
        )
    for line in lines:
        if theirs and line.node == new and line.in_use:
            yield error(
                "IPC0430",
                line_at(lock, line),
                f"{old} cannot be renamed to {new}: {new} holds {line.block}",
                also=[Related(line_at(lock, theirs[0]), f"{old} has {theirs[0].block}")],
                help=f"leave {old} to its quarantine, or release it: ipamc lock {cluster.name} --release {old}",
            )
            break


def release_refused(lock: Lock, chosen: list[Line], target: str) -> Iterator[Diagnostic]:
    """IPC0429: `--release` is for quarantined lines, and for pending ones, which it cancels.

    The addresses of a released line can be given out again at once. A held line is in use; its node has to leave the inventory first. A CIDR that
    covers a held line is refused whole, so that no half of it is released by accident.
    """
    live = [line for line in chosen if line.state is State.HELD]
    others = [line for line in chosen if line.state is not State.HELD]
    if not chosen:
        yield error(
            "IPC0429",
            Span(lock.path),
            f"{target} has no line in the lock that could be released",
            help="name a node or a CIDR as it stands in the lock",
        )
    elif live and (block_of(target) is not None or not others):
        yield error(
            "IPC0429",
            line_at(lock, live[0]),
            f"{target} cannot be released: held lines of {names(f'{line.node} ({line.block})' for line in live)}",
            help="take the node out of the inventory first, or name quarantined lines",
        )
