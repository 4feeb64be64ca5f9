"""Converts documents to items of a known kind. The kind decides schema, shape and reader, not the file name.

Each dialect has a module; `read/values.py` has the structs that they share. Chooses no pool and no block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.assertion import Assertion
from ipamc.model.bgp import BgpObject
from ipamc.model.cidr import Range
from ipamc.model.cluster import AddressSpace, Cluster, Pool
from ipamc.model.diagnostics import Place
from ipamc.model.node import CiliumNode, Node, NodeGroup
from ipamc.read import hints, rules
from ipamc.read.kinds import bgp, cluster, nodes, pools, space, tests
from ipamc.read.syntax.document import Document, Odd, member
from ipamc.read.syntax.text import cut_off
from ipamc.read.values import Reading

Value = AddressSpace | Cluster | Pool | Node | NodeGroup | CiliumNode | BgpObject | Range | Assertion


class Kind(Struct, frozen=True):
    """A kind of document."""

    api_versions: tuple[str, ...]
    name: str
    schema: str
    """File name of its JSON Schema."""
    shape: type
    """The struct for decoding."""
    read: Callable[[Any, Place, Reading], Iterable[Value]]
    """Converts that struct to the model."""
    of_nodes: bool = False
    """It describes only nodes, so that questions about the cluster or its pools can skip it."""


OURS = "ipamc/v1alpha1"
TESTS = "Tests"
"""The kind of document that only a compile reads."""
_CALICO = ("projectcalico.org/v3", "crd.projectcalico.org/v1")
_CILIUM = ("cilium.io/v2", "cilium.io/v2alpha1")
_SIG_NETWORK = ("networking.x-k8s.io/v1", "networking.k8s.io/v1alpha1")
KINDS = (
    Kind((OURS,), "Cluster", "cluster.schema.json", cluster.RawCluster, cluster.read_cluster),
    Kind((OURS,), "IPPool", "ippool.schema.json", pools.RawPool, pools.read_pool),
    Kind((OURS,), "AddressSpace", "addressspace.schema.json", space.RawSpace, space.read_space),
    Kind(
        (OURS,),
        "NodeInventory",
        "nodeinventory.schema.json",
        nodes.RawInventory,
        nodes.read_inventory,
        of_nodes=True,
    ),
    Kind((OURS,), TESTS, "tests.schema.json", tests.RawTests, tests.read_tests, of_nodes=True),
    Kind(_CALICO, "IPPool", "calico-ippool.schema.json", pools.RawCalicoPool, pools.read_calico_pool),
    Kind(
        _SIG_NETWORK, "ClusterCIDR", "clustercidr.schema.json", pools.RawClusterCidr, pools.read_cluster_cidr
    ),
    Kind(("v1",), "Node", "node.schema.json", nodes.RawNode, nodes.read_node, of_nodes=True),
    Kind(
        ("cilium.io/v2",),
        "CiliumNode",
        "ciliumnode.schema.json",
        nodes.RawCiliumNode,
        nodes.read_cilium_node,
        of_nodes=True,
    ),
    *(
        Kind(_CILIUM, name, f"{name.lower()}.schema.json", shape, read)
        for name, shape, read in (
            ("CiliumBGPAdvertisement", bgp.RawAdvertisement, bgp.read_advertisement),
            ("CiliumBGPPeerConfig", bgp.RawPeerConfig, bgp.read_peer_config),
            ("CiliumBGPClusterConfig", bgp.RawClusterConfig, bgp.read_cluster_config),
            ("CiliumBGPNodeConfigOverride", bgp.RawOverride, bgp.read_override),
            ("CiliumBGPPeeringPolicy", bgp.RawPeeringPolicy, bgp.read_peering_policy),
        )
    ),
)
POOL_WORDS = tuple(sorted({kind.name.encode() for kind in KINDS if not kind.of_nodes}))
"""Every file with a pool or a Cluster contains one of these words; most inventories contain none."""
_BY_NAME = {(version, kind.name): kind for kind in KINDS for version in kind.api_versions}
_SPELLINGS = tuple((kind.name, kind.api_versions) for kind in KINDS)
_SKIPPED = ("kustomize.config.k8s.io", "argoproj.io")
_FLUX = ".toolkit.fluxcd.io"


class InputItem(msgspec.Struct, frozen=True):
    """A document, or an item of a list, with its kind. A Struct, because there are 100,000 of them."""

    kind: Kind
    at: Place
    value: Mapping[str, Any]
    odd: tuple[Odd, ...]
    """Ambiguous scalars, with paths relative to this item."""


def walk(document: Document, reading: Reading) -> Iterator[InputItem | Place]:
    """Yield the items of a document, or of a list in its order.
    A Place is yielded for a list that continues elsewhere. Empty documents and those of kustomize, Argo CD
    and Flux are skipped. An unknown kind is reported.
    """
    if document.value is not None:
        yield from _walk(document.value, document.at, document.odd, {}, reading)


def _walk(
    value: Any, at: Place, odd: tuple[Odd, ...], inherited: Mapping[str, str], reading: Reading
) -> Iterator[InputItem | Place]:
    if not isinstance(value, dict):
        reading.found.append(
            rules.wrong_shape(at, "the document is not a mapping", "write apiVersion and kind")
        )
        reading.complete = False
        return
    names = {name: value.get(name) or inherited.get(name) for name in ("apiVersion", "kind")}
    version, kind = names["apiVersion"], names["kind"]
    if kind is None and isinstance(items := value.get("items"), list):
        reading.complete = False  # kubectl prints the kind after the items
        reading.found.append(cut_off(at / "items" / (len(items) - 1) if items else at / "items", len(items)))
        return
    if not isinstance(version, str) or not isinstance(kind, str):
        reading.complete = False
        reading.found.extend(
            rules.wrong_shape(at / name, problem, way_out)
            for name, problem, way_out in hints.unnamed(value, names, _SPELLINGS)
        )
        return
    group = version.partition("/")[0]
    if group in _SKIPPED or group.endswith(_FLUX):
        return
    if known := _BY_NAME.get((version, kind)):
        yield InputItem(known, at, {**inherited, **value} if inherited else value, odd)
    elif (version, kind) == ("v1", "List") or (version, kind.removesuffix("List")) in _BY_NAME:
        typed = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
        yield from _walk_list(value, at, odd, typed, reading)
    else:
        reading.complete = reading.complete and hints.nearest_kind(kind, _SPELLINGS) != "Cluster"
        ours = hints.kind_of_fields(value) if version == OURS else ""
        better = f"write kind: {ours}" if ours else hints.unknown_kind(kind, version, _SPELLINGS)
        other_version = not ours and kind.removesuffix("List") in {known.name for known in KINDS}
        at = at / ("apiVersion" if other_version else "kind")
        if (at.path, kind) not in reading.unknown:  # a dump has thousands of Pods
            reading.found.append(rules.unknown_kind(at, version, kind, better))
            reading.unknown.add((at.path, kind))


def _walk_list(
    value: Mapping[str, Any], at: Place, odd: tuple[Odd, ...], typed: Mapping[str, str], reading: Reading
) -> Iterator[InputItem | Place]:
    """Yield the items of a List. Those of a typed list, such as NodeList, need no apiVersion and kind."""
    items = value.get("items")
    if any(member(value, "metadata", key) for key in ("continue", "remainingItemCount")):
        yield at / "metadata" / "continue"
    if items is None:
        return
    if not isinstance(items, list | Iterator):
        reading.found.append(rules.wrong_shape(at / "items", "items is not a list"))
        return
    by_item: dict[str | int, list[Odd]] = {}
    for scalar in odd:
        if len(scalar.within) > 1 and scalar.within[0] == "items":
            by_item.setdefault(scalar.within[1], []).append(replace(scalar, within=scalar.within[2:]))
    here = at / "items"
    for index, item in enumerate(items):
        yield from _walk(item, here / index, tuple(by_item.get(index, ())), typed, reading)
