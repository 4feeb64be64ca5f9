"""A NodeInventory alone in a JSON file, decoded at once: scripts write them, with 100,000 nodes."""

from __future__ import annotations

import msgspec

from ipamc.read.kinds import OURS
from ipamc.read.kinds.inventory import RawInventory
from ipamc.read.syntax.document import MAX_CONTAINERS
from ipamc.read.syntax.encoding import BOM


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_INVENTORY = msgspec.json.Decoder(RawInventory)
_CONTAINERS = 4
"""Mappings and lists of a node at most: itself, its labels, its podCIDRs, its podIPs."""


def plain_inventory(data: bytes) -> RawInventory | None:
    """Return the inventory of a JSON file in UTF-8 of which nothing has to be reported; None where something may be.

    The usual way makes plain values first, to find keys that are there twice, and then the structs: with 100,000
    nodes twice the time. Here the structs are printed again. Every value prints in no more bytes than it was written
    in, so where the whole prints in as many as the file has without its blanks, nothing of it was dropped.
    """
    data = data.removeprefix(BOM)
    try:
        head = _HEAD.decode(data)
        if (head.api_version, head.kind) != (OURS, "NodeInventory"):
            return None
        inventory = _INVENTORY.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if len(inventory.nodes) * _CONTAINERS > MAX_CONTAINERS:
        return None
    same = len(msgspec.json.encode(inventory)) == len(msgspec.json.format(data, indent=-1))
    return inventory if same else None
