"""Rules of an import from Calico, about blocks and nodes: what a person must decide before a node moves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ipamc.model.cidr import Block, address_text
from ipamc.model.diagnostics import At, Diagnostic, Related, Span, count, error, names, note, warning
from ipamc.model.dump import Dump, SeenAffinity, SeenBlock

_FEW = 3
"""So many users of addresses stand in a finding."""
_PLACES = 5
"""So many places stand beside a finding."""

BLOCKS = (
    "kubectl get nodes,ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org,"
    "blockaffinities.crd.projectcalico.org,ipreservations.crd.projectcalico.org,"
    "ipamconfigs.crd.projectcalico.org -o json"
)
"""What shows Calico's blocks, with the datastore of Kubernetes."""
EXPORT = "calicoctl datastore migrate lock; calicoctl datastore migrate export > calico.yaml; calicoctl datastore migrate unlock"
"""The same with etcd."""


class _Claim(Protocol):
    @property
    def block(self) -> Block: ...
    @property
    def node(self) -> str: ...
    @property
    def at(self) -> Span: ...


class _Pool(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def overlay(self) -> str: ...
    @property
    def at(self) -> Span: ...


class _Use(Protocol):
    @property
    def family(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def claim(self) -> _Claim: ...


def no_blocks(at: At, claims: int) -> Diagnostic:
    """IPC0842: a dump of a cluster with Calico has its IPAMBlocks."""
    if claims:
        return warning(
            "IPC0842",
            at,
            f"the dump has {count(claims, 'BlockAffinity', 'BlockAffinities')} and no IPAMBlock: who uses which address is not known",
            help=f"to see borrowed addresses: {BLOCKS}",
        )
    return error(
        "IPC0842",
        at,
        "the dump has IPPools of Calico, and neither IPAMBlocks nor BlockAffinities: no node would keep its blocks",
        help=f"{BLOCKS}; where Calico keeps its data in etcd: {EXPORT}; if pods have addresses of podCIDRs "
        "(host-local), leave IPPools out of the dump, and say --mode kubernetes",
    )


def outside_pools(claims: Sequence[_Claim]) -> Diagnostic:
    """IPC0850: blocks of nodes are in a pool."""
    return warning(
        "IPC0850",
        claims[0].at,
        f"{count(len(claims), 'block is', 'blocks are')} in no IPPool: "
        f"{names(f'{claim.block} of {claim.node}' for claim in claims)}",
        also=[Related(claim.at, f"{claim.block} of node {claim.node}") for claim in claims[1:_PLACES]],
        help="write the range into a pool of ippools.yaml; how a node gives such a block back: ipamc explain IPC0432",
    )


def two_affinities(one: SeenAffinity, other: SeenAffinity) -> Diagnostic:
    """IPC0851: a block has one node."""
    return error(
        "IPC0851",
        other.at,
        f"{other.block} is claimed by node {other.host} ({other.state}) and by node {one.host} ({one.state})",
        also=[Related(one.at, f"claimed by {one.host} here")],
        help="make the dump again after a minute; if it stays so: calicoctl ipam check",
    )


def stale_affinity(affinity: SeenAffinity, block: SeenBlock) -> Diagnostic:
    """IPC0852: an affinity is as its block."""
    owner = f"node {block.host}" if block.host else "no node"
    return note(
        "IPC0852",
        affinity.at,
        f"{affinity.block} is claimed by node {affinity.host} ({affinity.state}), but its IPAMBlock is of {owner}",
        also=[Related(block.at, "the block")],
    )


def being_released(affinities: Sequence[SeenAffinity]) -> Diagnostic:
    """IPC0864: no block is being released while a dump is made."""
    first = affinities[0]
    released = [f"{each.block} of {each.host}" for each in affinities]
    return warning(
        "IPC0864",
        first.at,
        f"{count(len(affinities), 'block is', 'blocks are')} being released: {names(released)}; reserved",
        also=[Related(each.at, f"{each.block} of {each.host}") for each in affinities[1:_PLACES]],
        help="make the dump again after a minute; or take the CIDR out of reserved when the BlockAffinity is gone",
    )


def blocks_overlap(one: _Claim, other: _Claim) -> Diagnostic:
    """IPC0853: no two blocks share an address."""
    return error(
        "IPC0853",
        other.at,
        f"{other.block} of {_owner(other.node)} overlaps {one.block} of {_owner(one.node)}",
        also=[Related(one.at, f"{one.block} is here")],
        help="calicoctl ipam check; drain one of the nodes until its block is empty, and make the dump again",
    )


def _owner(node: str) -> str:
    return f"node {node}" if node else "no node"


def without_node(
    gone: Sequence[_Claim], used: Mapping[Block, SeenBlock], *, every: bool
) -> Iterator[Diagnostic]:
    """IPC0854: the nodes of blocks exist."""
    left = sorted(gone, key=lambda claim: (claim.block not in used, claim.block))
    busy = [claim for claim in left if claim.block in used]
    also = [Related(claim.at, f"{claim.block} of {claim.node}") for claim in left[1:_PLACES]]
    hosts = names({claim.node for claim in gone})
    if every:
        yield error(
            "IPC0854",
            left[0].at,
            f"no block is of a Node of the dump: {count(len(gone), 'block')} of {hosts}",
            also=also,
            help="use Nodes and blocks of one cluster; where Calico's names differ: calicoctl datastore migrate export writes those of Kubernetes",
        )
    elif busy:
        yield warning(
            "IPC0854",
            left[0].at,
            f"{count(len(busy), 'block')} with addresses in use of nodes that do not exist: {hosts}; reserved",
            also=also,
            help="calicoctl ipam check, then ipam release; take the CIDR out of reserved when the block is gone",
        )
    else:
        yield note(
            "IPC0854",
            left[0].at,
            f"{count(len(gone), 'empty block')} of nodes that do not exist: {hosts}; free",
            also=also,
        )


def without_affinity(block: SeenBlock) -> Diagnostic:
    """IPC0855: a block with addresses in use has a node."""
    told = list(block.uses)
    users = [
        f"{address_text(block.block.family, address)} of {_who(user, node)}" for address, node, user in told
    ]
    return warning(
        "IPC0855",
        block.at,
        f"{block.block} is of no node, and has {count(len(told), 'address', 'addresses')} in use: {_first(users)}; reserved",
        help="delete these pods before their nodes move: they get addresses of their nodes' blocks",
    )


def _who(user: str, node: str) -> str:
    return f"{user or 'an unknown user'} on {node}" if node else user or "an unknown user"


def _first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _FEW:,} more" if len(texts) > _FEW else ""
    return f"{', '.join(texts[:_FEW])}{more}"


def borrowed(node: str, uses: Sequence[_Use]) -> Diagnostic:
    """IPC0856: an address is used by the node that has its block."""
    users = [
        f"{address_text(use.family, use.address)} of {use.claim.node} for {use.user or 'an unknown user'}"
        for use in uses
    ]
    claims = {use.claim.block: use.claim for use in uses}
    also = [Related(claim.at, f"{claim.block} of node {claim.node}") for claim in claims.values()]
    tunnel = any(use.user.endswith("TunnelAddress") for use in uses)
    return warning(
        "IPC0856",
        uses[0].claim.at,
        f"node {node} uses {count(len(uses), 'address', 'addresses')} of blocks of other nodes: {_first(users)}",
        also=also[1:_PLACES],
        help="set strictAffinity: true in Calico's IPAMConfig, then delete these pods"
        + (
            "; of a tunnel address: calicoctl ipam release, and restart calico-node of that node"
            if tunnel
            else ""
        ),
    )


def tunnel_addresses(block: SeenBlock, number: int, kinds: Collection[str]) -> Diagnostic:
    """IPC0857: addresses of a block are of pods."""
    return note(
        "IPC0857",
        block.at,
        f"{count(number, 'address is', 'addresses are')} of tunnels of hosts, of no pod: {', '.join(sorted(kinds))}",
    )


def reserved_in_block(
    at: At, name: str, cidr: Block, first: tuple[At, Block, str], number: int
) -> Diagnostic:
    """IPC0858: reserved addresses are in no block of a node."""
    there, block, node = first
    more = f", and of {count(number - 1, 'other block')}" if number > 1 else ""
    return warning(
        "IPC0858",
        at,
        f"{cidr} of IPReservation {name} has addresses of {block} of node {node}{more}: Cilium may give them to pods",
        also=[Related(there, f"{block} is here")],
        help=f"if something else has these addresses, give the node another block before it moves: ipamc lock CLUSTER --renumber {node}",
    )


def several_blocks(at: At, mode: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0860: with --mode kubernetes or cluster-pool a node has one block of each family."""
    return error(
        "IPC0860",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} several blocks of a family, and {mode} mode has one: {names(nodes)}",
        help="use --mode multi-pool, in which nodes keep all their blocks, or --mode crd",
    )


def other_pod_cidrs(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0861: with --mode kubernetes the podCIDRs of Nodes are Calico's blocks."""
    return error(
        "IPC0861",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} other podCIDRs than Calico's blocks: {names(nodes)}",
        help="import with --mode cluster-pool or multi-pool, where nobody reads podCIDRs",
    )


def not_frozen(dump: Dump, config: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """IPC0862: Calico makes no new blocks while nodes move."""
    if config.get("strictAffinity") is True and config.get("autoAllocateBlocks") is False:
        return
    served = {item.api_version.partition("/")[0] for item in dump.of_kind("IPPool")}
    crd = served != {"projectcalico.org"}
    resource = "ipamconfigs.crd.projectcalico.org" if crd else "ipamconfigurations.projectcalico.org"
    yield warning(
        "IPC0862",
        dump.at,
        "Calico may still make blocks and borrow addresses, so this dump is true for a moment only",
        help="before the first node moves: calicoctl ipam configure --strictaffinity=true, and kubectl patch "
        f"""{resource} default --type=merge -p '{{"spec":{{"autoAllocateBlocks":false}}}}'; then dump and import""",
    )


def two_sources(at: At, there: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0863: a cluster is imported before its first node moves from Calico to Cilium."""
    return error(
        "IPC0863",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} blocks of Calico, and others have blocks of Cilium: {names(nodes)}",
        also=[Related(there, "a CiliumNode with blocks")],
        help="import the dump of before the migration: git has it; then ipamc import CLUSTER --refresh with this one",
    )


def overlay(pools: Sequence[_Pool]) -> Diagnostic:
    """IPC0865: blocks that nodes keep are of pools without an overlay."""
    told = [f"{pool.name} ({pool.overlay})" for pool in pools]
    return error(
        "IPC0865",
        pools[0].at,
        f"{count(len(pools), 'pool has', 'pools have')} an overlay, beside which Cilium cannot route the same blocks: {names(told)}",
        also=[Related(pool.at, f"pool {pool.name}") for pool in pools[1:_PLACES]],
        help="import into a range that Calico has not: --distinct CIDR; or set ipipMode and vxlanMode to Never, where the "
        "network routes the blocks, and make the dump again",
    )


def not_distinct(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0866: a distinct range shares no address with Calico, which gives the nodes their blocks today."""
    return error("IPC0866", at, problem, help=way_out)
