"""What dumps have beside the fields that kinds read. It needs no parsing, and is most of a dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipamc.read.kinds import KINDS
from ipamc.read.kinds.base import Foreign
from ipamc.read.kinds.node import RawAmounts, RawCondition
from ipamc.read.syntax.document import Keys

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
"""Large fields of Kubernetes' objects, each with the fields below it that a kind reads, at any depth."""
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
