"""What is rendered for a cluster at one moment, from the texts of `rendered/`: all that is asked about it.

Nothing is parsed before it is asked for, and a file once. People may have edited the files: what cannot be read counts as
missing, because it is written again. An apply and an audit are not as lenient: `workspace.rendered.Manifests`.

Where thousands of objects are alike, the text is searched, and not parsed: 20 shards would take a second. Every file is
in the style of `render.yaml`: a line `---` between documents, `kind:` at the margin, the name of the object two spaces
in. An object that was edited into another style is not found, and then no plan speaks of it; `ipamc compile --check`
finds the edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

from msgspec import Struct, field

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import BITS, Block, CidrError, parse_block, readable_blocks
from ipamc.model.cilium.operator_list import BYSTANDER, Lists, listed
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Span
from ipamc.model.pool_words import FLAG_FIELDS
from ipamc.read.parts import (
    FIRST,
    FLAGS,
    KINDS,
    KUSTOMIZATION,
    NODES,
    OWN_POOLS,
    POOLS,
    SEEDS,
    VALUES,
    built,
)
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents

Object = Mapping[str, Any]

_BETWEEN = "\n---\n"
_SEPARATOR = re.compile(rb"^---\s*\n", re.MULTILINE)
_KIND = re.compile(r"^kind: (\S+)$", re.MULTILINE)
_NAME = re.compile(r"^  name: (.+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"^  namespace: (.+)$", re.MULTILINE)
_OF_NODE = re.compile(rb"^  name: \"?([^\s.\"]+)\.", re.MULTILINE)
_MODE = re.compile(rb'^  ipam: "?([a-z-]+)"?$', re.MULTILINE)
_CIDR = re.compile(rb"[0-9a-fA-F.:]+/[0-9]{1,3}")
_AUTO_CREATED = re.compile(r"(?:^|,)([^=,;:]+)=([^=]*)(?=,[^=,;:]+=|$)")
_FIELD = re.compile(r"ipv([46])-(cidrs|mask-size):([^;]*)")
_SIZE = re.compile(r"[0-9]{1,3}").fullmatch


class PublishedPool(Struct, frozen=True, kw_only=True):
    """A shared CiliumPodIPPool that an earlier compile rendered."""

    name: str
    at: Span
    """The file."""
    by_flag: bool
    """The operator creates it by its flag, and never changes it; there is no manifest."""
    cidrs: Lists
    """By family, in the order of the file."""
    masks: Mapping[int, int]
    """The maskSize by family."""
    allowed: frozenset[str] = frozenset()
    """Of `allowFirstIP` and `allowLastIP` those that are true."""


class OperatorLists(Struct, frozen=True, kw_only=True):
    """What Cilium's operator was told that it may give out, in cluster-pool mode."""

    lists: Lists
    """By family: the CIDRs, by address."""
    masks: Mapping[int, int]
    at: Span


class Assumed(Struct, frozen=True, kw_only=True):
    """The flags as they are rendered."""

    namespace: str
    data: Mapping[str, str]
    """The keys of cilium-config."""
    bystander: bool
    """The operator gets --ipam=kubernetes."""
    applied: bool
    """The ConfigMap is part of what ipamc applies (managedBy: none)."""

    @property
    def adopts(self) -> bool:
        """The operator hands out blocks of its list, beside those that ipamc gives."""
        return self.data.get("ipam") == "cluster-pool" and not self.bystander

    @property
    def operator_list(self) -> list[Block]:
        """What the operator may give in cluster-pool mode, of both families."""
        return [block for family in BITS for block in listed(self.data, family)]


class Found(Struct, frozen=True):
    """An object that was found by its lines."""

    kind: str
    name: str
    identity: str
    """As `identity` returns it."""
    text: str

    @property
    def value(self) -> Any:
        """Return it parsed; None where it cannot be read."""
        try:
            return next((document.value for document in yaml_documents(self.identity, self.text)), None)
        except Unreadable:
            return None


