"""Which nodes count as renumbered between two locks."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ipamc.model.lock import Line, State


def renumbered(
    ended: Iterable[Line],
    begun: Iterable[Line],
    present: Collection[str],
    operator_pools: Collection[str] = frozenset(),
    *,
    one_block: bool = True,
) -> set[str]:
    """Return the nodes whose blocks change: compile, lock and plan call these renumbered.

    A node is renumbered if it no longer holds a block that it held, or if a block is newly pending for it.
    Where Cilium's operator decides, in `operator_pools`, only a renumber by consent counts: else the lock
    follows the operator.

    `ended` are the lines of the base that the head does not have, `begun` those of the head that the base did
    not have; a line that is the same in both may be in both. `present` are the nodes of the inventory: a node
    that left it is not renumbered, and neither is one that gave a block back by consent, and got no other
    (`one_block`: see `Line.key`).
    """
    begun = tuple(begun)
    ended = tuple(ended)
    coming = {line.node for line in begun if line.state is State.PENDING}
    if ended:  # newcomers end no line of others: then nothing more is looked at
        waited = {(line.node, line.block) for line in ended if line.state is State.PENDING}
        coming = {
            line.node
            for line in begun
            if line.state is State.PENDING and (line.node, line.block) not in waited
        } | _moved(begun, ended, operator_pools, one_block=one_block)
    return {node for node in coming if node in present}


def _moved(
    begun: Collection[Line], ended: Collection[Line], operator_pools: Collection[str], *, one_block: bool
) -> set[str]:
    holds = {(line.node, line.block) for line in begun if line.state is State.HELD}
    agreed = {(line.node, line.block) for line in begun if line.moved}
    gained = {line.key(one_block=one_block) for line in begun if line.state is State.HELD}
    given_back = {
        (line.node, line.block)
        for line in begun
        if line.moved and not one_block and line.key(one_block=False) not in gained
    }
    return {
        line.node
        for line in ended
        if line.state is State.HELD
        and (line.node, line.block) not in holds
        and (line.node, line.block) not in given_back
        and (line.pool not in operator_pools or (line.node, line.block) in agreed)
    }
