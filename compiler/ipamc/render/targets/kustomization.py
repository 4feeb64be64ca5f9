"""Kustomizations: one a folder, so that each shard builds and applies alone, and the root, which is all of them in order.

`sortOptions: fifo` keeps that order: kustomize's own would put CiliumNodes before CiliumPodIPPools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.render.targets.context import File

TEMPLATE = "kustomization.yaml.j2"

ALWAYS = "cilium"
"""The folder that is there even with nothing to apply: then its kustomization builds to nothing, with exit code 0."""


def files(others: Iterable[File]) -> Iterator[File]:
    """Yield the kustomization of the root and of each folder with files to apply. `others` come in the order in which they are to be applied."""
    folders: dict[str, list[str]] = {ALWAYS: []}
    for each in others:
        if each.applied:
            folder, _, name = each.path.rpartition("/")
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
