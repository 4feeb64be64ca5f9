"""`calicoctl datastore migrate export`: what users of Calico with etcd have, where `kubectl` shows no blocks.

It prints the lists of `calicoctl get -o yaml`, the ClusterInformation as JSON, and Calico's IPAM as JSON, with
lines of `===` between them (calicoctl/commands/datastore/migrate/export.go, migrateipam.go). Names of nodes
are Kubernetes' ones already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

PARTS = re.compile(rb"^===\s*$", re.MULTILINE)
"""What stands between the parts."""
IPAM = 2
"""The number of the part with Calico's IPAM, the last one; from 0."""

_AFFINITY = re.compile(r"/?calico/ipam/v2/([a-z]+)/([^/]+)/ipv[46]/block/([^/]+)-(\d+)").fullmatch
"""The key of an affinity: its type, its host, its CIDR (libcalico-go, lib/backend/model/block_affinity.go)."""


class Pair(Struct, rename={"key": "Key", "value": "Value"}):
    """A key of etcd, with its value."""

    key: str
    value: dict[str, Any] | None = None


class Export(Struct):
    """Calico's IPAM, as far as ipamc reads it."""

    block_affinities: list[Pair] = []
    blocks: list[Pair] = []
    config: Pair | None = None


def exported(export: Export) -> Iterator[dict[str, Any]]:
    """Yield the objects of an export as `kubectl` prints those of a cluster without etcd."""
    for pair in export.blocks:
        yield _object("IPAMBlock", pair.key.rpartition("/")[2], pair.value or {})
    for pair in export.block_affinities:
        if found := _AFFINITY(pair.key):
            kind, host, address, prefix = found.groups()
            spec = {**(pair.value or {}), "type": kind, "node": host, "cidr": f"{address}/{prefix}"}
            yield _object("BlockAffinity", f"{host}-{address}-{prefix}", spec)
    if export.config:
        yield _object("IPAMConfig", "default", _config(export.config.value or {}))


def _config(value: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the names of the custom resource; etcd leaves out what is false."""
    words = {"strict_affinity": "strictAffinity", "auto_allocate_blocks": "autoAllocateBlocks"}
    absent = dict.fromkeys(words.values(), False)
    return absent | {words.get(key, key): member for key, member in value.items()}


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
