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
    """IPC0842: a dump of a cluster with Calico has its IPAMBlocks.

    BlockAffinities alone say whose the blocks are, and not who uses their addresses: a warning. Where
    Calico runs with host-local and podCIDRs, it has no blocks, and IPPools only mislead.

    Why: without blocks nothing says which node has which, and every node would get another one than its
    pods use.

    Run: make the dump with the kinds of the finding, then `ipamc import CLUSTER dump.json --cilium-version
    1.18`. Where Calico keeps its data in etcd, give both files: `ipamc import CLUSTER dump.json calico.yaml
    --cilium-version 1.18`.
    """
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
    """IPC0850: blocks of nodes are in a pool.

    The pool was deleted, and its blocks stayed. The nodes keep these blocks, in a pool `no-pool-…` that is
    disabled.

    Why: pods use these addresses, and routes lead to them. Nobody gets a new block there; pods that start
    anew get addresses of other blocks, where the node has some.

    Run: if the range is still yours, write it into a pool of ippools.yaml, and `ipamc compile CLUSTER`. If
    it is to be left, a node gives its block back by being drained and taken out of the inventory for a
    moment: the steps are those of IPC0432.
    """
    return warning(
        "IPC0850",
        claims[0].at,
        f"{count(len(claims), 'block is', 'blocks are')} in no IPPool: "
        f"{names(f'{claim.block} of {claim.node}' for claim in claims)}",
        also=[Related(claim.at, f"{claim.block} of node {claim.node}") for claim in claims[1:_PLACES]],
        help="write the range into a pool of ippools.yaml; how a node gives such a block back: ipamc explain IPC0432",
    )


def two_affinities(one: SeenAffinity, other: SeenAffinity) -> Diagnostic:
    """IPC0851: a block has one node.

    Two nodes claim a block that does not exist yet: whichever makes it first has it. It may also be that
    the block is missing in the dump.

    Why: the lock would have the block for one node, and Calico would give it to the other one: then two
    nodes have one address.

    Run: make the dump again after a minute, with IPAMBlocks in it, and `ipamc import CLUSTER dump.json
    --cilium-version 1.18`. If it stays so: `calicoctl ipam check` says what is left over.
    """
    return error(
        "IPC0851",
        other.at,
        f"{other.block} is claimed by node {other.host} ({other.state}) and by node {one.host} ({one.state})",
        also=[Related(one.at, f"claimed by {one.host} here")],
        help="make the dump again after a minute; if it stays so: calicoctl ipam check",
    )


def stale_affinity(affinity: SeenAffinity, block: SeenBlock) -> Diagnostic:
    """IPC0852: an affinity is as its block.

    The IPAMBlock decides: the node of this affinity lost the block, and Calico deletes the affinity when
    that node asks for it next.

    Why: a note only, so that nobody wonders: the node that is named in the affinity does not have the
    block, and the lock has it for the node of the IPAMBlock.

    Run: nothing. If it is there for days, `calicoctl ipam check` finds what is left over. `ipamc which
    ADDRESS` says whose an address is.
    """
    owner = f"node {block.host}" if block.host else "no node"
    return note(
        "IPC0852",
        affinity.at,
        f"{affinity.block} is claimed by node {affinity.host} ({affinity.state}), but its IPAMBlock is of {owner}",
        also=[Related(block.at, "the block")],
    )


