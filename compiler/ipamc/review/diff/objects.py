"""The objects in rendered files, found by their lines: parsing 20 shards as YAML would take a second.

Every rendered file is in the style of `render.yaml`: a line `---` between documents, `kind:` at the margin, the
name of the object two spaces in. An object that was edited into another style is not found, and then no plan
speaks of it; `ipamc compile --check` finds the edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct

from ipamc.check.published import FLAGS

_KIND = re.compile(r"^kind: (\S+)$", re.MULTILINE)
_NAME = re.compile(r"^  name: (.+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"^  namespace: (.+)$", re.MULTILINE)
_BETWEEN = "\n---\n"
CILIUM = "cilium/kustomization.yaml"

Identity = tuple[str, str, str]
"""Kind, namespace, name."""


class Rendered(Struct, frozen=True):
    """An object as it was rendered."""

    kind: str
    namespace: str
    name: str
    text: str

    @property
    def identity(self) -> Identity:
        """Return what makes it one object in a cluster."""
        return self.kind, self.namespace, self.name


def objects(tree: Mapping[str, bytes], paths: Iterable[str]) -> dict[Identity, Rendered]:
    """Return the objects of these files of a rendered tree that are applied, also those of seeds."""
    return {
        found.identity: found
        for path in paths
        if path in tree and _is_applied(tree, path)
        for found in _objects(tree[path].decode(errors="replace"))
    }


def objects_lost(
    before: Mapping[str, bytes], after: Mapping[str, bytes], paths: Iterable[str]
) -> dict[Identity, Rendered]:
    """Return the objects of these files that are in the tree `before` and nowhere in these files `after`.

    A document that a file has in both is not searched: of the objects in a shard that changes, nearly all stay.
    """
    gone, new, kept = [], [], []
    for path in paths:
        old, now = (
            tree[path].decode(errors="replace").split(_BETWEEN)
            if path in tree and _is_applied(tree, path)
            else []
            for tree in (before, after)
        )
        stays = frozenset(now).intersection(old)
        gone += [document for document in old if document not in stays]
        new += [document for document in now if document not in stays]
        kept.append(stays)
    left = {found.identity: found for found in map(_object, gone) if found}
    for found in map(_object, new):
        if found:
            left.pop(found.identity, None)
    if left:  # an object that a tree has twice
        for found in map(_object, chain.from_iterable(kept)):
            if found:
                left.pop(found.identity, None)
    return left


def _is_applied(tree: Mapping[str, bytes], path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if name in {"kustomization.yaml", "helm-values.yaml"} or folder in {"cilium/component", "renumber"}:
        return False
    return path != FLAGS or b"- configmap.yaml" in tree.get(CILIUM, b"")


def _objects(text: str) -> Iterator[Rendered]:
    return filter(None, map(_object, text.split(_BETWEEN)))


def _object(document: str) -> Rendered | None:
    kind, name = _KIND.search(document), _NAME.search(document)
    if not (kind and name):
        return None
    namespace = _NAMESPACE.search(document)
    return Rendered(
        kind[1], _scalar(namespace[1]) if namespace else "", _scalar(name[1]), document.strip("\n")
    )


def _scalar(text: str) -> str:
    """Return the text of a scalar, which is plain or in double quotes."""
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text
