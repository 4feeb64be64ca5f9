"""Documents in, items of a known kind out. The kind decides schema, shape and reader; the file name does not.

Each dialect has a module; `base` has the structs that they share. Chooses no pool and no block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.assertion import Assertion
from ipamc.model.cluster import CiliumNode, Cluster, Node, Pool, Range
from ipamc.model.diagnostics import Place
from ipamc.model.wording import listing, nearest
from ipamc.read.kinds.base import Foreign
from ipamc.read.kinds.calico import RawCalicoPool, read_calico_pool
from ipamc.read.kinds.ciliumnode import RawDocument, read_cilium_node
from ipamc.read.kinds.cluster import RawCluster, read_cluster
from ipamc.read.kinds.clustercidr import RawClusterCidr, read_cluster_cidr
from ipamc.read.kinds.inventory import RawInventory, read_inventory
from ipamc.read.kinds.node import RawAmounts, RawCondition, RawNode, read_node
from ipamc.read.kinds.pool import RawPool, read_pool
from ipamc.read.kinds.tests import RawTests, read_tests
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import Document, Keys, Odd
from ipamc.read.syntax.other_text import cut_off
from ipamc.read.values import Reading

Value = Cluster | Pool | Node | CiliumNode | Range | Assertion


class Kind(Struct, frozen=True):
    """A kind of document."""

    api_versions: tuple[str, ...]
    name: str
    schema: str
    """File name of its JSON Schema."""
    shape: type
    """The struct that it is decoded to."""
    read: Callable[[Any, Place, Reading], Iterable[Value]]
    """From that struct to the model."""
    of_nodes: bool = False
    """It tells of nodes, and nothing of the cluster or its pools: who asks about these does not read it."""


OURS = "ipamc/v1alpha1"
TESTS = "Tests"
"""The kind of document that a compile alone reads."""
KINDS = (
    Kind((OURS,), "Cluster", "cluster.schema.json", RawCluster, read_cluster),
    Kind((OURS,), "IPPool", "ippool.schema.json", RawPool, read_pool),
    Kind((OURS,), "NodeInventory", "nodeinventory.schema.json", RawInventory, read_inventory, of_nodes=True),
    Kind((OURS,), TESTS, "tests.schema.json", RawTests, read_tests, of_nodes=True),
    Kind(
        ("projectcalico.org/v3", "crd.projectcalico.org/v1"),
        "IPPool",
        "calico-ippool.schema.json",
        RawCalicoPool,
        read_calico_pool,
    ),
    Kind(
        ("networking.x-k8s.io/v1", "networking.k8s.io/v1alpha1"),
        "ClusterCIDR",
        "clustercidr.schema.json",
        RawClusterCidr,
        read_cluster_cidr,
    ),
    Kind(("v1",), "Node", "node.schema.json", RawNode, read_node, of_nodes=True),
    Kind(
        ("cilium.io/v2",),
        "CiliumNode",
        "ciliumnode.schema.json",
        RawDocument,
        read_cilium_node,
        of_nodes=True,
    ),
)
POOL_WORDS = tuple(sorted({kind.name.encode() for kind in KINDS if not kind.of_nodes}))
"""One of these words is in every file with a pool or a Cluster; most inventories have none of them."""
_BY_NAME = {(version, kind.name): kind for kind in KINDS for version in kind.api_versions}
_SKIPPED = ("kustomize.config.k8s.io", "argoproj.io")
_FLUX = ".toolkit.fluxcd.io"


class Item(msgspec.Struct, frozen=True):
    """A document, or an item of a list, with its kind. A Struct, because there are 100,000 of them."""

    kind: Kind
    at: Place
    value: Mapping[str, Any]
    odd: tuple[Odd, ...]
    """With keys that begin at this item."""


def walk(document: Document, reading: Reading) -> Iterator[Item | Place]:
    """Yield the items of a document, or of a list in its order.

    A Place is yielded for a list that is continued elsewhere. Empty documents and those of kustomize, Argo CD
    and Flux are skipped. An unknown kind is reported.
    """
    if document.value is not None:
        yield from _walk(document.value, document.at, document.odd, {}, reading)


def _walk(
    value: Any, at: Place, odd: tuple[Odd, ...], inherited: Mapping[str, str], reading: Reading
) -> Iterator[Item | Place]:
    if not isinstance(value, dict):
        reading.found.append(
            rules.wrong_shape(at, "the document is not a mapping", "write apiVersion and kind")
        )
        reading.complete = False
        return
    names = {name: value.get(name) or inherited.get(name) for name in ("apiVersion", "kind")}
    version, kind = names["apiVersion"], names["kind"]
    if kind is None and isinstance(items := value.get("items"), list):
        reading.complete = False  # kubectl prints the kind behind the items
        reading.found.append(cut_off(at / "items" / (len(items) - 1) if items else at / "items", len(items)))
        return
    if not isinstance(version, str) or not isinstance(kind, str):
        reading.complete = False
        kinds = {known.name: known.api_versions for known in reversed(KINDS)}
        reading.found.extend(
            rules.wrong_shape(at / name, problem, way_out or _MOVE_OUT)
            for name, problem, way_out in unnamed(value, names, kinds)
        )
        return
    group = version.partition("/")[0]
    if group in _SKIPPED or group.endswith(_FLUX):
        return
    if known := _BY_NAME.get((version, kind)):
        yield Item(known, at, {**inherited, **value} if inherited else value, odd)
    elif (version, kind) == ("v1", "List") or (version, kind.removesuffix("List")) in _BY_NAME:
        typed = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
        yield from _walk_list(value, at, odd, typed, reading)
    else:
        reading.complete = reading.complete and _nearest(kind) != "Cluster"
        ours = _meant(value) if version == OURS else ""
        better = f"write kind: {ours}" if ours else _way_out(kind, version)
        other_version = not ours and kind.removesuffix("List") in {known.name for known in KINDS}
        at = at / ("apiVersion" if other_version else "kind")
        reading.found.append(rules.unknown_kind(at, version, kind, better))


def _walk_list(
    value: Mapping[str, Any], at: Place, odd: tuple[Odd, ...], typed: Mapping[str, str], reading: Reading
) -> Iterator[Item | Place]:
    """Yield the items of a List.

    Items of a typed list, such as NodeList, need no apiVersion and kind of their own.
    """
    metadata, items = value.get("metadata"), value.get("items")
    if isinstance(metadata, dict) and (metadata.get("continue") or metadata.get("remainingItemCount")):
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


def _spellings() -> list[str]:
    return [f"{kind.name} ({kind.api_versions[0]})" for kind in KINDS]


_MOVE_OUT = f"move it out of this folder; the kinds here are {listing(_spellings())}"


def _nearest(kind: str) -> str:
    return nearest(kind.removesuffix("List") or kind, [known.name for known in KINDS])


def _way_out(kind: str, version: str) -> str:
    if kind.removesuffix("List") == "CiliumPodIPPool":
        return f"it is rendered from a pool: write apiVersion: {OURS}, kind: IPPool, and blockSize in place of maskSize"
    near = _nearest(kind)
    versions = [version for known in KINDS if known.name == near for version in known.api_versions]
    if near and near == kind.removesuffix("List"):
        if meant := nearest(version, versions):
            return f"did you mean apiVersion: {meant}?"
        return f"the apiVersion of {'an' if near[0] in 'AEIOU' else 'a'} {near} is {listing(versions)}"
    if near and nearest(version, versions):
        return f"did you mean {near!r} of {listing(versions)}?"
    return _MOVE_OUT


_HELM = frozenset(
    {"ipam", "operator", "hubble", "kubeProxyReplacement", "k8sServiceHost", "tunnelProtocol", "bpf", "cni"}
)
_KUSTOMIZE = frozenset({"resources", "patches", "components", "namePrefix", "configMapGenerator", "bases"})


def unnamed(
    value: Mapping[str, Any], names: Mapping[str, Any], kinds: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, way out) for what a document lacks of apiVersion and kind, or has as no text.

    `names` are the two, as they are or as its list has them; `kinds` are apiVersions by kind. The way out may be "".
    """
    version, kind = names["apiVersion"], names["kind"]
    if version is None and kind is None:
        ours = _meant(value)
        head = f"write apiVersion: {kinds[ours][0]} and kind: {ours}" if ours else ""
        yield "kind", "the document has no apiVersion and no kind", _other_tool(value) or head
        return
    for name, given in names.items():
        if isinstance(given, str):
            continue
        better = ""
        if name == "kind" and (meant := _meant(value)):
            better = f"write kind: {meant}"
        elif name == "apiVersion" and isinstance(kind, str) and kind in kinds:
            better = f"write apiVersion: {kinds[kind][0]}"
        problem = f"{name} is not text" if given else f"the document has no {name}"
        yield name, problem, better or _other_tool(value)


