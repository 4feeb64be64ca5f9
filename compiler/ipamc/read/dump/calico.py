"""Calico's blocks and affinities in a dump."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cidr import Block
from ipamc.model.dump import SeenAffinity, SeenBlock
from ipamc.read.dump import shapes
from ipamc.read.dump.items import Item
from ipamc.read.dump.reader import Reader

_HOST, _VIRTUAL = "host:", "virtual:"
"""What an affinity begins with (libcalico-go, lib/backend/model/block.go)."""
_WINDOWS = "windows-reserved-ipam-handle"
"""The handle of the addresses that Windows keeps of each block (lib/ipam/ipam_block.go)."""


def read_calico_block(raw: shapes.CalicoBlock, item: Item, reader: Reader) -> SeenBlock | None:
    """Return an IPAMBlock; None where its CIDR cannot be read."""
    spec = raw.spec
    found = reader.blocks([spec.cidr])
    if not found:
        return None
    host = spec.affinity or ""
    uses = list(_uses(spec, found[0], reader))
    return SeenBlock(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        block=found[0],
        host=reader.text(host.removeprefix(_HOST)) if host.startswith(_HOST) else "",
        used=tuple((address, node) for address, node, _ in uses),
        users=tuple(user for _, _, user in uses),
        virtual=host.startswith(_VIRTUAL),
        deleted=bool(spec.deleted),
    )


def _uses(spec: shapes.BlockSpec, block: Block, reader: Reader) -> Iterator[tuple[int, str, str]]:
    """Yield (address, node, user) of every address that is in use."""
    owners = spec.attributes or []
    for number, index in enumerate(spec.allocations or ()):
        if index is None or number >= block.size:
            continue
        owner = owners[index] if 0 <= index < len(owners) else shapes.BlockAttributes()
        if not owner.released_at and (owner.handle or "").lower() != _WINDOWS:
            yield (
                block.first + number,
                reader.text((owner.secondary or {}).get("node")),
                reader.text(_user(owner)),
            )


def _user(owner: shapes.BlockAttributes) -> str:
    told = owner.secondary or {}
    if pod := told.get("pod"):
        return f"{told.get('namespace') or ''}/{pod}"
    return told.get("type") or owner.handle or ""


def read_affinity(raw: shapes.Affinity, item: Item, reader: Reader) -> SeenAffinity | None:
    """Return a BlockAffinity; None where its CIDR cannot be read."""
    found = reader.blocks([raw.spec.cidr])
    if not found:
        return None
    return SeenAffinity(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        block=found[0],
        host=reader.text(raw.spec.node),
        state=reader.text(raw.spec.state),
        virtual=raw.spec.type == "virtual",
        deleted=raw.spec.deleted in {True, "true"},
    )
