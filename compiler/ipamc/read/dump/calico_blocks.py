"""Calico's IPAMBlocks and BlockAffinities of a dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipamc.model import dump
from ipamc.model.cilium.flags import parse_bool
from ipamc.read.dump import shapes

if TYPE_CHECKING:
    from ipamc.read.dump.items import DumpItem
    from ipamc.read.dump.kinds import Reader

_HOST, _VIRTUAL = "host:", "virtual:"
"""The beginnings of an affinity (libcalico-go, lib/backend/model/block.go)."""
_WINDOWS = "windows-reserved-ipam-handle"
"""The handle of the addresses that Windows reserves in each block (lib/ipam/ipam_block.go)."""


def read_calico_block(raw: shapes.CalicoBlock, item: DumpItem, reader: Reader) -> dump.SeenBlock | None:
    """Return an IPAMBlock; None if its CIDR cannot be read."""
    spec, uses = raw.spec, []
    if not (blocks := reader.blocks([spec.cidr])):
        return None
    owners, host = spec.attributes or [], spec.affinity or ""
    for number, index in enumerate((spec.allocations or ())[: blocks[0].size]):
        if index is None:
            continue
        owner = owners[index] if 0 <= index < len(owners) else shapes.BlockAttributes()
        if not owner.released_at and (owner.handle or "").lower() != _WINDOWS:
            by = owner.secondary or {}
            pod = f"{by.get('namespace') or ''}/{by['pod']}" if by.get("pod") else ""
            user = pod or by.get("type") or owner.handle
            uses.append((blocks[0].first + number, reader.text(by.get("node")), reader.text(user)))
    return dump.SeenBlock(
        **reader.origin(raw, item),
        block=blocks[0],
        host=reader.text(host.removeprefix(_HOST)) if host.startswith(_HOST) else "",
        used=tuple((address, node) for address, node, _ in uses),
        users=tuple(user for _, _, user in uses),
        virtual=host.startswith(_VIRTUAL),
        deleted=bool(spec.deleted),
    )


def read_affinity(raw: shapes.Affinity, item: DumpItem, reader: Reader) -> dump.SeenAffinity | None:
    """Return a BlockAffinity; None if its CIDR cannot be read."""
    spec = raw.spec
    if not (blocks := reader.blocks([spec.cidr])):
        return None
    return dump.SeenAffinity(
        **reader.origin(raw, item),
        block=blocks[0],
        host=reader.text(spec.node),
        state=reader.text(spec.state),
        virtual=spec.type == "virtual",
        deleted=parse_bool(str(spec.deleted)) is True,
    )
