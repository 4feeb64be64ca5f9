"""Calico's pools and blocks as values; rules of an import: what a person decides before a node moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ipamc.model.cidr import Block, address_text
from ipamc.model.diagnostics import At, Diagnostic, Related, Span, count, error, names, note, warning
from ipamc.model.dump import Dump, SeenAffinity, SeenBlock
from ipamc.model.limits import MOST_PLACES, USERS_SHOWN
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import cut, listing, shown
from ipamc.read.dump.programs import list_at, value_at
from ipamc.read.syntax.document import member


class CalicoPool(Struct, frozen=True, kw_only=True):
    """An IPPool."""

    name: str
    block: Block
    size: int  # prefix length of its blocks
    selector: Selector
    workload: bool  # pods get its addresses; False: only tunnels or load balancers do
    overlay: str = ""  # `ipipMode` or `vxlanMode` if it is not Never
    halted: str = ""  # why Calico creates no new blocks in it for the pods of a node; "": it does
    labels: Mapping[str, str] = field(default_factory=dict)
    at: Span


class Claim(Struct, frozen=True):
    """A block, and the node that has it."""

    block: Block
    node: str
    at: Span


class Borrowed(Struct, frozen=True):
    """An address that is used by another node than the owner of its block."""

    family: int
    address: int
    user: str  # as `SeenBlock.users`
    claim: Claim


ON_REQUEST = "it selects no node, and pods ask for it"
BLOCKS = (
    "kubectl get nodes,ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org,"
    "blockaffinities.crd.projectcalico.org,ipreservations.crd.projectcalico.org,"
    "ipamconfigs.crd.projectcalico.org -o json"
)
"""The command that prints Calico's blocks, with the datastore of Kubernetes."""
EXPORT = (
    "calicoctl datastore migrate lock; calicoctl datastore migrate export > calico.yaml; "
    "calicoctl datastore migrate unlock"
)
"""The same with etcd."""
_UNKNOWN = "an unknown user"
_AGAIN = "make the dump again after a minute"
_PLACES = 1 + MOST_PLACES  # the first is that of the finding


def too_many_pools(at: At, number: int, limit: int) -> Diagnostic:
    """IPC0841: a dump has at most 500 Calico IPPools."""
    text = f"{number:,} IPPools in the dump; {limit:,} is the limit"
    return error("IPC0841", at, text, help="leave pools without blocks out of the dump")


def unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0840: Calico's pools and reservations can be read."""
    way_out = "correct it in the cluster, and make the dump again"
    return error("IPC0840", at, f"{what}: {cut(problem)}", help=way_out)


def namespace_selector(at: At, pool: str, selector: str) -> Diagnostic:
    """IPC0843: a Calico pool serves the pods of all namespaces of a node."""
    text = f"pool {pool} has namespaceSelector {shown(selector)}, and is written as disabled"
    way_out = "annotate the namespaces with ipam.cilium.io/ip-pool"
    return warning("IPC0843", at, text, help=f"{way_out}, or let their pods use the pools of their nodes")


def pools_overlap(loser: CalicoPool, winner: CalicoPool) -> Diagnostic:
    """IPC0844: no two pools share an address."""
    which = f"{winner.block} of pool {winner.name}"
    text = f"{loser.block} of pool {loser.name} overlaps {which}, which keeps what they share"
    way_out = "look at both pools in ippools.yaml before the first compile is merged"
    return warning("IPC0844", loser.at, text, also=[Related(winner.at, f"pool {winner.name}")], help=way_out)