def _other_tool(value: Mapping[str, Any]) -> str:
    keys = value.keys()
    if keys & _KUSTOMIZE and not keys & {"spec", "nodes"}:
        return "for kustomize, write apiVersion: kustomize.config.k8s.io/v1beta1 and kind: Kustomization: it is passed over then"
    if value.get("apiVersion") in {"v1", "v2"} and keys >= {"name", "version"}:
        return "if this is Helm's Chart.yaml, move it out of the cluster's folder"
    if keys & _HELM and not keys & {"spec", "nodes", "metadata"}:
        return "if these are values of Helm, move the file out of the cluster's folder; those of ipamc come into rendered/cilium/helm-values.yaml"
    return ""


def _meant(value: Mapping[str, Any]) -> str:
    """Return the kind of ipamc's own of which a document has the fields; "" where it has none."""
    spec = value.get("spec")
    if isinstance(value.get("nodes"), list):
        return "NodeInventory"
    if isinstance(value.get("tests"), list):
        return "Tests"
    if isinstance(spec, Mapping) and ("cilium" in spec or "ipam" in spec):
        return "Cluster"
    return "IPPool" if isinstance(spec, Mapping) and ("ipv4" in spec or "ipv6" in spec) else ""


_NOTHING = frozenset[str]()
_AMOUNTS = frozenset(RawAmounts.__struct_encode_fields__)
_PARTS = {
    "metadata": {"managedFields": _NOTHING},
    "status": {
        "allocatable": _AMOUNTS,
        "capacity": _AMOUNTS,
        "conditions": frozenset(RawCondition.__struct_encode_fields__),
        "daemonEndpoints": _NOTHING,
        "images": _NOTHING,
        "nodeInfo": _NOTHING,
        "runtimeHandlers": _NOTHING,
        "volumesAttached": _NOTHING,
        "volumesInUse": _NOTHING,
    },
}
FIELDS = {name: reads for fields in _PARTS.values() for name, reads in fields.items()}
"""Large fields of Kubernetes' objects, most of a dump, each with the fields below it that a kind reads, at any depth."""
_PATHS = {(part, name) for part, fields in _PARTS.items() for name in fields}
_FOREIGN = {
    (version, kind.name) for kind in KINDS if issubclass(kind.shape, Foreign) for version in kind.api_versions
}


def unread(item: Mapping[str, Any], keys: Keys) -> bool:
    """Tell whether a path from an object leads to one of FIELDS, in a kind that reads no more of it than that.

    An unknown field of an ipamc kind is a mistake, so nothing there is unread.
    """
    version, kind = item.get("apiVersion"), item.get("kind")
    return (
        keys in _PATHS and isinstance(version, str) and isinstance(kind, str) and (version, kind) in _FOREIGN
    )
