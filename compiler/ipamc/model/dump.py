"""A running cluster: a dump of `kubectl get`, which audit, import and resize compare with git; routers'
tables.

A dump may be years old, or written by hand: unreadable CIDRs and addresses are omitted, with a finding. The
structs are small, because a dump has 150,000 pods.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from ipamc.model.cidr import BITS, Address, Block, address_text
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Span
from ipamc.model.node import CiliumNode, Node


class Object(msgspec.Struct, frozen=True, kw_only=True):
    """The common fields of a dump's objects, except Node and CiliumNode, which are values of a compile."""

    name: str
    file: str
    """The file, as the user would type it."""
    line: int = 0
    """The line where the object begins; 0: unknown."""

    @property
    def at(self) -> Span:
        """Return the place of the object."""
        return Span(self.file, self.line, 1, 1) if self.line else Span(self.file)


class SeenPool(Object, frozen=True, kw_only=True):
    """A CiliumPodIPPool."""

    labels: Mapping[str, str] = {}
    cidrs: Mapping[int, tuple[Block, ...]] = {}
    """By family, in the order of the object."""
    unreadable: tuple[str, ...] = ()  # texts of CIDRs that are none
    mask_sizes: Mapping[int, int] = {}
    """`maskSize` by family: a prefix length."""
    value: Mapping[str, Any]
    """The object with its unchanged spec, for selectors and newer fields."""


class SeenNodeConfig(Object, frozen=True, kw_only=True):
    """A CiliumNodeConfig."""

    namespace: str = ""
    selector: Mapping[str, Any] = {}
    """`spec.nodeSelector`, an unchanged LabelSelector."""
    defaults: Mapping[str, str] = {}
    """`spec.defaults`: keys of cilium-config."""
    value: Mapping[str, Any]
    """The object with its unchanged spec."""


class SeenEndpoint(Object, frozen=True, kw_only=True):
    """A CiliumEndpoint: a pod whose addresses Cilium gave."""

    namespace: str = ""
    node_ip: Address | None = None
    """`status.networking.node`: the InternalIP of its node."""
    addresses: tuple[Address, ...] = ()


class SeenPod(Object, frozen=True, kw_only=True):
    """A Pod."""

    namespace: str = ""
    node: str = ""
    """`spec.nodeName`; "": not scheduled."""
    addresses: tuple[Address, ...] = ()
    """`status.podIPs`."""
    host_network: bool = False
    phase: str = ""
    started: str = ""
    """`status.startTime`, RFC 3339 in UTC."""
    deleting: bool = False
    asks: Mapping[str, str] = {}
    """The annotations of Calico and Cilium by which it asks for its pool or address."""
    app: str = ""
    """The program, for pods of the control plane and of the pod network: `kube-controller-manager`,
        `kube-apiserver`, `cilium`, `cilium-operator`, `calico-node`; else ""."""
    image: str = ""
    """The image of an `app`'s first container."""
    release: str = ""
    """For an `app`: the label app.kubernetes.io/version, else helm.sh/chart."""
    words: tuple[str, ...] = ()
    """The command lines of an `app`'s containers, split at blanks."""

    @property
    def has_ended(self) -> bool:
        """Return whether the pod has released its addresses."""
        return self.phase in {"Succeeded", "Failed"}


class SeenBlock(Object, frozen=True, kw_only=True):
    """A Calico IPAMBlock: the block of a node, its addresses in use, and the nodes that use them."""

    block: Block
    host: str = ""
    """The node of its affinity; "" without one: any node may use its addresses."""
    used: tuple[tuple[int, str], ...] = ()
    """(address as a number, node that uses it; "" if Calico does not say). Without addresses that Windows
        reserves in a block, and those that cool down after use."""
    users: tuple[str, ...] = ()
    """The user of each address in `used`: `NAMESPACE/POD`, the kind of a host's tunnel address such as
        `ipipTunnelAddress`, or the handle; "" if Calico does not say."""
    virtual: bool = False
    """The block belongs to load balancers, not to a node."""
    deleted: bool = False

    @property
    def uses(self) -> Iterator[tuple[int, str, str]]:
        """Yield (address as a number, node, user) of the addresses in use."""
        for (address, node), user in zip(self.used, self.users, strict=True):
            yield address, node, user


class SeenAffinity(Object, frozen=True, kw_only=True):
    """A Calico BlockAffinity."""

    block: Block
    host: str
    state: str = ""
    """confirmed, pending or pendingDeletion."""
    virtual: bool = False
    """`host` is no node: the block belongs to load balancers."""
    deleted: bool = False


class SeenObject(Object, frozen=True, kw_only=True):
    """An unchanged, unchecked object of a kind of which a cluster has few."""

    namespace: str = ""
    api_version: str
    kind: str
    value: Mapping[str, Any]


class Scalar(NamedTuple):
    """An address, a CIDR or a range from-to that stands alone in an object, at its first place in a kind."""

    kind: str
    owner: str
    """A few words for what has it, such as `IPAddressPool lan of MetalLB`; "": the kind does not tell."""
    at: Span
    text: str
    blocks: tuple[Block, ...]
    """Its addresses; of a CIDR with host bits, its network."""


