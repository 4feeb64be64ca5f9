"""Clusters made of plain data, for laws and benchmarks: documents in, a compilation out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ipamc.lock.consent import parse_consent
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.workspace.disk import assets

Document = dict[str, Any]
SCHEMAS = assets("schemas")
TEMPLATES = assets("templates")
RUNBOOKS = assets("templates/runbooks")


def cluster(mode: str = "cluster-pool", *, version: str = "1.18", **spec: Any) -> Document:
    """Make a Cluster document; `ipam` and `cilium` fields are merged in."""
    cilium = {"version": version, "managedBy": "helm", **spec.pop("cilium", {})}
    ipam = {"mode": mode, **spec.pop("ipam", {})}
    return {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "fleet"},
        "spec": {"cilium": cilium, "ipam": ipam, **spec},
    }


def pool(name: str, **spec: Any) -> Document:
    """Make a native IPPool document."""
    return {"apiVersion": "ipamc/v1alpha1", "kind": "IPPool", "metadata": {"name": name}, "spec": spec}


def inventory(nodes: Iterable[Mapping[str, Any]]) -> Document:
    """Make a NodeInventory document."""
    return {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": [dict(node) for node in nodes]}


def assertions(*entries: Mapping[str, Any]) -> Document:
    """Make a Tests document."""
    return {"apiVersion": "ipamc/v1alpha1", "kind": "Tests", "tests": [dict(entry) for entry in entries]}


def as_json(documents: Sequence[Document]) -> dict[str, bytes]:
    """Give each document a file of its own, in the order given."""
    return {
        f"clusters/fleet/{index:04d}.json": json.dumps(document).encode()
        for index, document in enumerate(documents)
    }


def compiled(
    sources: Mapping[str, bytes],
    lock: str | None = None,
    *,
    today: str = "2026-11-21",
    locked: bool = False,
    **consent: Any,
) -> Compilation:
    """Compile sources against a lock, with options of `ipamc lock`; raises Refused."""
    return compile_cluster(
        Inputs(
            name="fleet",
            folder="clusters/fleet",
            sources=sources,
            lock_path="clusters/fleet/ipam.lock",
            lock=lock.encode() if lock is not None else None,
            schemas=SCHEMAS,
            templates=TEMPLATES,
            consent=parse_consent(**consent),
            today=today,
            locked=locked,
        ),
    )
