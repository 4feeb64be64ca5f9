"""Kustomizations: one for each folder, so that each shard builds alone, and the root with all in order.

`sortOptions: fifo` keeps that order; kustomize's own order puts CiliumNodes before CiliumPodIPPools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.render.targets.context import File

TEMPLATE = "kustomization.yaml.j2"

ALWAYS = "cilium"
"""A folder that exists even with nothing to apply; then it builds to nothing, with exit code 0."""


def files(others: Iterable[File]) -> Iterator[File]:
    """Yield the kustomization of the root and of each folder with files to apply.

    `others` are in the order of application.
    """
    folders: dict[str, list[str]] = {ALWAYS: []}
    for file in others:
        if file.applied:
            folder, _, name = file.path.rpartition("/")
            folders.setdefault(folder, []).append(name)
    tops = {folder.partition("/")[0]: index for index, folder in reversed(list(enumerate(folders)))}
    yield _file("", sorted(folders, key=lambda folder: (tops[folder.partition("/")[0]], folder)))
    for folder, names in sorted(folders.items()):
        yield _file(f"{folder}/", names)


def _file(folder: str, resources: Iterable[str]) -> File:
    values = {
        "api": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "sort": "fifo",
        "resources": tuple(resources),
        "patches": (),
    }
    return File(f"{folder}kustomization.yaml", TEMPLATE, values)
