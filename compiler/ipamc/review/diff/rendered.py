"""Two rendered trees: which files differ, which of Cilium's flags, and which objects leave."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from ipamc.model.plan import Want
from ipamc.read.parts import FLAGS
from ipamc.read.rendered import Found, Rendered


class Flag(Struct, frozen=True, kw_only=True):
    """A key of ConfigMap cilium-config, or the operator's argument. None: it is not set."""

    name: str
    old: str | None
    new: str | None


class Files(Struct, frozen=True, kw_only=True):
    """Paths below `rendered/`, sorted: files that are new or differ, and files that are removed."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


class Trees(Struct, frozen=True, kw_only=True):
    """Two rendered trees."""

    before: Rendered
    after: Rendered
    files: Files


def compare_trees(before: Rendered, after: Mapping[str, str]) -> Trees:
    """Return what was rendered beside what is rendered now, by path."""
    now = {path: text.encode() for path, text in after.items()}
    files = Files(
        written=tuple(path for path, text in sorted(now.items()) if before.texts.get(path) != text),
        removed=tuple(sorted(before.texts.keys() - now.keys())),
    )
    return Trees(before=before, after=Rendered(now), files=files)


def compare_flags(trees: Trees) -> tuple[Flag, ...]:
    """Return the flags that differ, by name."""
    old, new = _flags(trees.before), _flags(trees.after)
    return tuple(
        Flag(name=name, old=old.get(name), new=new.get(name))
        for name in sorted({**old, **new})
        if old.get(name) != new.get(name)
    )


def _flags(tree: Rendered) -> Mapping[str, str]:
    """Return the flags that a tree sets. A damaged file sets none."""
    flags = tree.flags
    return {**flags.data, "cilium-operator --ipam": "kubernetes"} if flags.bystander else flags.data


_KEPT = "cilium.io/do-not-gc"


class Stays(enum.Enum):
    """What an object does that is in the cluster and no longer in the tree."""

    NODE_CONFIG = "it still sets the default pool of the nodes that it selects; of several configs for a node the last name wins"
    POD_IP_POOL = "the operator goes on giving out blocks of it to nodes that ask for this pool"
    PLANNED = "a cancelled planned node: its block stays taken in the operator's book, and with cilium.io/do-not-gc nobody collects it"
    AGENT = "it belongs to the agent of a node that stays, and goes on: never delete it while the node runs"
    CILIUM_NODE = "it is deleted with its Node; while the Node exists, its agent keeps the block"
    NODE = "it keeps its podCIDRs or annotations, and does no harm; podCIDRs cannot be taken away"
    CONFIG_MAP = "cilium-config keeps the keys, and Cilium reads them; who owns it now sets them"
    OTHER = "it stays as it is"


_IN_ORDER = (*Stays,)
_REMOVED = frozenset({Stays.NODE_CONFIG, Stays.POD_IP_POOL, Stays.PLANNED, Stays.CILIUM_NODE, Stays.OTHER})
_OF_KIND = {
    "CiliumNodeConfig": Stays.NODE_CONFIG,
    "CiliumPodIPPool": Stays.POD_IP_POOL,
    "Node": Stays.NODE,
    "ConfigMap": Stays.CONFIG_MAP,
}


class Leaving(Struct, frozen=True, kw_only=True):
    """Objects of one kind that leave the tree and do the same if they stay."""

    kind: str
    names: tuple[str, ...]
    """Sorted; not empty."""
    stays: Stays

    @property
    def removable(self) -> bool:
        """Return whether `ipamc ci apply --prune` deletes them; the others stay, or are not to be deleted."""
        return self.stays in _REMOVED


def leaving(trees: Trees, wants: Sequence[Want]) -> tuple[Leaving, ...]:
    """Return the objects of the base's tree that the head's tree does not have, by what they do and kind.

    Only files that differ are read, and the ConfigMap, which another file lists or not; an object that moved
    to another file does not leave. `wants` are the nodes of the inventory. O(size of the files that differ).
    """
    paths = dict.fromkeys((*trees.files.written, *trees.files.removed, FLAGS))
    left = trees.before.lost(trees.after, paths)
    if not left:
        return ()
    nodes = {want.node.name for want in wants}
    groups: dict[tuple[Stays, str], list[str]] = defaultdict(list)
    for found in left.values():
        groups[_stays(found, nodes), found.kind].append(found.name)
    return tuple(
        Leaving(kind=kind, names=tuple(sorted(names)), stays=stays)
        for (stays, kind), names in sorted(
            groups.items(), key=lambda group: (_IN_ORDER.index(group[0][0]), group[0][1])
        )
    )


def _stays(gone: Found, nodes: Collection[str]) -> Stays:
    if gone.kind != "CiliumNode":
        return _OF_KIND.get(gone.kind, Stays.OTHER)
    if gone.name in nodes:
        return Stays.AGENT
    return Stays.PLANNED if _KEPT in gone.text else Stays.CILIUM_NODE
