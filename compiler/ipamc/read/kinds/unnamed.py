"""What a document without apiVersion or kind probably is: a kind whose head was lost, or another tool's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_HELM = frozenset(
    {"ipam", "operator", "hubble", "kubeProxyReplacement", "k8sServiceHost", "tunnelProtocol", "bpf", "cni"}
)
_KUSTOMIZE = frozenset({"resources", "patches", "components", "namePrefix", "configMapGenerator", "bases"})


def unnamed(
    value: Mapping[str, Any], names: Mapping[str, Any], kinds: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, way out) for what a document lacks of apiVersion and kind, or has as no text.

    `names` are the two, as they are or as its list has them; `kinds` are apiVersions by kind. The way out may be "".
    """
    version, kind = names["apiVersion"], names["kind"]
    if version is None and kind is None:
        yield (
            "kind",
            "the document has no apiVersion and no kind",
            _other_tool(value) or _head(_meant(value), kinds),
        )
        return
    for name, given in names.items():
        if isinstance(given, str):
            continue
        better = ""
        if name == "kind" and (meant := _meant(value)):
            better = f"write kind: {meant}"
        elif name == "apiVersion" and isinstance(kind, str) and kind in kinds:
            better = f"write apiVersion: {kinds[kind][0]}"
        yield name, f"{name} is not text" if given else f"the document has no {name}", better


def _other_tool(value: Mapping[str, Any]) -> str:
    keys = value.keys()
    if keys & _KUSTOMIZE and not keys & {"spec", "nodes"}:
        return "for kustomize, write apiVersion: kustomize.config.k8s.io/v1beta1 and kind: Kustomization: it is passed over then"
    if keys & _HELM and not keys & {"spec", "nodes", "metadata"}:
        return "if these are values of Helm, move the file out of the cluster's folder; those of ipamc come into rendered/cilium/helm-values.yaml"
    return ""


def _meant(value: Mapping[str, Any]) -> str:
    """Return the kind of ipamc's own of which a document has the fields; "" where it has none."""
    spec = value.get("spec")
    if isinstance(value.get("nodes"), list):
        return "NodeInventory"
    if isinstance(value.get("tests"), list):
        return "Tests"
    if isinstance(spec, Mapping) and ("cilium" in spec or "ipam" in spec):
        return "Cluster"
    return "IPPool" if isinstance(spec, Mapping) and ("ipv4" in spec or "ipv6" in spec) else ""


def _head(kind: str, kinds: Mapping[str, tuple[str, ...]]) -> str:
    return f"write apiVersion: {kinds[kind][0]} and kind: {kind}" if kind else ""
