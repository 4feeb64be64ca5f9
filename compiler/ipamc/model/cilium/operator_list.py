"""The CIDRs from which Cilium's operator allocates by itself: cluster-pool mode, `operator: adopt`.

The list holds `unlisted` pools, and of these only what the operator may give. Blocks of other pools are not
in it, held or free. The operator reports `allocator not configured for the requested CIDR` for the nodes that
hold them and ignores their CiliumNodes. With their blocks in the list it would reserve them without an error,
but it frees its reservations when a CiliumNode is deleted. These histories were run on the operators of 1.12
and of 1.15 to 1.20; in each of them two nodes had one address:

- the unlisted pool is full, a listed node is re-created: before its CiliumNode is applied again, another node
  gets its block.
- the unlisted pool is full and a node waits; the list with a newcomer's block is applied before the
  newcomer's CiliumNode: the node that waits gets that block.

What the operator cannot reserve is free for it. It reserves a node as a whole, or not at all: if the IPv4
block of a node is in no CIDR of the list, another node gets its IPv6 block. It reserves a block in the first
CIDR of the list that overlaps it, and nothing in the next one. With a mask shorter than the block it reserves
the neighbouring addresses too. So a block in use is in the list only if the operator reserves exactly it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct

from ipamc.model.address_sets import blocks_over, index_around, outermost, subtract, without
from ipamc.model.cidr import BITS, Block
from ipamc.model.cilium.flags import parse_cidrs, parse_size
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import Place, Span
from ipamc.model.lock import Line, State

Lists = dict[int, tuple[Block, ...]]
"""CIDRs by family, in order."""
AGENT, OPERATOR = "cilium", "cilium-operator"
"""The names of Cilium's DaemonSet and of its operator's Deployment, and of their pods' programs."""
CONFIG = "cilium-config"
"""The ConfigMap with Cilium's flags."""
HELM = "meta.helm.sh/release-name"
"""The annotation of what Helm installed."""
KUBEADM = "kubeadm-config"
"""The ConfigMap of kubeadm, with the addresses for which the cluster was created."""
BYSTANDER = "--ipam=kubernetes"
"""The argument with which the operator allocates nothing."""


def restart(namespace: str, node: str) -> str:
    """Return the command that restarts the agent of a node."""
    return f"kubectl -n {namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName={node}"


def giver_logs(cluster: Cluster) -> str:
    """Return the command that shows what gives nodes their blocks; for Nodes, with the labels of kubeadm."""
    if cluster.mode is Mode.KUBERNETES:
        return "kubectl -n kube-system logs -l component=kube-controller-manager"
    return f"kubectl -n {cluster.namespace} logs deployment/cilium-operator"


def listed(data: Mapping[str, str], family: int) -> list[Block]:
    """Return the operator's list, by address, as far as it can be read."""
    return sorted(parse_cidrs(data.get(f"cluster-pool-ipv{family}-cidr", ""))[0])


class Assumed(Struct, frozen=True, kw_only=True, dict=True):
    """The rendered flags, which the compile assumes."""

    at: Span = Span("")
    """The file."""
    namespace: str
    data: Mapping[str, str]
    """The keys of cilium-config."""
    bystander: bool
    """The operator gets --ipam=kubernetes."""
    applied: bool
    """ipamc applies the ConfigMap (managedBy: none)."""

    @property
    def adopts(self) -> bool:
        """The operator allocates from its list, besides the blocks that ipamc gives."""
        return self.data.get("ipam") == "cluster-pool" and not self.bystander

    @property
    def operator_list(self) -> list[Block]:
        """The CIDRs that the operator may give in cluster-pool mode, of both families."""
        return [block for family in BITS for block in listed(self.data, family)]

    @cached_property
    def masks(self) -> Mapping[int, int]:
        """The prefix length of the operator's blocks, by family."""
        texts = {family: self.data.get(f"cluster-pool-ipv{family}-mask-size", "") for family in BITS}
        return {family: size for family, text in texts.items() if (size := parse_size(text, family))}

    @cached_property
    def lists(self) -> Lists:
        """The CIDRs from which the operator can give blocks: by family, by address."""
        found = {family: outermost(listed(self.data, family)) for family in self.masks}
        return {
            family: tuple(block for block in blocks if block.prefix <= self.masks[family])
            for family, blocks in found.items()
        }


