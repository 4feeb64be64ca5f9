"""What an earlier compile published and the cluster cannot take back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ipamc.check.multi_pool import mask_size_changed
from ipamc.diagnostics import Diagnostic, Related, Span
from ipamc.model import Cluster, Mode
from ipamc.read.document import Unreadable
from ipamc.read.yaml_documents import yaml_documents

POOLS = "cilium/ippools.yaml"
FLAGS = "cilium/configmap.yaml"

_AUTO_CREATED = re.compile(r"(?:^|,)([^=,;:]+)=([^=]*)(?=,[^=,;:]+=|$)")


def check_published(cluster: Cluster, files: Mapping[str, bytes], folder: str) -> Iterator[Diagnostic]:
    """Yield pools whose maskSize below `folder` differs from today's. Text that cannot be read binds nobody: it is written anew."""
    if cluster.mode is not Mode.MULTI_POOL or cluster.pinning == "node":
        return
    masks = published_masks(files)
    for pool in cluster.pools:
        for family, part in sorted(pool.families.items()):
            before, path = masks.get((pool.name, family), (part.block_size, ""))
            if before != part.block_size:
                yield mask_size_changed(pool, family, before, part.block_size, Related(Span(f"{folder}/{path}"), f"rendered with a maskSize of {before}"))


def published_masks(files: Mapping[str, bytes]) -> dict[tuple[str, int], tuple[int, str]]:
    """Give the mask size and the file by pool and family, of CiliumPodIPPools and of the auto-create flag."""
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
    """Give the objects of a rendered file; none if it was damaged: it is about to be written anew."""
    try:
        return [each.value for each in yaml_documents(path, files.get(path, b"").decode())]
    except (Unreadable, UnicodeDecodeError):
        return []


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
