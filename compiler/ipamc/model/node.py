"""A node of a cluster, and its CiliumNode as evidence of its blocks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipamc.model.cidr import Address, Block
from ipamc.model.diagnostics import At, Place

HOSTNAME = "kubernetes.io/hostname"
"""The label that the kubelet sets to a node's host name."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node, of the inventory or of a dump. A Struct, because there are 100,000 of them."""

    name: str
    labels: dict[str, str]
    at: At
    """The node's item or document."""
    uid: str = ""
    pod_cidrs: tuple[Block, ...] = ()
    """`spec.podCIDRs`, in its order."""
    max_pods: int = 0
    """0: unknown."""
    planned: bool = False
    internal_ips: tuple[Address, ...] = ()
    """Each address of type InternalIP."""
    live: bool = False
    """True for a `v1 Node` as the apiserver prints it, False for an entry of a NodeInventory."""
    ready: bool = False
    """The kubelet reports it as ready."""
    agent_ran: bool = False
    """It has the annotations of Cilium's agent, or the condition CiliumIsUp."""
    annotated: tuple[Block, ...] = ()
    """The blocks in Cilium's annotations, IPv4 first."""
    pod_ips: tuple[Address, ...] = ()
    """From a NodeInventory: addresses of its pods outside the blocks that its objects show."""
    annotations: Mapping[str, str] = {}
    """Only those of Cilium and Calico."""
    kubelet: str = ""
    """`status.nodeInfo.kubeletVersion`. This field and the next ones are only set from dumps."""
    provider_id: str = ""
    """`spec.providerID`: `SCHEME://...`."""
    unschedulable: bool = False
    deleting: bool = False
    system: str = ""  # `status.nodeInfo.operatingSystem`
    taints: tuple[str, ...] = ()  # `KEY=VALUE` of each
    created: str = ""  # RFC 3339 in UTC
    pattern: str = ""
    """For an entry of a NodeInventory with several nodes, which share `at`: its `names`."""
    unreadable: tuple[str, ...] = ()
    """The texts of `pod_cidrs` that are no CIDR."""

    @property
    def hostname(self) -> str:
        """Return the label `kubernetes.io/hostname`; without it the name, which the label will have."""
        return self.labels.get(HOSTNAME, self.name)

    @property
    def running(self) -> bool:
        """Return whether pods may run on the node. podCIDRs prove nothing: another program sets them."""
        return self.ready or self.agent_ran or bool(self.pod_ips)


class NodeGroup(msgspec.Struct, frozen=True):
    """An entry of a NodeInventory with `maximum`: an autoscaler makes its nodes, and a refresh keeps it."""

    names: str
    maximum: int
    labels: dict[str, str]
    max_pods: int
    at: Place
    more: tuple[Node, ...] = ()
    """The nodes beyond `names`, up to `maximum`, in the order in which they come; they hold no block."""


class CiliumNode(msgspec.Struct, frozen=True, gc=False):
    """A `cilium.io/v2 CiliumNode`: evidence of a node's blocks, in the input or in a dump."""

    name: str
    at: At
    blocks: tuple[Block, ...] = ()
    """`spec.ipam.podCIDRs`, in its order."""
    allocated: tuple[tuple[Block, str], ...] = ()
    """`spec.ipam.pools.allocated` (multi-pool mode) as (block, pool), in its order."""
    requested: tuple[tuple[str, int, int], ...] = ()
    """`spec.ipam.pools.requested` as (pool, addresses of IPv4, addresses of IPv6)."""
    addresses: tuple[Block, ...] = ()
    """The single addresses of `spec.ipam.pool` (crd mode) as the fewest aligned blocks, by address."""
    used: tuple[Address, ...] = ()
    """The keys of `status.ipam.used` (crd mode)."""
    internal_ips: tuple[Address, ...] = ()
    """`spec.addresses` of type CiliumInternalIP: in the block that the agent had when it started."""
    health_ips: tuple[Address, ...] = ()
    """`spec.health` and `spec.ingress`: in the same block."""
    node_ips: tuple[Address, ...] = ()
    """`spec.addresses` of type InternalIP."""
    owner_uid: str = ""
    """The uid of the Node that owns it; "" without an owner: no agent has written the object."""
    error: str = ""
    """`status.ipam.operator-status.error`."""
    deleting: bool = False
    unreadable: tuple[tuple[str, str], ...] = ()
    """The texts of its blocks that are no CIDR, as (text, pool); without a pool "" stands for it."""
