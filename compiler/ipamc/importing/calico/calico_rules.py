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


ON_REQUEST = "it selects no node; pods request it"
BLOCKS = (
    "kubectl get nodes,ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org,"
    "blockaffinities.crd.projectcalico.org,ipreservations.crd.projectcalico.org,"
    "ipamconfigs.crd.projectcalico.org -o json"
)
"""The command that prints Calico's blocks, with the datastore of Kubernetes."""
_UNKNOWN = "an unknown user"
_BUSY = (
    "block of missing nodes has addresses in use and stays",
    "blocks of missing nodes have addresses in use and stay",
)
_EMPTY = ("empty block of missing nodes is", "empty blocks of missing nodes are")
_AGAIN = "make the dump again after a minute"
_PLACES = 1 + MOST_PLACES  # the first is that of the finding


def too_many_pools(at: At, number: int, limit: int) -> Diagnostic:
    """IPC0841: a dump has at most 500 Calico IPPools."""
    text = f"the dump has {number:,} IPPools; the limit is {limit:,}"
    return error("IPC0841", at, text, help="leave pools without blocks out of the dump")


def unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0840: ipamc can read Calico's pools and reservations."""
    way_out = "correct it in the cluster, and make the dump again"
    return error("IPC0840", at, f"{what}: {cut(problem)}", help=way_out)


def namespace_selector(at: At, pool: str, selector: str) -> Diagnostic:
    """IPC0843: a Calico pool serves pods of all namespaces."""
    text = f"pool {pool} has namespaceSelector {shown(selector)}, so ipamc writes it as disabled"
    way_out = "annotate the namespaces with ipam.cilium.io/ip-pool"
    return warning("IPC0843", at, text, help=f"{way_out}, or let their pods use the pools of their nodes")


def pools_overlap(loser: CalicoPool, winner: CalicoPool) -> Diagnostic:
    """IPC0844: no two Calico pools share an address."""
    which = f"{winner.block} of pool {winner.name}"
    text = f"{loser.block} of pool {loser.name} overlaps {which}, which keeps the shared addresses"
    way_out = "check both pools in ippools.yaml before you merge the first compile"
    return warning("IPC0844", loser.at, text, also=[Related(winner.at, f"pool {winner.name}")], help=way_out)