def operator_lists(cluster: Cluster, lines: Sequence[Line], masks: Mapping[int, int]) -> Lists:
    """Return the CIDRs from which the operator allocates: pools by name, ranges in the order as written.
    A piece that is smaller than a block is useless to the operator and omitted. A family in which nothing is
    left has one address in the list: the operator does not start with an empty list, and a CIDR with a prefix
    longer than the mask is always full. Quarantined blocks of `unlisted` pools are in the list: the operator
    has no quarantine. O(n log n) in blocks in use.
    """
    pools = sorted(_unlisted(cluster), key=lambda pool: pool.name)
    excluded = outermost(cidr.block for cidr in cluster.excluded)
    reserved = {pool.name: outermost(each.block for each in pool.reserved) for pool in pools}
    lists: Lists = {}
    ranges = {
        family: [(pool, cidr.block) for pool in pools for cidr in pool.ranges if cidr.block.family == family]
        for family in cluster.families
    }
    for family in cluster.families:
        pieces = [
            piece
            for pool, block in ranges[family]
            if not pool.disabled
            for piece in subtract(
                block, [*blocks_over(excluded, block), *blocks_over(reserved[pool.name], block)]
            )
        ]
        lists[family] = _useful(pieces, masks[family])
    gone = outermost(_not_booked(cluster, lines, lists, masks))
    for family, blocks in lists.items():
        if any(blocks_over(gone, block) for block in blocks):
            lists[family] = _useful(without(blocks, gone), masks[family])
        if not lists[family]:
            lists[family] = tuple(Block(family, block.first, BITS[family]) for _, block in ranges[family][:1])
    return lists


def given_by_operator(cluster: Cluster, lines: Iterable[Line]) -> frozenset[str]:
    """Return the nodes whose held blocks are all in `unlisted` pools. The operator decides about them.
    Nothing is rendered for them. If such a node is re-created, the operator gives it another block and its
    own to a node that asks later: a manifest with the old block would then give that to both.
    """
    if not cluster.operator_adopts:
        return frozenset()
    unlisted = {pool.name for pool in _unlisted(cluster)}
    held = [line for line in lines if line.state is State.HELD]
    ours = {line.node for line in held if line.pool not in unlisted}
    return frozenset(line.node for line in held if line.pool in unlisted) - ours


def _unlisted(cluster: Cluster) -> Iterator[Pool]:
    return (pool for pool in cluster.pools if pool.unlisted)


def _useful(pieces: Iterable[Block], mask: int) -> tuple[Block, ...]:
    return tuple(piece for piece in pieces if piece.prefix <= mask)


def _not_booked(
    cluster: Cluster, lines: Iterable[Line], lists: Lists, masks: Mapping[int, int]
) -> Iterator[Block]:
    """Yield pending blocks, and the blocks of nodes that the operator does not reserve exactly.
    A node shows its blocks in the lock, or still those in its CiliumNode: never a mixture of both.
    """
    ranges = sorted(block for blocks in lists.values() for block in blocks)
    held, shown = defaultdict[str, set[Block]](set), defaultdict[str, set[Block]](set)
    for line in lines:
        if line.state is State.HELD:
            held[line.node].add(line.block)
        elif line.state is State.PENDING:
            yield line.block
    for seen in cluster.cilium_nodes:
        shown[seen.name].update(seen.blocks)

    def exact(block: Block) -> bool:
        return block.prefix <= masks.get(block.family, 0) and index_around(ranges, block) is not None

    for node in sorted({*held, *shown}):
        for blocks in (held[node], shown[node]):
            if any(blocks_over(ranges, block) for block in blocks) and not all(map(exact, blocks)):
                yield from held[node] | shown[node]
                break


def sizes_of(pool: Pool, family: int) -> Iterator[tuple[int, Place]]:
    """Yield the prefix lengths of blocks of a pool, by its size, classes and pins, each with its place."""
    if part := pool.families.get(family):
        yield part.block_size, part.at / "blockSize"
        for size_class in pool.block_sizes:
            if family in size_class.sizes:
                yield size_class.sizes[family], size_class.at / f"ipv{family}"
        for pin in chain.from_iterable(pool.pins.values()):
            if pin.block.family == family:
                yield pin.block.prefix, pin.at


def longest_prefix(cluster: Cluster, family: int, lines: Iterable[Line] = ()) -> int:
    """Return the longest prefix length of a family among sizes, pins and lines in use; 0 without a pool.
    Cilium's operator reserves units of its mask: a block smaller than the mask takes a whole unit. With the
    longest prefix as mask it reserves every block exactly.
    """
    sizes = [0, *(size for pool in cluster.pools for size, _ in sizes_of(pool, family))]
    sizes += [line.block.prefix for line in lines if line.block.family == family and line.in_use]
    return max(sizes)