def being_released(affinities: Sequence[SeenAffinity]) -> Diagnostic:
    """IPC0864: no block is being released while a dump is made.

    The node gives the block back, and as long as its BlockAffinity is there it may take the block again
    (libcalico-go, lib/ipam/ipam.go, getBlockFromAffinity). So no node has it in the lock, and it is
    reserved.

    Why: given to another node now, it might be taken again by this one: then two nodes have one address.

    Run: make the dump again after a minute, and import. Or, when the BlockAffinity is gone (`kubectl get
    blockaffinities.crd.projectcalico.org`), take the CIDR out of `reserved` in ippools.yaml, and `ipamc
    compile CLUSTER`.
    """
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
    """IPC0853: no two blocks share an address.

    Calico keeps blocks by their CIDR, so after a pool was made anew with another blockSize two blocks of
    different sizes may have the same addresses.

    Why: two pods may have one address today; in Cilium they would go on so, and the lock cannot have both
    blocks.

    Run: `calicoctl ipam check` shows the pods. Drain one of the two nodes until its block is empty; make
    the dump again, and `ipamc import CLUSTER dump.json --cilium-version 1.18`.
    """
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
    """IPC0854: the nodes of blocks exist.

    A block with addresses in use is reserved, so that nobody gets it; an empty one is free. Where no block
    is of a Node of the dump, the blocks are of another cluster, or Calico has other names for nodes: an
    error.

    Why: Calico frees the blocks of a node that was deleted only when kube-controllers sees all their
    addresses released. Until then a pod may have one of them.

    Run: `calicoctl ipam check -o report.json`, then `calicoctl ipam release --from-report=report.json`,
    between `calicoctl datastore migrate lock` and `unlock`. When the block is gone, take its CIDR out of
    `reserved` in ippools.yaml, and `ipamc compile CLUSTER`.
    """
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
    """IPC0855: a block with addresses in use has a node.

    Its node released the block while pods of several nodes had addresses of it. It is reserved.

    Why: in Cilium no node can have single addresses of a block: given to one node, it would take away the
    pods' addresses on the others.

    Run: delete these pods before their nodes move: they get addresses of their nodes' blocks. When all
    have, take the CIDR out of `reserved` in ippools.yaml, and `ipamc compile CLUSTER`.
    """
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
    """IPC0856: an address is used by the node that has its block.

    Without `strictAffinity` Calico gives a pod an address of another node's block when its own node gets no
    further one. The lock has the block for its owner.

    Why: when the owner moves to Cilium, it gives that address to a pod of its own, and two pods have it.

    Run: before the first node moves, switch borrowing off (`calicoctl ipam configure
    --strictaffinity=true`), and delete these pods: they start with addresses of their nodes. Make the dump
    again, and look: `ipamc import CLUSTER dump.json --cilium-version 1.18` into a folder that is not there
    yet.
    """
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
    """IPC0857: addresses of a block are of pods.

    Calico gives the tunnel of each host (IPIP, VXLAN, WireGuard) an address of a block of that host.

    Why: a note: these addresses are of no pod, and count as used only as long as Calico runs. They are free
    when calico-node leaves the host, and Cilium takes its router address of the block.

    Run: nothing. Pools with IPIP or VXLAN move as `ipamc runbook CLUSTER --change calico --to distinct` has
    it.
    """
    return note(
        "IPC0857",
        block.at,
        f"{count(number, 'address is', 'addresses are')} of tunnels of hosts, of no pod: {', '.join(sorted(kinds))}",
    )


def reserved_in_block(
    at: At, name: str, cidr: Block, first: tuple[At, Block, str], number: int
) -> Diagnostic:
    """IPC0858: reserved addresses are in no block of a node.

    Calico gives no pod an address of an IPReservation, also inside of a block that a node has. The node
    keeps the block; new blocks avoid the reserved addresses.

    Why: Cilium gives pods every address of a node's block: a pod may get the address of a router or of a
    virtual IP, and both answer for it.

    Run: if something else has these addresses, give the node another block before it moves: `ipamc lock
    CLUSTER --renumber NODE`. If not, take them out of `reserved` in ippools.yaml, and `ipamc compile
    CLUSTER`.
    """
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
    """IPC0860: with --mode kubernetes or cluster-pool a node has one block of each family.

    Calico makes further blocks as a node needs them.

    Why: with one block of each family Cilium gives pods addresses of the first block only: pods in the
    others would lose theirs when the node moves, and the lock has one line for a node.

    Run: `ipamc import CLUSTER dump.json --mode multi-pool --cilium-version 1.18`, in which nodes keep all
    their blocks, or `--mode crd`, in which each address is given to its node.
    """
    return error(
        "IPC0860",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} several blocks of a family, and {mode} mode has one: {names(nodes)}",
        help="use --mode multi-pool, in which nodes keep all their blocks, or --mode crd",
    )