def not_for_pods(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0845: Calico pools for load balancers and tunnels serve no pods."""
    return note("IPC0845", at, f"pool {pool} is not for pods; excludedCIDRs gets {block}")


def pool_is_second(at: At, pool: str, why: str) -> Diagnostic:
    """IPC0846: a node gets its blocks from one pool."""
    way_out = "to use it for nodes, narrow the nodeSelector of both pools in ippools.yaml"
    return warning("IPC0846", at, f"ipamc writes pool {pool} as disabled: {why}", help=way_out)


def on_request(pool: CalicoPool, asked: Iterable[Claim], mode: str, *, lacking: bool = False) -> Diagnostic:
    """IPC0868: a Calico pool that selects no node serves only pods that request it."""
    have = names(f"{claim.block} of {claim.node}" for claim in asked)
    if lacking:  # the pool that was written does not reserve these blocks, which Calico has
        way_out = f"add them to reserved of pool {pool.name} until no Calico pod uses them"
        text = f"pool {pool.name} does not reserve the blocks that Calico holds of it: {have}"
        return error("IPC0868", pool.at, text, help=way_out)
    kept = f"; reserved, because Calico holds them: {have}" if have else ""
    text = f"pool {pool.name} selects no node, so ipamc writes it as"
    if mode != "multi-pool":
        way_out = "pods can request it only in multi-pool mode: import with --mode multi-pool"
        return warning("IPC0868", pool.at, f"{text} disabled{kept}", help=way_out)
    way_out = "remove them from reserved in ippools.yaml when no Calico pod uses them" if have else ""
    return note("IPC0868", pool.at, f"{text} podsOnly{kept}", help=way_out)


def announced(dump: Dump) -> Iterator[Diagnostic]:
    """IPC0869: Cilium announces the routes that Calico announces by BGP."""
    own = {address_text(*ip) for node in dump.nodes for ip in node.internal_ips}
    specs = [(item, value_at(item, "spec", "peerIP")) for item in dump.of_kind("BGPPeer")]
    routers = [(item, ip) for item, ip in specs if ip and ip not in own]
    if not routers:  # nodes have sessions with one another only, by the mesh or by route reflectors
        return
    peers = names(f"{item.name} ({ip}, AS {value_at(item, 'spec', 'asNumber')})" for item, ip in routers)
    default = value_at(dump.other("BGPConfiguration", "default"), "spec") or {}
    keys = ("serviceClusterIPs", "serviceExternalIPs", "serviceLoadBalancerIPs")
    cidrs = names(str(member(entry, "cidr")) for key in keys for entry in list_at(default, key))
    text = f"Calico announces routes to {count(len(routers), 'router')}, but Cilium does not yet: {peers}"
    text += f"; nodes have AS {default.get('asNumber', 64512)}{cidrs and '; it announces services: '}{cidrs}"
    way_out = "before the first node moves, set bgp: control-plane and bgpAdvertisements in cluster.yaml"
    yield note("IPC0869", routers[0][0].at, text, help=f"{way_out}, and the peers as CiliumBGPClusterConfig")


def lacks_family(at: At, pool: str, family: int) -> Diagnostic:
    """IPC0847: pools of both families select the same nodes."""
    text = f"pool {pool} has no IPv{family} counterpart with the same nodeSelector"
    way_out = f"merge it in ippools.yaml with the pool of its nodes' IPv{family} addresses"
    return warning("IPC0847", at, text, help=way_out)


def unused_family(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0848: nodes hold blocks of each family that has a pool."""
    text = f"no node holds an IPv{block.family} block, so pool {pool} ({block}) is left out"
    return note("IPC0848", at, text)


def too_small(at: At, pool: str, size: int, pieces: Sequence[Block]) -> Diagnostic:
    """IPC0849: the ranges of a pool have room for a block."""
    text = f"left out of pool {pool}, because smaller than a /{size}: {listing(map(str, pieces))}"
    return note("IPC0849", at, text)


def label_of_calico(at: At, key: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0859: Calico pools select nodes by labels of the Kubernetes Node."""
    text = f"pools select nodes by {key}, a label that only Calico knows: {names(nodes)}"
    way_out = f"for each node: kubectl label node {nodes[0]} {key}=VALUE; then make the dump again"
    return warning("IPC0859", at, text, help=way_out)


def no_blocks(at: At, claims: int) -> Diagnostic:
    """IPC0842: a dump of a cluster with Calico contains IPAMBlocks."""
    if claims:
        has = f"the dump has {count(claims, 'BlockAffinity', 'BlockAffinities')} and no IPAMBlock"
        text = f"{has}, so the users of addresses are unknown"
        return warning("IPC0842", at, text, help=f"to see borrowed addresses: {BLOCKS}")
    has = "the dump has Calico IPPools, but neither IPAMBlocks nor BlockAffinities"
    return error("IPC0842", at, f"{has}, so no node would keep its blocks", help=BLOCKS)


def _further(claims: Iterable[Claim]) -> list[Related]:
    """Return the places of all claims but the first."""
    return [Related(claim.at, f"{claim.block} of node {claim.node}") for claim in [*claims][1:_PLACES]]


def outside_pools(claims: Sequence[Claim]) -> Diagnostic:
    """IPC0850: every block of a node is in a Calico IPPool."""
    which = names(f"{claim.block} of {claim.node}" for claim in claims)
    text = f"{count(len(claims), 'block is', 'blocks are')} outside all IPPools: {which}"
    way_out = "add the range to a pool in ippools.yaml; to make a node release such a block"
    way_out += ": ipamc explain IPC0432"
    return warning("IPC0850", claims[0].at, text, also=_further(claims), help=way_out)


def two_affinities(one: SeenAffinity, other: SeenAffinity) -> Diagnostic:
    """IPC0851: only one node claims a block."""
    claims = [f"by node {each.host} ({each.state})" for each in (other, one)]
    text = f"{other.block} is claimed {' and '.join(claims)}"
    also = [Related(one.at, f"claimed by {one.host} here")]
    return error("IPC0851", other.at, text, also=also, help=f"{_AGAIN}; if it persists: calicoctl ipam check")


def stale_affinity(affinity: SeenAffinity, block: SeenBlock) -> Diagnostic:
    """IPC0852: a Calico BlockAffinity and its IPAMBlock name the same node."""
    claimed = f"{affinity.block} is claimed by node {affinity.host} ({affinity.state})"
    text = f"{claimed}, but its IPAMBlock belongs to {_owner(block.host)}"
    return note("IPC0852", affinity.at, text, also=[Related(block.at, "the block")])


def _owner(node: str) -> str:
    return f"node {node}" if node else "no node"


def being_released(affinities: Sequence[SeenAffinity]) -> Diagnostic:
    """IPC0864: no block is being released while a dump is made."""
    which = [f"{each.block} of {each.host}" for each in affinities]
    one, more = "block is being released and stays", "blocks are being released and stay"
    text = f"{count(len(affinities), one, more)} reserved: {names(which)}"
    also = [Related(each.at, words) for each, words in zip(affinities, which, strict=True)][1:_PLACES]
    way_out = f"{_AGAIN}; or remove the CIDR from reserved once the BlockAffinity is gone"
    return warning("IPC0864", affinities[0].at, text, also=also, help=way_out)


def blocks_overlap(one: Claim, other: Claim) -> Diagnostic:
    """IPC0853: no two blocks share an address."""
    text = f"{other.block} of {_owner(other.node)} overlaps {one.block} of {_owner(one.node)}"
    way_out = "calicoctl ipam check; drain one of the nodes until its block is empty, and make the dump again"
    return error("IPC0853", other.at, text, also=[Related(one.at, f"{one.block} is here")], help=way_out)


def without_node(
    gone: Sequence[Claim], used: Mapping[Block, SeenBlock], *, every: bool
) -> Iterator[Diagnostic]:
    """IPC0854: blocks belong to nodes that exist."""
    left = sorted(gone, key=lambda claim: (claim.block not in used, claim.block))
    busy = sum(claim.block in used for claim in left)
    at, also, hosts = left[0].at, _further(left), names({claim.node for claim in gone})
    if every:
        text = f"no block belongs to a Node of the dump: {count(len(gone), 'block')} of {hosts}"
        way_out = "use Nodes and blocks of the same cluster; if Calico names nodes differently"
        way_out += ", calicoctl datastore migrate export writes the names of the Nodes"
        yield error("IPC0854", at, text, also=also, help=way_out)
    elif busy:
        text = f"{count(busy, *_BUSY)} reserved: {hosts}"
        way_out = "run calicoctl ipam check, then calicoctl ipam release"
        way_out += "; remove the CIDR from reserved once the block is gone"
        yield warning("IPC0854", at, text, also=also, help=way_out)
    else:
        text = f"{count(len(gone), *_EMPTY)} free: {hosts}"
        yield note("IPC0854", at, text, also=also)


def without_affinity(block: SeenBlock) -> Diagnostic:
    """IPC0855: a block with addresses in use belongs to a node."""
    users = []
    for address, node, user in block.uses:
        who = f"{user or _UNKNOWN} on {node}" if node else user or _UNKNOWN
        users.append(f"{address_text(block.block.family, address)} by {who}")
    in_use = f"{count(len(users), 'address', 'addresses')} in use: {_first(users)}"
    text = f"{block.block} belongs to no node, so ipamc reserves it; {in_use}"
    way_out = "delete these pods before their nodes move; they get new addresses from their nodes' blocks"
    return warning("IPC0855", block.at, text, help=way_out)


def _first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - USERS_SHOWN:,} more" if len(texts) > USERS_SHOWN else ""
    return f"{', '.join(texts[:USERS_SHOWN])}{more}"


def borrowed(node: str, uses: Sequence[Borrowed]) -> Diagnostic:
    """IPC0856: a node uses only addresses from its own blocks."""
    users = [
        f"{address_text(use.family, use.address)} of {use.claim.node} for {use.user or _UNKNOWN}"
        for use in uses
    ]
    number = count(len(uses), "address", "addresses")
    text = f"node {node} uses {number} from blocks of other nodes: {_first(users)}"
    way_out = "set strictAffinity: true in Calico's IPAMConfig, then delete these pods"
    if any(use.user.endswith("TunnelAddress") for use in uses):
        way_out += "; for a tunnel address, run calicoctl ipam release and restart calico-node on that node"
    also = _further({use.claim.block: use.claim for use in uses}.values())
    return warning("IPC0856", uses[0].claim.at, text, also=also, help=way_out)


def tunnel_addresses(block: SeenBlock, number: int, kinds: Collection[str]) -> Diagnostic:
    """IPC0857: all addresses in use in a block belong to pods."""
    are = count(number, "address belongs to a host tunnel", "addresses belong to host tunnels")
    return note("IPC0857", block.at, f"{are}, not to pods: {', '.join(sorted(kinds))}")


def reserved_in_block(at: At, name: str, cidr: Block, claims: Sequence[Claim]) -> Diagnostic:
    """IPC0858: no block of a node contains reserved addresses."""
    block, node = claims[0].block, claims[0].node
    more = f" and {count(len(claims) - 1, 'other block')}" if len(claims) > 1 else ""
    has = f"{cidr} of IPReservation {name} overlaps {block} of node {node}{more}"
    text = f"{has}; Cilium may give these addresses to pods"
    also = [Related(claims[0].at, f"{block} is here")]
    way_out = "if something else uses these addresses, give the node another block before it moves"
    way_out += f": ipamc lock CLUSTER --renumber {node}"
    return warning("IPC0858", at, text, also=also, help=way_out)


def several_blocks(at: At, mode: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0860: with --mode kubernetes or cluster-pool a node has one block of each family."""
    have = count(len(nodes), "node has", "nodes have")
    text = f"{have} several blocks of a family, but {mode} mode allows one: {names(nodes)}"
    way_out = "use --mode multi-pool, in which nodes keep all their blocks, or --mode crd"
    return error("IPC0860", at, text, help=way_out)


def other_pod_cidrs(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0861: with --mode kubernetes the podCIDRs of Nodes match Calico's blocks."""
    have = count(len(nodes), "node has", "nodes have")
    way_out = "import with --mode cluster-pool or multi-pool, which do not read Node podCIDRs"
    text = f"{have} podCIDRs that do not match Calico's blocks: {names(nodes)}"
    return error("IPC0861", at, text, help=way_out)


def not_frozen(dump: Dump, config: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """IPC0862: Calico creates no new blocks while nodes move."""
    if config.get("strictAffinity") is True and config.get("autoAllocateBlocks") is False:
        return
    served = {item.api_version.partition("/")[0] for item in dump.of_kind("IPPool")}
    crd = served != {"projectcalico.org"}
    resource = "ipamconfigs.crd.projectcalico.org" if crd else "ipamconfigurations.projectcalico.org"
    text = "Calico can still create blocks and borrow addresses, so this dump will go out of date"
    patch = f"""{resource} default --type=merge -p '{{"spec":{{"autoAllocateBlocks":false}}}}'"""
    freeze = f"calicoctl ipam configure --strictaffinity=true; kubectl patch {patch}"
    way_out = f"{freeze}; then make a new dump and import it"
    yield warning("IPC0862", dump.at, text, help=way_out)


def two_sources(at: At, there: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0863: a cluster is imported before its first node moves from Calico to Cilium."""
    have = count(len(nodes), "node has", "nodes have")
    text = f"{have} Calico blocks, but other nodes already have Cilium blocks: {names(nodes)}"
    also = [Related(there, "a CiliumNode with blocks")]
    way_out = "import the dump from before the migration, which is in git"
    way_out += "; then this one: ipamc import CLUSTER --refresh dump.json"
    return error("IPC0863", at, text, also=also, help=way_out)


def overlay(pools: Sequence[CalicoPool]) -> Diagnostic:
    """IPC0865: blocks that nodes keep come from pools without an overlay."""
    which = names(f"{pool.name} ({pool.overlay})" for pool in pools)
    have = count(len(pools), "pool has", "pools have")
    text = f"{have} an overlay, so Cilium cannot route the same blocks: {which}"
    also = [Related(pool.at, f"pool {pool.name}") for pool in pools[1:_PLACES]]
    way_out = "import into a range that Calico does not use: --distinct CIDR"
    way_out += "; or, if the network routes the blocks, set ipipMode and vxlanMode to Never"
    way_out += " and make the dump again"
    return error("IPC0865", pools[0].at, text, also=also, help=way_out)


def not_distinct(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0866: the `--distinct` range does not overlap Calico's ranges."""
    return error("IPC0866", at, problem, help=way_out)