def not_for_pods(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0845: ranges of load balancers and tunnels are not for pods."""
    return note("IPC0845", at, f"pool {pool} is not for pods: {block} is excluded")


def pool_is_second(at: At, pool: str, why: str) -> Diagnostic:
    """IPC0846: a node gets its blocks of one pool."""
    way_out = "if it is to serve nodes, narrow the nodeSelector of both pools in ippools.yaml"
    return warning("IPC0846", at, f"pool {pool} is written as disabled: {why}", help=way_out)


def on_request(pool: CalicoPool, asked: Iterable[Claim], mode: str, *, lacking: bool = False) -> Diagnostic:
    """IPC0868: a Calico pool that selects no node is for the pods that ask for it."""
    have = names(f"{claim.block} of {claim.node}" for claim in asked)
    if lacking:  # the pool that was written does not reserve these blocks, which Calico has
        way_out = f"add them to reserved of pool {pool.name}, until no pod of Calico has them"
        text = f"Calico has blocks of pool {pool.name}, which does not reserve them: {have}"
        return error("IPC0868", pool.at, text, help=way_out)
    kept = f"; reserved, because Calico has them: {have}" if have else ""
    text = f"pool {pool.name} selects no node, and is written as"
    if mode != "multi-pool":
        way_out = "pods that ask for it need multi-pool mode: import with --mode multi-pool"
        return warning("IPC0868", pool.at, f"{text} disabled{kept}", help=way_out)
    way_out = "when no pod of Calico has them, take them out of reserved in ippools.yaml" if have else ""
    return note("IPC0868", pool.at, f"{text} podsOnly{kept}", help=way_out)


def announced(dump: Dump) -> Iterator[Diagnostic]:
    """IPC0869: what Calico announces by BGP, Cilium announces."""
    own = {address_text(*ip) for node in dump.nodes for ip in node.internal_ips}
    specs = [(item, value_at(item, "spec", "peerIP")) for item in dump.of_kind("BGPPeer")]
    routers = [(item, ip) for item, ip in specs if ip and ip not in own]
    if not routers:  # nodes have sessions with one another only, by the mesh or by route reflectors
        return
    peers = names(f"{item.name} ({ip}, AS {value_at(item, 'spec', 'asNumber')})" for item, ip in routers)
    default = value_at(dump.other("BGPConfiguration", "default"), "spec") or {}
    keys = ("serviceClusterIPs", "serviceExternalIPs", "serviceLoadBalancerIPs")
    cidrs = names(str(member(entry, "cidr")) for key in keys for entry in list_at(default, key))
    text = f"Calico announces to {count(len(routers), 'router')}, and nothing in Cilium does yet: {peers}"
    text += f"; nodes have AS {default.get('asNumber', 64512)}{cidrs and '; services, too: '}{cidrs}"
    way_out = "before the first node moves write bgp: control-plane and bgpAdvertisements into cluster.yaml"
    yield note("IPC0869", routers[0][0].at, text, help=f"{way_out}, and the peers as CiliumBGPClusterConfig")


def lacks_family(at: At, pool: str, family: int) -> Diagnostic:
    """IPC0847: pools of both families select the same nodes."""
    text = f"pool {pool} has no IPv{family} pool with the same nodeSelector"
    way_out = f"join it in ippools.yaml with the pool that has the IPv{family} addresses of its nodes"
    return warning("IPC0847", at, text, help=way_out)


def unused_family(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0848: the families of a cluster are those of which its nodes have blocks."""
    text = f"no node has a block of IPv{block.family}: pool {pool} ({block}) is not written"
    return note("IPC0848", at, text)


def too_small(at: At, pool: str, size: int, pieces: Sequence[Block]) -> Diagnostic:
    """IPC0849: the ranges of a pool have room for a block."""
    text = f"{listing(map(str, pieces))} of pool {pool}: smaller than a /{size}, and not written"
    return note("IPC0849", at, text)


def label_of_calico(at: At, key: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0859: labels by which pools select are labels of Nodes."""
    text = f"pools select by {key}, a label that only Calico knows: {names(nodes)}"
    way_out = f"kubectl label node {nodes[0]} {key}=VALUE, for each of them, and make the dump again"
    return warning("IPC0859", at, text, help=way_out)


def no_blocks(at: At, claims: int) -> Diagnostic:
    """IPC0842: a dump of a cluster with Calico has its IPAMBlocks."""
    if claims:
        has = f"the dump has {count(claims, 'BlockAffinity', 'BlockAffinities')} and no IPAMBlock"
        text = f"{has}: who uses which address is not known"
        return warning("IPC0842", at, text, help=f"to see borrowed addresses: {BLOCKS}")
    has = "the dump has IPPools of Calico, and neither IPAMBlocks nor BlockAffinities"
    host_local = "if pods have addresses of podCIDRs (host-local), leave IPPools out of the dump"
    way_out = f"{BLOCKS}; where Calico keeps its data in etcd: {EXPORT}; {host_local}"
    way_out += ", and say --mode kubernetes"
    return error("IPC0842", at, f"{has}: no node would keep its blocks", help=way_out)


def _further(claims: Iterable[Claim]) -> list[Related]:
    """Return the places of all claims but the first."""
    return [Related(claim.at, f"{claim.block} of node {claim.node}") for claim in [*claims][1:_PLACES]]


def outside_pools(claims: Sequence[Claim]) -> Diagnostic:
    """IPC0850: blocks of nodes are in a pool."""
    which = names(f"{claim.block} of {claim.node}" for claim in claims)
    text = f"{count(len(claims), 'block is', 'blocks are')} in no IPPool: {which}"
    way_out = "write the range into a pool of ippools.yaml; how a node gives such a block back"
    way_out += ": ipamc explain IPC0432"
    return warning("IPC0850", claims[0].at, text, also=_further(claims), help=way_out)


def two_affinities(one: SeenAffinity, other: SeenAffinity) -> Diagnostic:
    """IPC0851: a block has one node."""
    claims = [f"by node {each.host} ({each.state})" for each in (other, one)]
    text = f"{other.block} is claimed {' and '.join(claims)}"
    also = [Related(one.at, f"claimed by {one.host} here")]
    return error("IPC0851", other.at, text, also=also, help=f"{_AGAIN}; if it stays so: calicoctl ipam check")


def stale_affinity(affinity: SeenAffinity, block: SeenBlock) -> Diagnostic:
    """IPC0852: a Calico block affinity names the node that its IPAMBlock names."""
    claimed = f"{affinity.block} is claimed by node {affinity.host} ({affinity.state})"
    text = f"{claimed}, but its IPAMBlock is of {_owner(block.host)}"
    return note("IPC0852", affinity.at, text, also=[Related(block.at, "the block")])


def _owner(node: str) -> str:
    return f"node {node}" if node else "no node"


def being_released(affinities: Sequence[SeenAffinity]) -> Diagnostic:
    """IPC0864: no block is being released while a dump is made."""
    which = [f"{each.block} of {each.host}" for each in affinities]
    text = f"{count(len(affinities), 'block is', 'blocks are')} being released: {names(which)}; reserved"
    also = [Related(each.at, words) for each, words in zip(affinities, which, strict=True)][1:_PLACES]
    way_out = f"{_AGAIN}; or take the CIDR out of reserved when the BlockAffinity is gone"
    return warning("IPC0864", affinities[0].at, text, also=also, help=way_out)


def blocks_overlap(one: Claim, other: Claim) -> Diagnostic:
    """IPC0853: no two blocks share an address."""
    text = f"{other.block} of {_owner(other.node)} overlaps {one.block} of {_owner(one.node)}"
    way_out = "calicoctl ipam check; drain one of the nodes until its block is empty, and make the dump again"
    return error("IPC0853", other.at, text, also=[Related(one.at, f"{one.block} is here")], help=way_out)


def without_node(
    gone: Sequence[Claim], used: Mapping[Block, SeenBlock], *, every: bool
) -> Iterator[Diagnostic]:
    """IPC0854: the nodes of blocks exist."""
    left = sorted(gone, key=lambda claim: (claim.block not in used, claim.block))
    busy = sum(claim.block in used for claim in left)
    at, also, hosts = left[0].at, _further(left), names({claim.node for claim in gone})
    if every:
        text = f"no block is of a Node of the dump: {count(len(gone), 'block')} of {hosts}"
        way_out = "use Nodes and blocks of one cluster; where Calico's names differ"
        way_out += ": calicoctl datastore migrate export writes those of Kubernetes"
        yield error("IPC0854", at, text, also=also, help=way_out)
    elif busy:
        text = f"{count(busy, 'block')} with addresses in use of nodes that do not exist: {hosts}; reserved"
        way_out = "calicoctl ipam check, then ipam release"
        way_out += "; take the CIDR out of reserved when the block is gone"
        yield warning("IPC0854", at, text, also=also, help=way_out)
    else:
        text = f"{count(len(gone), 'empty block')} of nodes that do not exist: {hosts}; free"
        yield note("IPC0854", at, text, also=also)


def without_affinity(block: SeenBlock) -> Diagnostic:
    """IPC0855: a block with addresses in use has a node."""
    users = []
    for address, node, user in block.uses:
        who = f"{user or _UNKNOWN} on {node}" if node else user or _UNKNOWN
        users.append(f"{address_text(block.block.family, address)} of {who}")
    in_use = f"{count(len(users), 'address', 'addresses')} in use: {_first(users)}"
    text = f"{block.block} is of no node, and has {in_use}; reserved"
    way_out = "delete these pods before their nodes move: they get addresses of their nodes' blocks"
    return warning("IPC0855", block.at, text, help=way_out)


def _first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - USERS_SHOWN:,} more" if len(texts) > USERS_SHOWN else ""
    return f"{', '.join(texts[:USERS_SHOWN])}{more}"


def borrowed(node: str, uses: Sequence[Borrowed]) -> Diagnostic:
    """IPC0856: an address is used by the node that has its block."""
    users = [
        f"{address_text(use.family, use.address)} of {use.claim.node} for {use.user or _UNKNOWN}"
        for use in uses
    ]
    number = count(len(uses), "address", "addresses")
    text = f"node {node} uses {number} of blocks of other nodes: {_first(users)}"
    way_out = "set strictAffinity: true in Calico's IPAMConfig, then delete these pods"
    if any(use.user.endswith("TunnelAddress") for use in uses):
        way_out += "; of a tunnel address: calicoctl ipam release, and restart calico-node of that node"
    also = _further({use.claim.block: use.claim for use in uses}.values())
    return warning("IPC0856", uses[0].claim.at, text, also=also, help=way_out)


def tunnel_addresses(block: SeenBlock, number: int, kinds: Collection[str]) -> Diagnostic:
    """IPC0857: addresses of a block are of pods."""
    are = count(number, "address is of a tunnel of a host", "addresses are of tunnels of hosts")
    return note("IPC0857", block.at, f"{are}, and not of pods: {', '.join(sorted(kinds))}")


def reserved_in_block(at: At, name: str, cidr: Block, claims: Sequence[Claim]) -> Diagnostic:
    """IPC0858: reserved addresses are in no block of a node."""
    block, node = claims[0].block, claims[0].node
    more = f", and of {count(len(claims) - 1, 'other block')}" if len(claims) > 1 else ""
    has = f"{cidr} of IPReservation {name} has addresses of {block} of node {node}{more}"
    text = f"{has}: Cilium may give them to pods"
    also = [Related(claims[0].at, f"{block} is here")]
    way_out = "if something else has these addresses, give the node another block before it moves"
    way_out += f": ipamc lock CLUSTER --renumber {node}"
    return warning("IPC0858", at, text, also=also, help=way_out)


def several_blocks(at: At, mode: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0860: with --mode kubernetes or cluster-pool a node has one block of each family."""
    have = count(len(nodes), "node has", "nodes have")
    text = f"{have} several blocks of a family, and {mode} mode has one: {names(nodes)}"
    way_out = "use --mode multi-pool, in which nodes keep all their blocks, or --mode crd"
    return error("IPC0860", at, text, help=way_out)


def other_pod_cidrs(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0861: with --mode kubernetes the podCIDRs of Nodes are Calico's blocks."""
    have = count(len(nodes), "node has", "nodes have")
    way_out = "import with --mode cluster-pool or multi-pool, where nobody reads podCIDRs"
    return error("IPC0861", at, f"{have} other podCIDRs than Calico's blocks: {names(nodes)}", help=way_out)


def not_frozen(dump: Dump, config: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """IPC0862: Calico makes no new blocks while nodes move."""
    if config.get("strictAffinity") is True and config.get("autoAllocateBlocks") is False:
        return
    served = {item.api_version.partition("/")[0] for item in dump.of_kind("IPPool")}
    crd = served != {"projectcalico.org"}
    resource = "ipamconfigs.crd.projectcalico.org" if crd else "ipamconfigurations.projectcalico.org"
    text = "Calico may still make blocks and borrow addresses, so this dump is true for a moment only"
    patch = f"""{resource} default --type=merge -p '{{"spec":{{"autoAllocateBlocks":false}}}}'"""
    freeze = f"calicoctl ipam configure --strictaffinity=true, and kubectl patch {patch}"
    way_out = f"before the first node moves: {freeze}; then dump and import"
    yield warning("IPC0862", dump.at, text, help=way_out)


def two_sources(at: At, there: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0863: a cluster is imported before its first node moves from Calico to Cilium."""
    have = count(len(nodes), "node has", "nodes have")
    text = f"{have} blocks of Calico, and others have blocks of Cilium: {names(nodes)}"
    also = [Related(there, "a CiliumNode with blocks")]
    way_out = "import the dump of before the migration: git has it"
    way_out += "; then ipamc import CLUSTER --refresh with this one"
    return error("IPC0863", at, text, also=also, help=way_out)


def overlay(pools: Sequence[CalicoPool]) -> Diagnostic:
    """IPC0865: blocks that nodes keep are of pools without an overlay."""
    which = names(f"{pool.name} ({pool.overlay})" for pool in pools)
    have = count(len(pools), "pool has", "pools have")
    text = f"{have} an overlay, beside which Cilium cannot route the same blocks: {which}"
    also = [Related(pool.at, f"pool {pool.name}") for pool in pools[1:_PLACES]]
    way_out = "import into a range that Calico does not use: --distinct CIDR"
    way_out += "; or set ipipMode and vxlanMode to Never, where the network routes the blocks"
    way_out += ", and make the dump again"
    return error("IPC0865", pools[0].at, text, also=also, help=way_out)


def not_distinct(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0866: a distinct range shares no address with Calico, which gives the nodes their blocks today."""
    return error("IPC0866", at, problem, help=way_out)