def other_pod_cidrs(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0861: with --mode kubernetes the podCIDRs of Nodes are Calico's blocks.

    kube-controller-manager set them, and Calico does not use them.

    Why: the apiserver lets nobody change them: in kubernetes mode Cilium would take them for the nodes'
    blocks, so that every pod would have another address, which routes of Calico and the lock do not know.

    Run: import with a mode in which nobody reads podCIDRs: `ipamc import CLUSTER dump.json --mode
    cluster-pool --cilium-version 1.18`, or `multi-pool`, where a node has several blocks. For kubernetes
    mode each Node must be deleted and join again.
    """
    return error(
        "IPC0861",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} other podCIDRs than Calico's blocks: {names(nodes)}",
        help="import with --mode cluster-pool or multi-pool, where nobody reads podCIDRs",
    )


def not_frozen(dump: Dump, config: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """IPC0862: Calico makes no new blocks while nodes move.

    With `strictAffinity: true` and `autoAllocateBlocks: false` every node goes on with the blocks that it
    has (libcalico-go, lib/ipam/ipam.go, findOrClaimBlock). `maxBlocksPerHost` has no equal here:
    `blocksPerNode` is what a node starts with.

    Why: as long as Calico runs, a node may make a block that Cilium already has for another one, and borrow
    addresses. A block that Calico made for a node after the import is refused by the next compile
    (IPC0513).

    Run: the two commands of the finding before the first node moves; then make the dump again, and `ipamc
    import CLUSTER dump.json --cilium-version 1.18`. As long as nothing was applied, delete the cluster's
    folder before.
    """
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
    """IPC0863: a cluster is imported before its first node moves from Calico to Cilium.

    CiliumNodes have blocks already, and these nodes have blocks of Calico alone.

    Why: an import would see one half: nodes of the other half would get new blocks, which pods of Calico
    use.

    Run: import the dump of before the migration, which git has: `ipamc import CLUSTER before.json
    --cilium-version 1.18`. Afterwards `ipamc import CLUSTER --refresh dump.json` with this one keeps the
    inventory in step, and the lock has the blocks of both.
    """
    return error(
        "IPC0863",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} blocks of Calico, and others have blocks of Cilium: {names(nodes)}",
        also=[Related(there, "a CiliumNode with blocks")],
        help="import the dump of before the migration: git has it; then ipamc import CLUSTER --refresh with this one",
    )


def overlay(pools: Sequence[_Pool]) -> Diagnostic:
    """IPC0865: blocks that nodes keep are of pools without an overlay.

    `ipipMode` and `vxlanMode` of the pools are Never, and the network routes the blocks (BGP).

    Why: while nodes move, pods of one range are on both sides. With IPIP or VXLAN hosts route the range into
    Calico's tunnel, and Cilium's agents into theirs: no side reaches the pods of the other one.

    Run: give pods a range that Calico has not, and follow the runbook: `ipamc import CLUSTER dump.json
    --distinct 10.100.0.0/16 --cilium-version 1.18`, then `ipamc runbook CLUSTER --change calico --to distinct`.
    Where the network routes the blocks without the overlay, switch it off in Calico first, and make the dump
    again.
    """
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
    """IPC0866: a distinct range shares no address with Calico, which gives the nodes their blocks today.

    `--distinct` is for a cluster that Calico serves, in a mode in which the podCIDRs of Nodes do not count.

    Why: as long as both run, Calico and Cilium would give one address to two pods. And where Cilium gives
    blocks already, pods use them: nodes keep these.

    Run: name a range that nobody uses: `ipamc import CLUSTER dump.json --distinct 10.100.0.0/16
    --cilium-version 1.18`. A cluster that Cilium serves is imported without `--distinct`; `ipamc runbook CLUSTER
    --change new-range` has the steps to another range.
    """
    return error("IPC0866", at, problem, help=way_out)
