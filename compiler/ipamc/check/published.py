"""Rules about what an earlier compile rendered and Cilium cannot change any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ipamc.check.multi_pool import first_and_further, mask_size_changed
from ipamc.check.pods import check_pods_and_nodes
from ipamc.model.cidr import BITS, Block, readable_blocks
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.lock import Lock
from ipamc.model.plan import Want
from ipamc.model.pool_ranges import Published, PublishedPool
from ipamc.model.pool_words import FLAG_FIELDS
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents

POOLS = "cilium/ippools.yaml"
FLAGS = "cilium/configmap.yaml"
VALUES = "cilium/helm-values.yaml"
ROOT = "kustomization.yaml"
BINDING = (POOLS, FLAGS, VALUES, ROOT)
"""Files below `rendered/` with settings that a later compile cannot change."""

OWN_POOLS = re.compile(r"pools/[^/]+/ippools\.yaml").fullmatch
"""Tells the files below `rendered/` with the CiliumPodIPPools of single nodes."""
_OWN = re.compile(rb"^  name: \"?([^\s.\"]+)\.", re.MULTILINE)

_AUTO_CREATED = re.compile(r"(?:^|,)([^=,;:]+)=([^=]*)(?=,[^=,;:]+=|$)")
_FIELD = re.compile(r"ipv([46])-(cidrs|mask-size):([^;]*)")
_SIZE = re.compile(r"[0-9]{1,3}").fullmatch


def read_published(files: Mapping[str, bytes], folder: str) -> Published:
    """Read what was rendered below `folder`. A file that cannot be read counts as missing."""
    pools = {pool.name: pool for pool in (*_flagged(files, folder), *_manifests(files, folder))}
    of_nodes = any(
        str(resource).startswith("pools/")
        for document in _documents(files, ROOT)
        for resource in _items(document, "resources")
    )
    flags = [document for document in _documents(files, FLAGS) if _member(document, "data")]
    multi_pool = any(_member(document, "data", "ipam") == str(Mode.MULTI_POOL) for document in flags)
    return Published(
        pools=pools,
        of_nodes=Span(f"{folder}/{ROOT}") if of_nodes else None,
        own_allowed=_own_allowed(files, folder) if of_nodes else {},
        pools_lost=Span(f"{folder}/{POOLS}") if multi_pool and not _documents(files, POOLS) else None,
    )


def _own_allowed(files: Mapping[str, bytes], folder: str) -> dict[str, tuple[Span, frozenset[str]]]:
    """Return by pool a file with a CiliumPodIPPool of one of its nodes, and what that allows.

    Its nodes' pools are alike, and there are thousands, so the text is searched, and not parsed.
    """
    found: dict[str, tuple[Span, frozenset[str]]] = {}
    for path in sorted(filter(OWN_POOLS, files)):
        for document in files[path].split(b"\n---\n"):
            if named := _OWN.search(document):
                allows = frozenset(
                    field for field in FLAG_FIELDS if f"\n  {field}: true".encode() in document
                )
                found.setdefault(named[1].decode(errors="replace"), (Span(f"{folder}/{path}"), allows))
    return found


def _manifests(files: Mapping[str, bytes], folder: str) -> Iterator[PublishedPool]:
    for document in _documents(files, POOLS):
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
                at=Span(f"{folder}/{POOLS}"),
                by_flag=False,
                cidrs=cidrs,
                masks=masks,
                allowed=frozenset(field for field in FLAG_FIELDS if _member(document, "spec", field) is True),
            )


def _flagged(files: Mapping[str, bytes], folder: str) -> Iterator[PublishedPool]:
    for document in _documents(files, FLAGS):
        flag = _member(document, "data", "auto-create-cilium-pod-ip-pools")
        for name, spec in _AUTO_CREATED.findall(flag) if isinstance(flag, str) else ():
            found = {(int(family), field): value for family, field, value in _FIELD.findall(spec)}
            blocks = {family: _blocks(found.get((family, "cidrs"), "").split(",")) for family in BITS}
            sizes = {family: found.get((family, "mask-size"), "") for family in BITS}
            yield PublishedPool(
                name=name,
                at=Span(f"{folder}/{FLAGS}"),
                by_flag=True,
                cidrs={family: some for family, some in blocks.items() if some},
                masks={family: int(size) for family, size in sizes.items() if _SIZE(size)},
                allowed=frozenset(
                    field for field, word in FLAG_FIELDS.items() if f"{word}:true" in spec.split(";")
                ),
            )


def _blocks(texts: Iterable[object]) -> tuple[Block, ...]:
    """Return the CIDRs of a list, each once. One that cannot be read is left out."""
    return tuple(dict.fromkeys(readable_blocks(texts)))


def check_published(
    cluster: Cluster, wants: Sequence[Want], shared: frozenset[str], lock: Lock, published: Published
) -> Iterator[Diagnostic]:
    """Yield what pools cannot be together, and changes that a published one does not survive.

    `shared` are the pools that nodes share.
    """
    if cluster.mode is not Mode.MULTI_POOL:
        return
    yield from first_and_further(cluster, wants)
    yield from check_pods_and_nodes(cluster, wants, shared)
    changed = list(_roles_changed(cluster, shared, lock, published))
    yield from changed
    if not changed:
        yield from _masks_changed(cluster, shared, published)
        yield from allowed_changed(cluster, shared, published)


def _masks_changed(cluster: Cluster, shared: frozenset[str], published: Published) -> Iterator[Diagnostic]:
    for pool in cluster.pools:
        if pool.name not in shared or pool.name not in published.pools:
            continue
        before = published.pools[pool.name]
        for family, part in sorted(pool.families.items()):
            size = before.masks.get(family, part.block_size)
            if size != part.block_size:
                also = Related(before.at, f"rendered with a maskSize of {size}")
                yield mask_size_changed(pool, family, size, part.block_size, also)


def allowed_changed(cluster: Cluster, shared: frozenset[str], published: Published) -> Iterator[Diagnostic]:
    """IPC0566: `allowFirstIP` and `allowLastIP` stay as they were published.

    It looks at the CiliumPodIPPools that were rendered before; one that was made by a Cilium before 1.20 is
    as good as false. The same goes for the pools of single nodes (`pinning: node`).

    Why: the fields cannot change: the apiserver refuses the pool (`allowFirstIP is immutable`), and with it
    the rest of the apply.

    Run: set the field again as it was. Write a new pool with it over free addresses, such as `ipamc suggest
    pool CLUSTER --size 20` finds, and set `disabled: true` on this one: nodes keep what they have. Then
    `ipamc compile CLUSTER`.
    """
    before = dict(published.own_allowed)
    before |= {name: (pool.at, pool.allowed) for name, pool in published.pools.items() if name in shared}
    for pool in cluster.pools:
        at, allowed = before.get(pool.name, (None, frozenset[str]()))
        for name, allows in pool.allows.items() if at else ():
            if allows is not (name in allowed):
                yield error(
                    "IPC0566",
                    pool.at / "spec" / name if allows else pool.at / "metadata" / "name",
                    f'{name} of pool "{pool.name}" would change to {str(allows).lower()}, but it is immutable',
                    also=[Related(at, "published here")] if at else (),
                    help=f"set {name}: {str(not allows).lower()} again, and write a new pool",
                )


def _roles_changed(
    cluster: Cluster, shared: frozenset[str], lock: Lock, published: Published
) -> Iterator[Diagnostic]:
    """Yield, for each pool that was shared and is not, or the other way round, one block that has its name."""
    held = {line.pool: line for line in reversed(lock.lines) if line.in_use}
    shown = dict(_shown_otherwise(cluster, shared))
    of_nodes = published.of_nodes
    for pool in cluster.pools:
        before, line = published.pools.get(pool.name), held.get(pool.name)
        if line and pool.name in shared and of_nodes and not before:
            label = "pools for each node were rendered here"
            yield pinning_changed(cluster, pool, line.block, line.node, Related(of_nodes, label), published)
        elif line and pool.name not in shared and before:
            also = Related(before.at, "shared pools were rendered here")
            yield pinning_changed(cluster, pool, line.block, line.node, also, published)
        elif pool.name in shown:
            seen, block, name = shown[pool.name]
            also = Related(seen.at, f'it shows the block in pool "{name}"')
            yield pinning_changed(cluster, pool, block, seen.name, also, published)


def _shown_otherwise(
    cluster: Cluster, shared: frozenset[str]
) -> Iterator[tuple[str, tuple[CiliumNode, Block, str]]]:
    """Yield (pool, (CiliumNode, block, name)) of blocks under the name that the pool does not have now."""
    known = {pool.name for pool in cluster.pools}
    for seen in cluster.cilium_nodes:
        for block, name in seen.allocated:
            pool = name.removesuffix(f".{seen.name}")
            if pool in known and (pool in shared) == (pool != name):
                yield pool, (seen, block, name)


def pinning_changed(
    cluster: Cluster, pool: Pool, block: Block, node: str, also: Related, published: Published
) -> Diagnostic:
    """IPC0536: a pool stays shared, or divided among its nodes, while nodes hold blocks of it.

    With `pinning: node` the blocks of a node's first candidate belong to a pool of its own, `POOL.NODE`;
    every other pool is shared.

    Why: running agents keep their blocks under the name of their pool. Under another name the operator does
    not know that they are taken: with a shared pool and one of a node over the same range it gave one block
    to two nodes.

    Run: set `pinning` again as it was, and the order of the pools (`priority`, `nodeSelector`). Choose both
    when you start a cluster. To change them all the same, drain the nodes, `kubectl delete ciliumnode NODE`
    for each, `git rm -r clusters/CLUSTER/rendered`, commit that, and `ipamc compile CLUSTER`.
    """
    if cluster.own_pools and published.of_nodes:
        was, place = (
            ("divided among its nodes", "the first candidate of all its nodes")
            if also.at == published.of_nodes
            else ("shared by its nodes", "no node's first candidate")
        )
        return error(
            "IPC0536",
            pool.at / "metadata" / "name",
            f'pool "{pool.name}" was {was} and would not be, which renames the pool of {block}, which node {node} holds',
            also=[also],
            help=f"change priority or nodeSelector so that it is {place}",
        )
    return error(
        "IPC0536",
        cluster.field("spec", "ipam", "pinning"),
        f"pinning: {cluster.pinning} would rename the pool of {block}, which node {node} holds",
        also=[also],
        help=f"set pinning: {'pool' if cluster.own_pools else 'node'} again",
    )


def _documents(files: Mapping[str, bytes], path: str) -> list[Any]:
    """Return the objects of a rendered file; none if it is damaged: it is written again."""
    try:
        return [document.value for document in yaml_documents(path, files.get(path, b"").decode())]
    except (Unreadable, UnicodeDecodeError):
        return []


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _items(value: Any, *keys: str) -> list[Any]:
    """Return a list that a document has there; an empty one for anything else."""
    found = _member(value, *keys)
    return found if isinstance(found, list) else []
