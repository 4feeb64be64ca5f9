"""`ipamc/v1alpha1 NodeInventory`: the inventory in its short form."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, UnsetType, field

from ipamc.model.cluster import Node
from ipamc.model.diagnostics import Place
from ipamc.model.progress import track
from ipamc.read.kinds.base import Natural, Own, Text
from ipamc.read.values import Reading


class RawEntry(Own, gc=False):
    """One node."""

    name: Text
    labels: dict[str, str] = field(default_factory=dict)
    uid: str = ""
    pod_cidrs: list[str] = field(name="podCIDRs", default_factory=list)
    max_pods: Natural = 0
    planned: bool = False
    running: bool = False
    pod_ips: list[str] = field(name="podIPs", default_factory=list)


class RawMetadata(Own):
    """`metadata`, which ipamc ignores."""

    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class RawInventory(Own):
    """The document."""

    api_version: str
    kind: str
    nodes: list[RawEntry]
    metadata: RawMetadata | UnsetType = UNSET


def read_inventory(raw: RawInventory, at: Place, reading: Reading) -> Iterator[Node]:
    """Yield the nodes of an inventory, in its order.

    All names and labels are checked at once; one after the other only where a finding has to say which.
    """
    path, document, keys = at.path, at.document, (*at.keys, "nodes")
    entries = raw.nodes
    sound = reading.sound([entry.name for entry in entries], [entry.labels for entry in entries])
    for index, entry in enumerate(track(entries, "reading", "nodes")):
        here = Place(path, document, (*keys, index))
        if not sound:
            reading.name(entry.name, "node", here, "name")
            reading.labels(entry.labels, here, "labels")
        yield Node(
            entry.name,
            entry.labels,
            here,
            entry.uid,
            reading.blocks(entry.pod_cidrs, here, "podCIDRs") if entry.pod_cidrs else (),
            entry.max_pods,
            entry.planned,
            ready=entry.running,
            pod_ips=reading.addresses(
                [(text, ("podIPs", number)) for number, text in enumerate(entry.pod_ips)], here
            )
            if entry.pod_ips
            else (),
        )
