"""Calico's blocks and affinities in a dump."""

from __future__ import annotations

from ipamc.model.dump import SeenAffinity, SeenBlock
from ipamc.read.dump import shapes
from ipamc.read.dump.items import Item
from ipamc.read.dump.reader import Reader


def read_calico_block(raw: shapes.CalicoBlock, item: Item, reader: Reader) -> SeenBlock | None:
    """Return an IPAMBlock; None where its CIDR cannot be read."""
    spec = raw.spec
    found = reader.blocks([spec.cidr], item, f"IPAMBlock {raw.metadata.name}")
    if not found:
        return None
    owners = [(entry.secondary or {}).get("node") or "" for entry in spec.attributes or ()]
    host = spec.affinity or ""
    return SeenBlock(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        block=found[0],
        host=reader.text(host.removeprefix("host:")) if host.startswith("host:") else "",
        used=tuple(
            (found[0].first + number, reader.text(owners[index]) if 0 <= index < len(owners) else "")
            for number, index in enumerate(spec.allocations or ())
            if index is not None and number < found[0].size
        ),
        deleted=bool(spec.deleted),
    )


def read_affinity(raw: shapes.Affinity, item: Item, reader: Reader) -> SeenAffinity | None:
    """Return a BlockAffinity; None where its CIDR cannot be read."""
    found = reader.blocks([raw.spec.cidr], item, f"BlockAffinity {raw.metadata.name}")
    if not found:
        return None
    return SeenAffinity(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        block=found[0],
        host=reader.text(raw.spec.node),
        state=reader.text(raw.spec.state),
        deleted=raw.spec.deleted in {True, "true"},
    )
