"""The manifests of a cluster at one moment, from the texts of `rendered/`: all questions about them.

Each file is parsed once, when it is needed. People may have edited the files: unreadable ones count as
missing, because they are written again. An apply and an audit are stricter: `workspace.rendered.Manifests`.

Thousands of similar objects are found by a search of the text, because to parse 20 shards takes a second.
Files have the style of `render.yaml`: a line `---` between documents, `kind:` at the margin, the name of the
object two spaces in. Plans omit an object that was edited into another style; `ipamc compile --check` finds
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from ipamc.model.cidr import BITS, read_blocks
from ipamc.model.cilium.operator_list import BYSTANDER, Assumed
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Span
from ipamc.model.pool_ranges import PublishedPool
from ipamc.model.pool_words import FLAG_FIELDS
from ipamc.read.parts import (
    FIRST,
    FLAGS,
    KUSTOMIZATION,
    MASQ_AGENT,
    NODES,
    NOT_APPLIED,
    OWN_POOLS,
    POOLS,
    SEEDS,
    VALUES,
    parts,
)
from ipamc.read.syntax.document import Unreadable, member
from ipamc.read.syntax.yaml import yaml_documents

Object = Mapping[str, Any]

_BETWEEN = "\n---\n"
_SEPARATOR = re.compile(rb"^---\s*\n", re.MULTILINE)
_KIND = re.compile(r"^kind: (\S+)$", re.MULTILINE)
_NAME = re.compile(r"^  name: (.+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"^  namespace: (.+)$", re.MULTILINE)
_OF_NODE = re.compile(rb"^  name: \"?([^\s.\"]+)\.", re.MULTILINE)
_MODE = re.compile(rb'^  ipam: "?([a-z-]+)"?$', re.MULTILINE)
_AUTO_CREATED = re.compile(r"(?:^|,)([^=,;:]+)=([^=]*)(?=,[^=,;:]+=|$)")
_FIELD = re.compile(r"(ipv[46])-(?:cidrs:([^;]*)|mask-size:([0-9]{1,3})(?=;|$))")


class RenderedObject(Struct, frozen=True):
    """An object that was found by searching its lines."""

    kind: str
    name: str
    identity: str
    """As `identity` returns it."""
    text: str

    @property
    def value(self) -> Any:
        """Return the parsed object; None if it cannot be read."""
        return next(iter(Rendered({"": self.text.encode()}).documents("")), None)


class Rendered(Struct, frozen=True, dict=True):
    """The rendered files at one moment: on the disk, in a commit, or from a compile in this run."""

    texts: Mapping[str, bytes] = {}
    """The files, by path below `rendered/`: all, or only those that are needed."""
    shown: str = "rendered"
    """The folder as the user would type it, after its revision."""
    revision: str = ""
    """As in messages; "" for the disk."""
    parsed: dict[bytes, list[Any]] = field(default_factory=dict)
    """A cache of documents by the bytes of their file. Two moments that share it parse equal files once."""

    def span(self, path: str, line: int = 0) -> Span:
        """Return the place of a file, or of a line in it."""
        return Span(f"{self.shown}/{path}", line, 1, 1) if line else Span(f"{self.shown}/{path}")

    def parse(self, path: str) -> list[Any]:
        """Return the documents of a file. Raises Unreadable, UnicodeDecodeError, KeyError."""
        text = self.texts[path]
        if text not in self.parsed:
            found = yaml_documents(f"{self.shown}/{path}", text.decode())
            self.parsed[text] = [document.value for document in found]
        return self.parsed[text]

    def documents(self, path: str) -> list[Any]:
        """Return the documents of a file; none if it is damaged or missing."""
        try:
            return self.parse(path)
        except (Unreadable, UnicodeDecodeError, KeyError):
            return []

    def _items(self, path: str, *keys: str) -> list[Any]:
        """Return the items of the lists at a path in a file's documents; other values there are ignored."""
        found = (member(document, *keys) for document in self.documents(path))
        return [item for some in found if isinstance(some, list) for item in some]

    # Flags

    @property
    def mode(self) -> str:
        """The rendered mode, even if the file is damaged elsewhere; "" if it is not readable."""
        found = _MODE.search(self.texts.get(FLAGS, b""))
        return found[1].decode() if found else ""

    @cached_property
    def flags(self) -> Assumed:
        """The flags that the compile assumed, as they are rendered for review."""
        some = [each for each in self.documents(FLAGS) if isinstance(member(each, "data"), dict)]
        found = some[0] if some else {}
        return Assumed(
            at=self.span(FLAGS),
            namespace=str(member(found, "metadata", "namespace") or ""),
            data={str(key): str(value) for key, value in found.get("data", {}).items()},
            bystander=BYSTANDER in self._items(VALUES, "operator", "extraArgs"),
            applied=FLAGS in self.files_of(FIRST),
        )

    @property
    def masq_agent(self) -> str:
        """The data of ConfigMap ip-masq-agent, in one line; "" if it is not rendered."""
        found = self.documents(MASQ_AGENT) if MASQ_AGENT in self.texts else []
        texts = [member(each, "data", "config") for each in found]
        return ", ".join(" ".join(str(text).replace("\n- ", " ").split()) for text in texts[:1])

    # Pools of multi-pool mode

    @cached_property
    def pools(self) -> Mapping[str, PublishedPool]:
        """The CiliumPodIPPools that nodes share, by name, without unreadable CIDRs."""
        specs: list[tuple[str, str, Any]] = []
        for name, words in _AUTO_CREATED.findall(self.flags.data.get("auto-create-cilium-pod-ip-pools", "")):
            spec: dict[str, Any] = {
                key: f"{word}:true" in words.split(";") for key, word in FLAG_FIELDS.items()
            }
            for family, cidrs, size in _FIELD.findall(words):
                part = {"maskSize": int(size)} if size else {"cidrs": cidrs.split(",")}
                spec[family] = {**spec.get(family, {}), **part}
            specs.append((FLAGS, name, spec))
        for document in self.documents(POOLS):
            name = member(document, "metadata", "name")
            if isinstance(name, str):
                specs.append((POOLS, name, member(document, "spec")))
        return {name: self._pool(path, name, spec) for path, name, spec in specs}

    def _pool(self, path: str, name: str, spec: Any) -> PublishedPool:
        cidrs, masks = {}, {}
        for family, bits in BITS.items():
            size, texts = (member(spec, f"ipv{family}", key) for key in ("maskSize", "cidrs"))
            blocks = tuple(dict.fromkeys(read_blocks(texts if isinstance(texts, list) else ())[0]))
            known = isinstance(size, int) and 0 < size <= bits
            if blocks and (known or path == FLAGS):
                cidrs[family] = blocks
            if blocks and known:
                masks[family] = size
        allowed = frozenset(key for key in FLAG_FIELDS if member(spec, key) is True)
        at, by_flag = self.span(path), path == FLAGS
        return PublishedPool(name=name, at=at, by_flag=by_flag, cidrs=cidrs, masks=masks, allowed=allowed)

    @property
    def pools_lost(self) -> Span | None:
        """The path of the shared pools, if the flags exist and this file does not."""
        lost = self.flags.data.get("ipam") == Mode.MULTI_POOL and not self.documents(POOLS)
        return self.span(POOLS) if lost else None

    @cached_property
    def of_nodes(self) -> Span | None:
        """The file that lists the CiliumPodIPPools of single nodes; None if there are none."""
        there = any(str(name).startswith("pools/") for name in self._items(KUSTOMIZATION, "resources"))
        return self.span(KUSTOMIZATION) if there else None

    @cached_property
    def own_allowed(self) -> Mapping[str, tuple[Span, frozenset[str]]]:
        """For each pool, a file with the CiliumPodIPPool of one of its nodes, and its true FLAG_FIELDS.
        The pools of its nodes are alike, and there are thousands, so the text is searched.
        """
        found: dict[str, tuple[Span, frozenset[str]]] = {}
        for path in sorted(filter(OWN_POOLS, self.texts)) if self.of_nodes else ():
            for document in self.texts[path].split(_BETWEEN.encode()):
                if named := _OF_NODE.search(document):
                    allows = frozenset(key for key in FLAG_FIELDS if f"\n  {key}: true".encode() in document)
                    found.setdefault(named[1].decode(errors="replace"), (self.span(path), allows))
        return found

    # Nodes

    @cached_property
    def uids(self) -> Mapping[str, str]:
        """The uid in each rendered Node, by name. O(rendered Nodes), parsed."""
        paths = (path for path in self.texts if path.startswith(NODES))
        found = (member(document, "metadata") for path in paths for document in self.documents(path))
        pairs = ((member(each, "name"), member(each, "uid")) for each in found)
        return {name: uid for name, uid in pairs if isinstance(name, str) and isinstance(uid, str)}

    # Objects that are applied, parsed: of Manifests

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts, in the order in which they are applied."""
        return parts(self.texts)

    def files_of(self, part: str) -> list[str]:
        """Return the files of a part that its kustomization must build, sorted.
        All files of a shard; of `cilium/` those that its kustomization names, because flags may go to Helm or
        to another kustomization.
        """
        files = self._files.get(part, [])
        if part != FIRST:
            return files
        named = self._items(f"{FIRST}/{KUSTOMIZATION}", "resources")
        return [path for path in files if path.removeprefix(f"{FIRST}/") in named]

    @cached_property
    def _files(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self.texts):
            folder, _, name = path.rpartition("/")
            if name.endswith(".yaml") and name != KUSTOMIZATION:
                found.setdefault(folder, []).append(path)
        return found

    def objects_of(self, part: str) -> list[Any]:
        """Return the objects in the files of a part."""
        return [document for path in self.files_of(part) for document in self.documents(path)]

    @cached_property
    def _places(self) -> Mapping[str, tuple[Object, str, int]]:
        """Each object with its file, and the index of its document there. By path."""
        return {
            identity(document): (document, path, number)
            for path in sorted(path for part in self.parts for path in self.files_of(part))
            for number, document in enumerate(self.documents(path))
        }

    @cached_property
    def objects(self) -> Mapping[str, Object]:
        """The applied objects by identity, without ConfigMaps, which are in `flags`."""
        return {name: found for name, (found, *_) in self._places.items() if found["kind"] != "ConfigMap"}

    @cached_property
    def others(self) -> frozenset[str]:
        """The identities of objects that people apply by hand (seeds) or create by a flag (autoCreate)."""
        seeds = (each for path in self.texts if path.startswith(SEEDS) for each in self.documents(path))
        key = ("ipam", "operator", "autoCreateCiliumPodIPPools")
        made = (member(each, *key) for each in self.documents(VALUES))
        return frozenset(
            (*map(identity, seeds), *(f"CiliumPodIPPool {name}" for some in made for name in some or ()))
        )

    def nodes_of(self, shards: Collection[str]) -> set[str]:
        """Return the nodes whose CiliumNodes belong to these parts, including those only in a seed."""
        found = [document for part in shards for document in self.objects_of(part)]
        for path in {f"{SEEDS}{part.partition('/')[2]}.yaml" for part in shards} & self.texts.keys():
            found += self.documents(path)
        return {document["metadata"]["name"] for document in found if document["kind"] == "CiliumNode"}

    def at(self, name: str) -> Span:
        """Return the place of an object by its identity; the folder, if it does not exist. O(file)."""
        if name not in self._places:
            return Span(self.shown)
        _, path, number = self._places[name]
        text = self.texts[path]
        starts = [0, *(found.end() for found in _SEPARATOR.finditer(text) if found.start())]
        line = text.count(b"\n", 0, starts[number]) + 1 if number < len(starts) else 0
        return self.span(path, line)

    # Objects that are applied, also those of seeds, by their lines

    def found(self, paths: Iterable[str]) -> dict[str, RenderedObject]:
        """Return the objects in these files, by identity."""
        return _found(self._cut(paths))

    def lost(self, after: Rendered, paths: Collection[str]) -> dict[str, RenderedObject]:
        """Return the objects that are in these files here, and not in these files of `after`.
        A document that both have is not searched: in a changed shard nearly all objects stay.
        """
        old, new = (dict.fromkeys(tree._cut(paths)) for tree in (self, after))  # noqa: SLF001 - of this class
        left = _found(text for text in old if text not in new)
        kept = (text for text in new if text in old)  # a tree may have an object twice
        for some in ((text for text in new if text not in old), kept):
            for name in _found(some) if left else ():
                left.pop(name, None)
        return left

    def _cut(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the texts of the documents in those of some files that are applied."""
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name in {KUSTOMIZATION, "helm-values.yaml"} or folder in {*NOT_APPLIED, "renumber"}:
                continue
            if path in self.texts and (path not in {FLAGS, MASQ_AGENT} or path in self.files_of(FIRST)):
                yield from self.texts[path].decode(errors="replace").split(_BETWEEN)


def identity(document: Object) -> str:
    """Return kind, namespace and name: `CiliumNode n1`, `ConfigMap kube-system cilium-config`."""
    metadata = document.get("metadata") or {}
    parts = (document.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return " ".join(str(part) for part in parts if part)


def _found(texts: Iterable[str]) -> dict[str, RenderedObject]:
    """Return the objects in texts of documents, by identity. Names are plain or in double quotes."""

    def scalar(text: str) -> str:
        try:
            return str(json.loads(text)) if text.startswith('"') else text
        except ValueError:
            return text

    found = {}
    for text in texts:
        kind, name, space = (pattern.search(text) for pattern in (_KIND, _NAME, _NAMESPACE))
        if kind and name:
            metadata = {"namespace": scalar(space[1]) if space else "", "name": scalar(name[1])}
            key = identity({"kind": kind[1], "metadata": metadata})
            found[key] = RenderedObject(kind[1], metadata["name"], key, text.strip("\n"))
    return found
