"""Values of Cilium's chart, in place of the ConfigMap `cilium-config` that the chart makes of them.

The table is of templates/cilium-configmap.yaml, as Helm renders it in 1.11 to 1.20. What a key means is
decided where those of a dump are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from ipamc.model.cilium.flags import is_true, odd_values, same_value
from ipamc.model.cilium.operator_list import CONFIG, HELM
from ipamc.model.diagnostics import Diagnostic, Log, Place, Refused
from ipamc.model.dump import Dump, SeenObject, SeenPool
from ipamc.read.dump.kinds import read_object
from ipamc.read.dump.programs import texts_of, value_at
from ipamc.read.locate import locate
from ipamc.read.rules import other_value, unreadable, wrong_shape
from ipamc.read.syntax.document import Unreadable, member
from ipamc.read.syntax.text import decode
from ipamc.read.syntax.yaml import yaml_documents

_TABLE = """\
ipam                        ipam.mode                                cluster-pool
enable-ipv4                 ipv4.enabled                             true
enable-ipv6                 ipv6.enabled                             false
cluster-pool-ipv4-cidr      ipam.operator.clusterPoolIPv4PodCIDR     10.0.0.0/8
cluster-pool-ipv4-cidr      ipam.operator.clusterPoolIPv4PodCIDRList
cluster-pool-ipv4-mask-size ipam.operator.clusterPoolIPv4MaskSize    24
cluster-pool-ipv6-cidr      ipam.operator.clusterPoolIPv6PodCIDR     fd00::/104
cluster-pool-ipv6-cidr      ipam.operator.clusterPoolIPv6PodCIDRList
cluster-pool-ipv6-mask-size ipam.operator.clusterPoolIPv6MaskSize    120
cluster-name                cluster.name
cluster-id                  cluster.id
tunnel                      tunnel
routing-mode                routingMode
ipv4-native-routing-cidr    ipv4NativeRoutingCIDR
ipv6-native-routing-cidr    ipv6NativeRoutingCIDR
k8s-require-ipv4-pod-cidr   k8s.requireIPv4PodCIDR
k8s-require-ipv6-pod-cidr   k8s.requireIPv6PodCIDR
annotate-k8s-node           annotateK8sNode
cni-chaining-mode           cni.chainingMode
enable-bgp-control-plane    bgpControlPlane.enabled
bgp-announce-pod-cidr       bgp.announce.podCIDR
"""
"""Keys of cilium-config, their values, and defaults of the chart that count. Until 1.13 a range was a text,
until 1.14 there was tunnel, until 1.16 bgp."""
_ROWS = [line.split() for line in _TABLE.splitlines()]
_POOLS, _EXTRA = ("ipam", "operator", "autoCreateCiliumPodIPPools"), "extraConfig."
_KEYS = {**{f"{row[1]}.": row[0] for row in _ROWS}, _EXTRA: "", f"{'.'.join(_POOLS)}.": ""}
"""Keys by the paths of their values; "": mappings."""


def with_values(dump: Dump, path: str, data: bytes) -> tuple[Dump, tuple[Diagnostic, ...]]:
    """Return a dump with what the chart makes of a file of values, as far as the dump lacks it; warnings.
    A flag of the dump counts, because it runs. Raises Refused for what is no such file.
    """
    log = Log()
    try:
        at, root = _root(path, data)
        config, given = _config(at, root, log)
        pools = dump.pools or tuple(_pools(at, root))
        odd = odd_values({key: config[key] for key in given})
        log.add(unreadable(given[key], f"the value for {key}", [problem]) for key, problem in odd)
        if there := dump.other("ConfigMap", CONFIG):
            runs = {"cni-chaining-mode": "none", **texts_of(value_at(there, "data"))}
            differ = [key for key in given if not same_value(config[key], runs.get(key, "false"))]
            log.add(other_value(given[key], there.at, key, config[key], runs.get(key)) for key in differ)
    except (Refused, Unreadable) as problem:
        raise Refused(locate(problem.diagnostics, {path: data})) from None
    made = {"metadata": {"annotations": {HELM: "cilium"}}, "data": config}
    new = SeenObject(name=CONFIG, file=path, api_version="v1", kind="ConfigMap", value=made)
    every = sorted((*dump.others, new), key=attrgetter("kind", "namespace", "name"))
    others = dump.others if there else tuple(every)
    return replace(dump, others=others, pools=pools), locate(log.diagnostics, {path: data})


def _root(path: str, data: bytes) -> tuple[Place, Any]:
    """Return the place and the values of a file, which may be those of a chart around Cilium's."""
    found = [each for each in yaml_documents(path, decode(path, data)) if each.value is not None]
    at, value = (found[0].at, found[0].value) if len(found) == 1 else (Place(path), None)
    if not isinstance(value, dict) or isinstance(value.get("kind"), str):
        fix = "name a file for helm -f, or the output of helm get values cilium -n kube-system"
        raise Unreadable(wrong_shape(at, "the file is not a mapping of values", fix))
    return (at / "cilium", value["cilium"]) if isinstance(value.get("cilium"), dict) else (at, value)


