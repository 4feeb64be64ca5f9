"""Facts that findings prove of objects, the later findings that each explains, and the kinds that rules need.

A finding hides a later one only by a row of `EXPLAINS`, about the same object, and within the blocks that it
names. A finding that rests on a missing kind proves nothing. So a dump without some kind has no finding that
the complete dump would not have, except those that say what is unknown: IPC0904, and IPC0943 for a kind that
was not requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Block
from ipamc.review.live.objects import CILIUM_NODE, NODE_CONFIG, POLICIES, POOL


class Fact(StrEnum):
    """A fact about an object that a finding proves."""

    NO_MACHINE = "no kubelet and no agent runs for the Node"
    GONE = "there is no such Node"
    CREATED_AGAIN = "the Node was deleted and created again"
    NOT_LISTED = "the inventory does not have the node"
    NO_BLOCK = "the node waits for a block of a family"
    OTHER_BLOCKS = "the object has other blocks than git"
    APART = "Node and CiliumNode have different blocks"
    MISSING = "the object is not in the cluster"
    FORMER_AGENT = "the agent runs with a former block of the node"


class Cause(NamedTuple):
    """A fact that a finding proves."""

    about: str  # the identity of the object
    fact: Fact
    blocks: tuple[Block, ...] = ()
    """The blocks that the object has and those that it should have: consequences are about these alone."""


EXPLAINS: Mapping[Fact, Mapping[str, str]] = {
    Fact.NO_MACHINE: {
        "IPC0921": "an apply created the Node, with a uid of its own",
        "IPC0922": "no agent waits",
        "IPC0923": "no pod runs there",
        "IPC0924": "nobody listed it",
        "IPC0943": "no agent needs the CiliumNode",
    },
    Fact.GONE: {
        "IPC0926": "the CiliumNode is what is left of it",
        "IPC0943": "the CiliumNode was collected with its Node",
        "IPC0944": "the CiliumNode is what is left of it",
    },
    Fact.CREATED_AGAIN: {
        "IPC0941": "a new Node has no block, and its agent made a new CiliumNode without one",
        "IPC0942": "the same",
        "IPC0943": "the CiliumNode was collected with the former Node",
    },
    Fact.NOT_LISTED: {"IPC0944": "nothing is rendered for the node any more"},
    Fact.NO_BLOCK: {
        "IPC0922": "said already",
        "IPC0941": "what git has is missing, and nothing else is there",
        "IPC0942": "the same",
        "IPC0952": "the agent has not started yet: it waits",
        "IPC0960": "the pods have addresses of the block that was taken away",
    },
    Fact.OTHER_BLOCKS: {
        "IPC0911": "said already, with the block",
        "IPC0912": "said already, with the block",
        "IPC0913": "the pool has not the blocks of git, or the node another one's",
        "IPC0941": "said already, with the block",
        "IPC0942": "said already, with the block",
        "IPC0950": "one of the two objects changed",
        "IPC0951": "one of the two objects changed",
        "IPC0952": "the agent runs with the block of git: the object changed after its start",
        "IPC0954": "said already, with the block: the agent announces what its object has",
        "IPC0960": "the pods have addresses of the block of git: the object changed after their start",
    },
    Fact.APART: {
        "IPC0941": "said already, with both blocks",
        "IPC0942": "said already, with both blocks",
        "IPC0952": "the agent runs with the block of the Node",
    },
    Fact.MISSING: {"IPC0913": "the node has a block that git has in that pool"},
    Fact.FORMER_AGENT: {"IPC0960": "an agent that did not restart gives pods addresses of that block"},
}
"""By fact, the codes of findings that follow from it, and why."""


class Suppressed:
    """The facts that earlier findings proved, by object."""

    def __init__(self) -> None:
        self._causes: dict[str, list[Cause]] = {}

    def add(self, causes: Iterable[Cause]) -> None:
        """Record the facts that a finding proves."""
        for cause in causes:
            self._causes.setdefault(cause.about, []).append(cause)

    def explains(self, code: str, about: str, blocks: Iterable[Block] = ()) -> bool:
        """Return whether a finding about some blocks of an object follows from earlier findings."""
        causes = [cause for cause in self._causes.get(about, ()) if code in EXPLAINS[cause.fact]]
        if not causes:
            return False
        known = outermost(block for cause in causes for block in cause.blocks)
        return all(index_around(known, block) is not None for block in blocks)


CONFIG_MAP, DEPLOYMENT, POD, ENDPOINT = "ConfigMap", "Deployment", "Pod", "CiliumEndpoint"
BLOCKS = "blocks"
"""The kind that shows the blocks of nodes: Node in kubernetes mode with podCIDRs, else CiliumNode."""

OF_ROUTES = ("IPC0953", "IPC0954", "IPC0955", "IPC0956")
"""The rules about routing tables, if some are given."""

NEEDS: Mapping[str, frozenset[str]] = {
    code: frozenset(kinds)
    for kinds, codes in (
        ((BLOCKS,), ("IPC0910", "IPC0911", "IPC0912", "IPC0923", *OF_ROUTES)),
        ((BLOCKS, POD), ("IPC0922", "IPC0960")),
        ((BLOCKS, POD, ENDPOINT), ("IPC0963",)),
        ((CILIUM_NODE,), ("IPC0926", "IPC0950", "IPC0970")),
        ((CILIUM_NODE, CONFIG_MAP), ("IPC0951",)),
        ((CILIUM_NODE, CONFIG_MAP, POD), ("IPC0952",)),
        ((CILIUM_NODE, POOL), ("IPC0913",)),
        ((CILIUM_NODE, POOL, NODE_CONFIG, *POLICIES), ("IPC0941", "IPC0942", "IPC0943", "IPC0944")),
        ((POOL, NODE_CONFIG, *POLICIES), ("IPC0945",)),
        ((CONFIG_MAP,), ("IPC0933", "IPC0934", "IPC0935")),
        ((CONFIG_MAP, DEPLOYMENT), ("IPC0930",)),
        ((CONFIG_MAP, POD), ("IPC0931",)),
        ((POD,), ("IPC0932", "IPC0961")),
        ((POD, ENDPOINT, CONFIG_MAP), ("IPC0962",)),
    )
    for code in codes
}
"""The kinds without which a rule finds less, or nothing. Every rule needs Nodes too."""
