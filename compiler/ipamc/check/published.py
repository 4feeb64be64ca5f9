"""Rules about what an earlier compile rendered and Cilium cannot change any more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ipamc.check.multi_pool import mask_size_changed
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.lock import Line, Lock, State
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents

POOLS = "cilium/ippools.yaml"
FLAGS = "cilium/configmap.yaml"
VALUES = "cilium/helm-values.yaml"
ROOT = "kustomization.yaml"
BINDING = (POOLS, FLAGS, VALUES, ROOT)
"""Files below `rendered/` with settings that a later compile cannot change."""

_AUTO_CREATED = re.compile(r"(?:^|,)([^=,;:]+)=([^=]*)(?=,[^=,;:]+=|$)")


def check_published(
    cluster: Cluster, lock: Lock, files: Mapping[str, bytes], folder: str
) -> Iterator[Diagnostic]:
    """Yield changes of what was rendered below `folder` and cannot change.

    A file that cannot be read is ignored: it is written again.
    """
    if cluster.mode is not Mode.MULTI_POOL:
        return
    masks = published_masks(files)
    shards = [
        resource
        for document in _documents(files, ROOT)
        for resource in _member(document, "resources") or []
        if str(resource).startswith("pools/")
    ]
    held = next((line for line in lock.lines if line.state is State.HELD), None)
    if held and cluster.own_pools and masks and not shards:
        yield pinning_changed(
            cluster,
            held,
            Span(f"{folder}/{min(path for _, path in masks.values())}"),
            "shared pools were rendered here",
        )
    elif held and cluster.shared_pools and shards:
        yield pinning_changed(
            cluster, held, Span(f"{folder}/{ROOT}"), "pools for each node were rendered here"
        )
    elif cluster.shared_pools:
        yield from _masks_changed(cluster, masks, folder)


def _masks_changed(
    cluster: Cluster, masks: Mapping[tuple[str, int], tuple[int, str]], folder: str
) -> Iterator[Diagnostic]:
    for pool in cluster.pools:
        for family, part in sorted(pool.families.items()):
            before, path = masks.get((pool.name, family), (part.block_size, ""))
            if before != part.block_size:
                also = Related(Span(f"{folder}/{path}"), f"rendered with a maskSize of {before}")
                yield mask_size_changed(pool, family, before, part.block_size, also)


def pinning_changed(cluster: Cluster, held: Line, at: Span, label: str) -> Diagnostic:
    """IPC0536: `pinning` does not change to or from `node` while nodes hold blocks.

    With `pinning: node` a node's blocks belong to pools of its own, `<pool>.<node>`; otherwise to shared
    pools. Running agents keep them under the name of their pool; under another name the operator would give
    the same addresses to other nodes. Choose `pinning` when you start a cluster, or drain all nodes and
    delete `rendered/` and their CiliumNodes.
    """
    return error(
        "IPC0536",
        cluster.field("spec", "ipam", "pinning"),
        f"pinning: {cluster.pinning} would rename the pool of {held.block}, which node {held.node} holds",
        also=[Related(at, label)],
        help=f"set pinning: {'pool' if cluster.own_pools else 'node'} again",
    )


def published_masks(files: Mapping[str, bytes]) -> dict[tuple[str, int], tuple[int, str]]:
    """Return mask size and file, by pool and family, of CiliumPodIPPools and the auto-create flag."""
    masks: dict[tuple[str, int], tuple[int, str]] = {}
    for document in _documents(files, POOLS):
        name = _member(document, "metadata", "name")
        for family in (4, 6):
            size = _member(document, "spec", f"ipv{family}", "maskSize")
            if isinstance(name, str) and isinstance(size, int):
                masks[name, family] = size, POOLS
    for document in _documents(files, FLAGS):
        flag = _member(document, "data", "auto-create-cilium-pod-ip-pools")
        for name, spec in _AUTO_CREATED.findall(flag) if isinstance(flag, str) else ():
            for family, size in re.findall(r"ipv([46])-mask-size:(\d+)", spec):
                masks[name, int(family)] = int(size), FLAGS
    return masks


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