def _leaves(at: Place, value: Any, path: str = "") -> Iterator[tuple[str, Any, Place]]:
    """Yield the values of a tree that are no mappings, with their paths and places."""
    for key, each in value.items():
        if isinstance(each, dict):
            yield from _leaves(at / key, each, f"{path}{key}.")
        elif each not in (None, "", []):
            yield f"{path}{key}.", each, at / key


def _config(at: Place, root: Any, log: Log) -> tuple[dict[str, str], dict[str, Place]]:
    """Return the keys of cilium-config, and the places of those that have a value."""
    found, places = {key: default[0] for key, _, *default in _ROWS if default}, dict[str, Place]()
    wrong = list[Diagnostic]()
    for path, value, place in sorted(_leaves(at, root), key=lambda leaf: leaf[0].startswith(_EXTRA)):
        key = path[len(_EXTRA) : -1] if path.startswith(_EXTRA) else _KEYS.get(path, "")
        if key and (path.endswith("List.") or not isinstance(value, list)):
            text = " ".join(map(str, value)) if isinstance(value, list) else texts_of({"": value})[""]
            found[key], places[key] = text, place
        elif any(each.startswith(path) or (path.startswith(each) and _KEYS[each]) for each in _KEYS):
            wrong.append(wrong_shape(place, "the value does not have the type that Cilium's chart expects"))
    log.add(wrong)
    if member(root, "eni", "enabled") is True:
        found["ipam"] = "eni"
    if "tunnel" not in found:
        found.setdefault("routing-mode", "tunnel")
    if pools := member(root, *_POOLS):
        found["auto-create-cilium-pod-ip-pools"] = ",".join(f"{name}=" for name in sorted(pools))
    off = tuple(f"cluster-pool-ipv{each}" for each in "46" if not is_true(found, f"enable-ipv{each}"))
    off = off if found["ipam"] == "cluster-pool" else ("cluster-pool-",)
    config = {key: text for key, text in found.items() if not key.startswith(off)}
    return config, {key: place for key, place in places.items() if key in config}


def _pools(at: Place, root: Any) -> Iterator[SeenPool]:
    """Yield the CiliumPodIPPools that the operator creates; it never changes them, so others count."""
    for name, spec in (member(root, *_POOLS) or {}).items():
        try:
            pool = read_object({"kind": "CiliumPodIPPool", "metadata": {"name": name}, "spec": spec})
        except msgspec.ValidationError as problem:
            place = Place(at.path, at.document, (*at.keys, *_POOLS, name))
            raise Unreadable(wrong_shape(place, f"pool {name}: {problem}")) from None
        if isinstance(pool, SeenPool):
            yield replace(pool, file=at.path)