class Rendered(Struct, frozen=True, dict=True):
    """What is rendered at one moment: on the disk, in a commit, or by a compile of this run."""

    texts: Mapping[str, bytes] = {}
    """The files, by path below `rendered/`: all, or those that are asked about."""
    shown: str = "rendered"
    """The folder as the user would type it, with the revision before it."""
    revision: str = ""
    """As it is shown; "" for the disk."""
    parsed: dict[bytes, list[Any]] = field(default_factory=dict)
    """The documents of files by their bytes. Two moments that share it parse equal files once."""

    def span(self, path: str) -> Span:
        """Return the place of a file."""
        return Span(f"{self.shown}/{path}")

    def parse(self, path: str) -> list[Any]:
        """Return the documents of a file. Raises Unreadable, UnicodeDecodeError, KeyError."""
        text = self.texts[path]
        if text not in self.parsed:
            found = yaml_documents(f"{self.shown}/{path}", text.decode())
            self.parsed[text] = [document.value for document in found]
        return self.parsed[text]

    def documents(self, path: str) -> list[Any]:
        """Return the documents of a file; none where it is damaged or missing."""
        try:
            return self.parse(path)
        except (Unreadable, UnicodeDecodeError, KeyError):
            return []

    # Flags

    @property
    def mode(self) -> str:
        """The mode that was rendered, also where the file is damaged otherwise; "" where it does not say."""
        found = _MODE.search(self.texts.get(FLAGS, b""))
        return found[1].decode() if found else ""

    @cached_property
    def flags(self) -> Assumed:
        """The flags that the compile assumed, as they are rendered for review."""
        found: Any = next(
            (each for each in self.documents(FLAGS) if isinstance(_member(each, "data"), dict)), None
        )
        return Assumed(
            namespace=str(_member(found, "metadata", "namespace") or ""),
            data={str(key): str(value) for key, value in (_member(found, "data") or {}).items()},
            bystander=any(BYSTANDER in _items(each, "operator", "extraArgs") for each in self._values),
            applied=FLAGS in self.files_of(FIRST),
        )

    @property
    def _values(self) -> list[Any]:
        return self.documents(VALUES)

    @cached_property
    def operator_lists(self) -> OperatorLists | None:
        """What the operator was told that it may give out; None if it was not to, or where that cannot be read."""
        if self.flags.bystander:
            return None
        try:
            (document,) = self.documents(FLAGS)
            data = document["data"]
            told = [family for family in BITS if f"cluster-pool-ipv{family}-cidr" in data]
            masks = {family: int(data[f"cluster-pool-ipv{family}-mask-size"]) for family in told}
            lists = {
                family: tuple(
                    block
                    for block in outermost(map(parse_block, data[f"cluster-pool-ipv{family}-cidr"].split()))
                    if block.prefix <= masks[family]
                )
                for family in told
            }
        except (CidrError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return OperatorLists(lists=lists, masks=masks, at=self.span(FLAGS)) if lists else None

    # Pools of multi-pool mode

    @cached_property
    def pools(self) -> Mapping[str, PublishedPool]:
        """The CiliumPodIPPools that nodes share, by name."""
        return {pool.name: pool for pool in (*self._flagged(), *self._manifests())}

    def _manifests(self) -> Iterator[PublishedPool]:
        for document in self.documents(POOLS):
            name = _member(document, "metadata", "name")
            cidrs, masks = {}, {}
            for family in BITS:
                size = _member(document, "spec", f"ipv{family}", "maskSize")
                blocks = _blocks(_items(document, "spec", f"ipv{family}", "cidrs"))
                if blocks and isinstance(size, int) and 0 < size <= BITS[family]:
                    masks[family], cidrs[family] = size, blocks
            if isinstance(name, str):
                yield PublishedPool(
                    name=name,
                    at=self.span(POOLS),
                    by_flag=False,
                    cidrs=cidrs,
                    masks=masks,
                    allowed=frozenset(
                        name for name in FLAG_FIELDS if _member(document, "spec", name) is True
                    ),
                )

    def _flagged(self) -> Iterator[PublishedPool]:
        for document in self.documents(FLAGS):
            flag = _member(document, "data", "auto-create-cilium-pod-ip-pools")
            for name, spec in _AUTO_CREATED.findall(flag) if isinstance(flag, str) else ():
                found = {(int(family), word): value for family, word, value in _FIELD.findall(spec)}
                blocks = {family: _blocks(found.get((family, "cidrs"), "").split(",")) for family in BITS}
                sizes = {family: found.get((family, "mask-size"), "") for family in BITS}
                yield PublishedPool(
                    name=name,
                    at=self.span(FLAGS),
                    by_flag=True,
                    cidrs={family: some for family, some in blocks.items() if some},
                    masks={family: int(size) for family, size in sizes.items() if _SIZE(size)},
                    allowed=frozenset(
                        name for name, word in FLAG_FIELDS.items() if f"{word}:true" in spec.split(";")
                    ),
                )

    @property
    def pools_lost(self) -> Span | None:
        """The file of the shared pools, where the flags are there without it."""
        flags = self.documents(FLAGS)
        lost = any(_member(each, "data", "ipam") == Mode.MULTI_POOL for each in flags)
        return self.span(POOLS) if lost and not self.documents(POOLS) else None

    @cached_property
    def of_nodes(self) -> Span | None:
        """The file that lists the CiliumPodIPPools of single nodes; None if there are none."""
        listed = (name for each in self.documents(KUSTOMIZATION) for name in _items(each, "resources"))
        return self.span(KUSTOMIZATION) if any(str(name).startswith("pools/") for name in listed) else None

    @cached_property
    def own_allowed(self) -> Mapping[str, tuple[Span, frozenset[str]]]:
        """By pool a file with the CiliumPodIPPool of one of its nodes, and what of FLAG_FIELDS that allows.

        Its nodes' pools are alike, and there are thousands, so the text is searched.
        """
        found: dict[str, tuple[Span, frozenset[str]]] = {}
        for path in sorted(filter(OWN_POOLS, self.texts)) if self.of_nodes else ():
            for document in self.texts[path].split(_BETWEEN.encode()):
                if named := _OF_NODE.search(document):
                    allows = frozenset(
                        name for name in FLAG_FIELDS if f"\n  {name}: true".encode() in document
                    )
                    found.setdefault(named[1].decode(errors="replace"), (self.span(path), allows))
        return found

    # Nodes

    @cached_property
    def uids(self) -> Mapping[str, str]:
        """The uid that each Node was rendered with, by name. O(rendered Nodes), parsed."""
        found = (
            _member(document, "metadata")
            for path in self.texts
            if path.startswith(NODES)
            for document in self.documents(path)
        )
        pairs = ((_member(each, "name"), _member(each, "uid")) for each in found)
        return {name: uid for name, uid in pairs if isinstance(name, str) and isinstance(uid, str)}

    @cached_property
    def blocks(self) -> frozenset[Block]:
        """The blocks that nodes are given: all CIDRs in shards. O(bytes)."""
        shards = (text for path, text in self.texts.items() if path.partition("/")[0] in KINDS)
        return frozenset(readable_blocks(found.decode() for text in shards for found in _CIDR.findall(text)))

    # Objects that are applied, parsed

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts, in the order in which they are applied."""
        return built(self.texts)

    @cached_property
    def _folders(self) -> Mapping[str, list[str]]:
        """The files with objects, by folder, each sorted."""
        found: dict[str, list[str]] = {}
        for path in sorted(self.texts):
            folder, _, name = path.rpartition("/")
            if name.endswith(".yaml") and name != KUSTOMIZATION:
                found.setdefault(folder, []).append(path)
        return found

    def files_of(self, part: str) -> list[str]:
        """Return the files of a part, which its kustomization must build.

        A shard consists of all its files; `cilium/` of those that its kustomization names, because flags may
        go to Helm or to another kustomization.
        """
        files = self._folders.get(part, [])
        if part != FIRST:
            return files
        named = [
            name for each in self.documents(f"{FIRST}/{KUSTOMIZATION}") for name in _items(each, "resources")
        ]
        return [path for path in files if path.removeprefix(f"{FIRST}/") in named]

    def objects_of(self, part: str) -> list[Any]:
        """Return the objects in the files of a part."""
        return [document for path in self.files_of(part) for document in self.documents(path)]

    @cached_property
    def _placed(self) -> Mapping[str, tuple[Object, str, int]]:
        return {
            identity(document): (document, path, number)
            for part in self.parts
            for path in self.files_of(part)
            for number, document in enumerate(self.documents(path))
        }

    @cached_property
    def objects(self) -> Mapping[str, Object]:
        """What is applied, by identity; without ConfigMaps, which are in `flags`."""
        return {name: found for name, (found, *_) in self._placed.items() if found["kind"] != "ConfigMap"}

    @cached_property
    def others(self) -> frozenset[str]:
        """The identities of what somebody applies by hand (seeds) or by a flag (autoCreate)."""
        seeds = (path for path in self.texts if path.startswith(SEEDS))
        made = (
            _member(each, "ipam", "operator", "autoCreateCiliumPodIPPools") or {} for each in self._values
        )
        return frozenset(
            (
                *(identity(document) for path in seeds for document in self.documents(path)),
                *(f"CiliumPodIPPool {name}" for name in chain.from_iterable(made)),
            )
        )

    @property
    def identities(self) -> set[str]:
        """All objects that somebody applies, ConfigMaps too."""
        return {*self._placed, *self.others}

    def nodes_of(self, shards: Iterable[str]) -> set[str]:
        """Return the nodes whose CiliumNodes belong to these parts, also those that are in a seed only."""
        found = [document for part in shards for document in self.objects_of(part)]
        for path in {f"{SEEDS}{part.partition('/')[2]}.yaml" for part in shards} & self.texts.keys():
            found += self.documents(path)
        return {document["metadata"]["name"] for document in found if document["kind"] == "CiliumNode"}

    def at(self, name: str) -> Span:
        """Return the place of an object by its identity; of what is not there, the folder. O(file)."""
        if name not in self._placed:
            return Span(self.shown)
        _, path, number = self._placed[name]
        text = self.texts[path]
        starts = [0, *(found.end() for found in _SEPARATOR.finditer(text) if found.start())]
        line = text.count(b"\n", 0, starts[number]) + 1 if number < len(starts) else 0
        return Span(f"{self.shown}/{path}", line, 1, 1) if line else self.span(path)

    # Objects that are applied, also those of seeds, by their lines

    def found(self, paths: Iterable[str]) -> dict[str, Found]:
        """Return the objects in these files, by identity."""
        return _by_identity(chain.from_iterable(map(self._texts_of, paths)))

    def lost(self, after: Rendered, paths: Iterable[str]) -> dict[str, Found]:
        """Return the objects of these files that are here, and nowhere in these files of what comes after.

        A document that a file has in both is not searched: of the objects in a shard that changes, nearly all
        stay.
        """
        gone, new, kept = [], [], []
        for path in paths:
            old, now = self._texts_of(path), after._texts_of(path)
            stays = frozenset(now).intersection(old)
            gone += [document for document in old if document not in stays]
            new += [document for document in now if document not in stays]
            kept.append(stays)
        left = _by_identity(gone)
        for some in (new, chain.from_iterable(kept)):  # a tree may have an object twice
            for name in _by_identity(some) if left else ():
                left.pop(name, None)
        return left

    def _texts_of(self, path: str) -> list[str]:
        """Return the texts of the objects in a file that somebody applies."""
        folder, _, name = path.rpartition("/")
        if name in {KUSTOMIZATION, "helm-values.yaml"} or folder in {f"{FIRST}/component", "renumber"}:
            return []
        if path not in self.texts or (path == FLAGS and not self.flags.applied):
            return []
        return self.texts[path].decode(errors="replace").split(_BETWEEN)


def identity(document: Object) -> str:
    """Return kind, namespace and name: `CiliumNode n1`, `ConfigMap kube-system cilium-config`."""
    metadata = document.get("metadata") or {}
    parts = (document.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return " ".join(str(part) for part in parts if part)


def _by_identity(texts: Iterable[str]) -> dict[str, Found]:
    return {found.identity: found for found in filter(None, map(_found, texts))}


def _found(text: str) -> Found | None:
    kind, name = _KIND.search(text), _NAME.search(text)
    if not (kind and name):
        return None
    space = _NAMESPACE.search(text)
    metadata = {"namespace": _scalar(space[1]) if space else "", "name": _scalar(name[1])}
    known = identity({"kind": kind[1], "metadata": metadata})
    return Found(kind[1], metadata["name"], known, text.strip("\n"))


def _scalar(text: str) -> str:
    """Return the text of a scalar, which is plain or in double quotes."""
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text


def _blocks(texts: Iterable[object]) -> tuple[Block, ...]:
    """Return the CIDRs of a list, each once. One that cannot be read is left out."""
    return tuple(dict.fromkeys(readable_blocks(texts)))


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _items(value: Any, *keys: str) -> list[Any]:
    """Return a list that a document has there; an empty one for anything else."""
    found = _member(value, *keys)
    return found if isinstance(found, list) else []
