"""The ResourceList of a KRM function: its objects, and which of them a compile reads.

Specification: kubernetes-sigs/kustomize, cmd/config/docs/api-conventions/functions-spec.md (v1). An
orchestrator, kpt or kustomize, gives a function the objects of a package without their files. So the lock and
the last `rendered/`, which are no objects, are passed in a ConfigMap: the *state*. It has a key `ipam.lock`,
and the files of `rendered/` that a compile reads under their paths with dots for slashes; unique files
(`parts.BINDING`) also under their names alone, as `configMapGenerator` of kustomize makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from ipamc.model.diagnostics import Span
from ipamc.read.kinds import KINDS, OURS
from ipamc.read.syntax.document import Keys, member
from ipamc.read.syntax.yaml import yaml_documents

VERSIONS = ("config.kubernetes.io/v1", "config.kubernetes.io/v1beta1", "config.kubernetes.io/v1alpha1")
LOCK = "ipam.lock"
RENDERED = "rendered"
STATE = "ipamc-state"
"""The name of the ConfigMap and, with `.yaml`, of the file with the lock in a package of kpt."""
LOCAL = "config.kubernetes.io/local-config"
"""The annotation of an object for files only: kustomize and kpt do not apply it."""
PATHS = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
INDICES = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")
_OF_TOOLS = (
    "config.kubernetes.io/",
    "internal.config.kubernetes.io/",
    "config.k8s.io/",
    "kustomize.config.k8s.io/",
    "internal.kpt.dev/",
)
"""Prefixes of annotations that orchestrators write."""
_LISTS = frozenset({"List", "NodeList", "CiliumNodeList"})

Object = dict[str, Any]


class NotAResourceList(Exception):  # noqa: N818 - a verdict on the input
    """Stdin is not what an orchestrator gives a function. The text says what it is."""


class ListedObject(Struct):
    """One object of the list, unchanged."""

    value: Object
    path: str
    """Its file, below the package; "" if the orchestrator does not give it."""
    index: int
    """Its index in that file, from 0."""


class Source(Struct, frozen=True):
    """An object in the form of an input file of a compile."""

    item: ListedObject
    text: bytes
    keys: tuple[Keys, ...]
    """For each line of the text, the path of its value."""


class ResourceList(Struct):
    """The contents of stdin, sorted by purpose."""

    items: list[ListedObject]
    writes: bool
    """The lock may change; else a stale one is refused."""
    name: str = ""
    """The cluster's."""
    folder: str = ""
    """The folder of the cluster's document in the package; "" if the orchestrator does not give it."""
    sources: dict[str, Source] = field(default_factory=dict)
    """By the name of the file in findings."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number that was appended to a name in `sources`."""
    state: ListedObject | None = None

    @property
    def data(self) -> Mapping[str, str]:
        """Return the texts of the state by key; "" for a lock that is no text: it was lost, it is not new."""
        found = self.state.value["data"] if self.state else {}
        texts = {key: text for key, text in found.items() if isinstance(text, str)}
        return {LOCK: "", **texts} if self.state else texts

    @property
    def rendered(self) -> str:
        """Return the folder of the manifests in the package."""
        return f"{self.folder}/{RENDERED}" if self.folder not in {"", "."} else RENDERED

    @property
    def was_rendered(self) -> bool:
        """Return whether there are manifests of an earlier run."""
        return any(self.is_rendered(item) for item in self.items)

    def is_rendered(self, item: ListedObject) -> bool:
        """Return whether an object is a manifest of an earlier run."""
        return item.path.startswith(f"{self.rendered}/")

    @property
    def state_path(self) -> str:
        """Return the file of the state; "" if the orchestrator does not give files, like kustomize."""
        if self.state is not None:
            return self.state.path
        return str(PurePosixPath(self.folder, f"{STATE}.yaml")) if self.folder else ""


def read_resource_list(text: str) -> ResourceList:
    """Read stdin. Raises NotAResourceList, or Unreadable with findings for text that is no YAML."""
    documents = [document.value for document in yaml_documents("<stdin>", text) if document.value is not None]
    document = documents[0] if len(documents) == 1 else None
    if not isinstance(document, dict) or document.get("kind") != "ResourceList":
        raise NotAResourceList(
            "stdin is not a ResourceList, which kpt and kustomize pass to a function; "
            "to compile files, run ipamc compile"
        )
    if (version := document.get("apiVersion")) not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise NotAResourceList(f"the ResourceList has apiVersion {version!r}, but ipamc knows only {known}")
    values = document.get("items") or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise NotAResourceList("items of the ResourceList is not a list of objects")
    found = ResourceList([_item(value) for value in values], _writes(document.get("functionConfig")))
    for item in found.items:
        _sort(found, item)
    return found