class Dump(Struct, frozen=True, kw_only=True, dict=True):
    """All objects in some files of dumps, sorted by name, or by namespace and name."""

    files: tuple[str, ...]
    """As the user would type them, in the order of the command line."""
    nodes: tuple[Node, ...] = ()
    apart: tuple[Node, ...] = ()
    """Nodes that Cilium does not run on, if they were told apart: they are not among `nodes`."""
    cilium_nodes: tuple[CiliumNode, ...] = ()
    pools: tuple[SeenPool, ...] = ()
    node_configs: tuple[SeenNodeConfig, ...] = ()
    endpoints: tuple[SeenEndpoint, ...] = ()
    pods: tuple[SeenPod, ...] = ()
    calico_blocks: tuple[SeenBlock, ...] = ()
    affinities: tuple[SeenAffinity, ...] = ()
    others: tuple[SeenObject, ...] = ()
    """Unchanged objects: ConfigMaps, workloads, pools of other dialects, admission policies."""
    kinds: frozenset[str] = field(default_factory=frozenset)
    """The kinds of all objects, including unread ones. If a kind is missing, it was not
        requested, or the cluster has no such object: a dump does not distinguish these."""
    scalars: tuple[Scalar, ...] = ()
    """Those of all objects but pods without Multus, if it was read with `every`."""
    unread: Mapping[str, int] = {}
    """The number of objects of which only the `scalars` are read, by `Kind.group`, as kubectl names it."""
    newest: str = ""
    """The latest time in an object, RFC 3339 in UTC: the dump is not older. "": unknown."""

    @property
    def at(self) -> Span:
        """Return the place of the dump as a whole: its first file."""
        return Span(self.files[0] if self.files else "")

    def is_of_another(self, cluster: Cluster) -> bool:
        """Return whether it has no node of a non-empty inventory: by uid, or by name if none has a uid."""
        known = {node.name: node.uid for node in cluster.nodes if not node.planned}
        uids = {uid for uid in known.values() if uid}
        same = uids & {node.uid for node in self.nodes} if uids else known.keys() & self.nodes_by_name.keys()
        return bool(known) and not same

    def before(self, seconds: int) -> str:
        """Return the time some seconds before the dump's latest, RFC 3339 in UTC; "" if that is unknown."""
        try:
            end = datetime.datetime.fromisoformat(self.newest)
        except ValueError:
            return ""
        return f"{end - datetime.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"

    @cached_property
    def nodes_by_name(self) -> Mapping[str, Node]:
        """Return the Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def cilium_nodes_by_name(self) -> Mapping[str, CiliumNode]:
        """Return the CiliumNodes by name."""
        return {node.name: node for node in self.cilium_nodes}

    @cached_property
    def node_by_ip(self) -> Mapping[Address, str]:
        """Return the name of the node by each of its InternalIPs."""
        found = {ip: node.name for node in self.cilium_nodes for ip in node.node_ips}
        found.update({ip: node.name for node in self.nodes for ip in node.internal_ips})
        return found

    @cached_property
    def in_use(self) -> Mapping[str, Sequence[Address]]:
        """Return the addresses of pods and of Cilium itself, by node; "": unknown node."""
        found: defaultdict[str, list[Address]] = defaultdict(list)
        for pod in self.pods:
            if not (pod.host_network or pod.has_ended):
                found[pod.node] += pod.addresses
        for endpoint in self.endpoints:
            found[self.node_by_ip.get(endpoint.node_ip, "") if endpoint.node_ip else ""] += endpoint.addresses
        for seen in self.cilium_nodes:
            found[seen.name] += (*seen.used, *seen.internal_ips, *seen.health_ips)
        return dict(found)

    def of_kind(self, *kinds: str) -> tuple[SeenObject, ...]:
        """Return the `others` of some kinds, in order of kind, namespace and name."""
        return tuple(item for item in self.others if item.kind in kinds)

    def other(self, kind: str, name: str, namespace: str = "") -> SeenObject | None:
        """Return one of `others`; without a namespace the first of that name; None if there is none."""
        named = (item for item in self.others if item.kind == kind and item.name == name)
        return next((item for item in named if namespace in {"", item.namespace}), None)


class Route(Struct, frozen=True, gc=False):
    """One route to a prefix: a router may have several. There are as many as a router prints."""

    block: Block
    hop: Address | None = None
    """The next hop; None if the network is connected, or the router drops the packets."""
    used: bool = True
    """The router uses this route; False for a path that was not selected."""
    drops: bool = False
    """The router drops the packets: blackhole, unreachable, prohibit, reject."""
    line: int = 0
    """The line in the file, from 1; 0 in JSON, where it is searched only for a finding."""
    vrf: str = ""
    """The VRF, or routing instance, whose table has it; "" or "default" is that of the router itself."""
    node: str = ""
    """The node that has or announces it, where Cilium printed its name: it stands for the next hop."""


class Table(Struct, frozen=True, kw_only=True, dict=True):
    """The routes that one router printed."""

    path: str
    text: str
    routes: tuple[Route, ...]
    """In the order of the file."""
    unread: tuple[int, ...] = ()
    """Lines with a prefix that could not be read."""
    of_node: bool = False
    """The routes are those of one node alone."""
    where: str = ""
    """Words for the VRF of all routes in a message: " in VRF blue"; "" for that of the router itself."""

    @property
    def name(self) -> str:
        """Return the file and the VRF."""
        return f"{self.path}{self.where}"

    @cached_property
    def families(self) -> frozenset[int]:
        """Return the families with a route."""
        return frozenset(route.block.family for route in self.routes)

    def at(self, route: Route) -> Span:
        """Return the place of a route. O(text) in JSON: only findings need it."""
        if route.line:
            return Span(self.path, route.line, 1, 1)
        family, first, prefix = route.block
        single = [address_text(family, first)] if prefix == BITS[family] else []
        vrf = max(self.text.find(f'"{route.vrf}{end}') for end in '".') if route.vrf else 0
        found = (self.text.find(f'"{name}"', max(vrf, 0)) for name in (str(route.block), *single))
        start = next((place for place in found if place >= 0), -1)
        if start < 0:
            return Span(self.path)
        column = start - self.text.rfind("\n", 0, start)
        return Span(self.path, self.text.count("\n", 0, start) + 1, column, column)
