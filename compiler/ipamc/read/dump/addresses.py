"""Finds each text of a dump that is an address, a CIDR, a range from-to, or a list of these, in every kind.

It searches bytes, because decoding every object would double the time of an import. So it also sees JSON
inside a text, such as the `config` of a NetworkAttachmentDefinition, and the keys of mappings. ConfigMaps
have YAML in their texts: there, each value of a line counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ipamc.model.address_sets import aligned
from ipamc.model.cidr import BITS, Block, CidrError, parse_address, parse_either
from ipamc.model.diagnostics import Span
from ipamc.model.dump import Scalar
from ipamc.read.dump.items import DumpItem

_TEXTS = re.compile(
    rb'"((?:\d{1,3}\.\d{1,3}\.\d|[0-9a-fA-F]{0,4}:[0-9a-fA-F]{0,4}:)[0-9a-fA-F:./, -]*)(?=(?:\\+[nrt])*\\*")'
).findall
_YAML = re.compile(rb"\\[nrt] *(?:- +)*|: +|[\[\],'#] *").sub
"""Finds what begins or ends a value of YAML inside a text of JSON."""
_NAME = re.compile(rb'"name": ?"([a-z0-9.-]*)"').search
_FROM_TO = re.compile(r"\s*-\s*")
_BETWEEN = re.compile(r"[\s,]+")
_MULTUS = b"k8s.v1.cni.cncf.io/"

OF_OTHERS: Mapping[tuple[str, str], str] = {
    ("", "Node"): "nodes",
    ("", "Service"): "Services",
    ("networking.k8s.io", "IPAddress"): "Services",
    ("networking.k8s.io", "Ingress"): "Ingresses",
    ("gateway.networking.k8s.io", "Gateway"): "Gateways",
    ("metallb.io", "IPAddressPool"): "{} of MetalLB",
    ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): "{} of Multus",
    ("whereabouts.cni.cncf.io", "IPPool"): "{} of whereabouts",
}
"""Kinds whose networks are never those of pods with a block, and what has them; `{}`: kind and name.
Of the others, which also name networks of clients, only single addresses count.
"""


class Addresses:
    """The texts with addresses that were found so far."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
        """The first place by kind and owner, and by text."""

    def search(self, item: DumpItem, file: str) -> None:
        """Record the texts of an item. Pods, of which there are many, have readers of their own: they and
        CiliumEndpoints are searched only if Multus gave them more addresses. O(bytes).
        """
        try:
            raw = item.raw if isinstance(item.raw, bytes) else msgspec.json.encode(item.raw)
        except (TypeError, ValueError, RecursionError):
            return  # no JSON has such a value: the reader of YAML has reported it
        if item.kind in {"Pod", "CiliumEndpoint"} and _MULTUS not in raw:
            return
        found = dict.fromkeys(_TEXTS(raw))
        if item.kind == "ConfigMap":
            found |= dict.fromkeys(_TEXTS(_YAML(b'"', raw)))
        owner = OF_OTHERS.get((item.group, item.kind), "") if found else ""
        if "{" in owner:
            name = _NAME(raw, max(raw.find(b'"metadata"'), 0))
            owner = owner.format(f"{item.kind} {name[1].decode() if name else ''}")
        places = self._at.setdefault((item.kind, owner), {}) if found else {}
        for data in found:
            if (text := data.decode().strip()) not in places:
                places[text] = file, item.line and item.line + raw.count(b"\n", 0, raw.find(data))

    def scalars(self) -> Iterator[Scalar]:
        """Yield what was found, in the order of kinds and of the dump; texts without an address are none."""
        for (kind, owner), places in sorted(self._at.items()):
            for text, (file, line) in places.items():
                at = Span(file, line, 1, 1) if line else Span(file)
                for part in _BETWEEN.split(_FROM_TO.sub("-", text)):
                    if blocks := tuple(blocks_in(part)):
                        client = owner in OF_OTHERS.values() and blocks[0].prefix < BITS[blocks[0].family]
                        yield Scalar(kind, "" if client else owner, at, part, blocks)


def blocks_in(text: str) -> Iterator[Block]:
    """Yield the addresses that a text has as a whole, as aligned blocks; a CIDR loses its host bits."""
    first, dash, last = text.partition("-")
    try:
        if dash:
            (family, low), (other, high) = parse_address(first), parse_address(last)
            if family == other and low <= high:
                yield from aligned(family, low, high + 1)
        else:
            yield parse_either(text)
    except CidrError as problem:
        if problem.masked:
            yield problem.masked