def _sort(found: ResourceList, item: ListedObject) -> None:
    version, kind, data = item.value.get("apiVersion"), item.value.get("kind"), item.value.get("data")
    if kind == "ConfigMap" and isinstance(data, dict) and LOCK in data:
        if found.state is not None:
            raise NotAResourceList(f"two ConfigMaps have {LOCK}: give each cluster its own function")
        found.state = item
        return
    known = any(kind == each.name and version in each.api_versions for each in KINDS)
    listed = isinstance(kind, str) and kind in _LISTS
    if not (known or listed) or RENDERED in PurePosixPath(item.path).parts:
        return
    metadata = item.value.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    if (version, kind) == (OURS, "Cluster"):
        found.name = name
        found.folder = str(PurePosixPath(item.path).parent) if item.path else ""
    source = called = item.path or f"{kind} {name}".strip()
    number = max(item.index, found.numbers.get(source, 0))
    while called in found.sources:
        number += 1
        called = f"{source}[{number}]"
        found.numbers[source] = number
    found.sources[called] = _source(item)


def _item(value: Object) -> ListedObject:
    notes = member(value, "metadata", "annotations")
    notes = notes if isinstance(notes, dict) else {}
    path, index = (next((str(notes[key]) for key in keys if key in notes), "") for keys in (PATHS, INDICES))
    return ListedObject(value, path, int(index) if index.isdecimal() and len(index) < 10 else 0)


def _source(item: ListedObject) -> Source:
    """Return an object as an input file, without the annotations of tools."""
    value, metadata = dict(item.value), item.value.get("metadata")
    if isinstance(metadata, dict) and isinstance(notes := metadata.get("annotations"), dict):
        kept = {key: note for key, note in notes.items() if not str(key).startswith(_OF_TOOLS)}
        rest = {key: each for key, each in metadata.items() if key != "annotations"}
        value["metadata"] = {**rest, "annotations": kept} if kept else rest
    lines = list(_lines(value, (), "", ""))
    return Source(item, "".join(f"{line}\n" for line, _ in lines).encode(), tuple(keys for _, keys in lines))


def _lines(value: Any, keys: Keys, before: str, after: str) -> Iterator[tuple[str, Keys]]:
    """Yield JSON with one value per line, and the path of the value of each line."""
    members: Iterable[tuple[str | int, str, Any]]
    if isinstance(value, dict) and value:
        members, ends = [(key, json.dumps(str(key)) + ": ", each) for key, each in value.items()], "{}"
    elif isinstance(value, list) and value:
        members, ends = [(index, "", each) for index, each in enumerate(value)], "[]"
    else:
        yield before + json.dumps(value) + after, keys
        return
    yield before + ends[0], keys
    for number, (key, label, each) in enumerate(members, 1):
        yield from _lines(each, (*keys, key), label, "," if number < len(value) else "")
    yield ends[1] + after, keys


def _writes(config: object) -> bool:
    """Return whether functionConfig, a Function or a ConfigMap as `kpt fn eval` makes it, has lock: write."""
    if config is None:
        return False
    kind = member(config, "kind")
    settings = member(config, "data" if kind == "ConfigMap" else "spec")
    settings = {} if settings is None else settings
    if kind not in ("ConfigMap", "Function") or not isinstance(settings, dict):
        raise NotAResourceList(
            f"functionConfig is of kind {kind!r}: use kind Function of {OURS}, or a ConfigMap"
        )
    for key, value in settings.items():
        if key != "lock" or value not in ("locked", "write"):
            raise NotAResourceList(f"functionConfig has {key}: {value!r}; use lock: locked or lock: write")
    return bool(settings.get("lock") == "write")


def place(found: ResourceList, at: Span) -> tuple[ListedObject | None, str]:
    """Return the object and the field that a finding is about; (None, "") if it concerns no object."""
    source = found.sources.get(at.path)
    if source is None:
        return None, ""
    keys = source.keys[at.line - 1] if 0 < at.line <= len(source.keys) else ()
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return source.item, text.removeprefix(".")
