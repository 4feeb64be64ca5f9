"""Pods and namespaces that ask Calico for their pool or address by an annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ipamc.importing.calico.calico_rules import CalicoPool
from ipamc.importing.facts import askers
from ipamc.model.cidr import Block, read_blocks
from ipamc.model.diagnostics import Diagnostic, count, names, warning
from ipamc.model.dump import Dump
from ipamc.model.wording import cut


def not_of_cilium(
    dump: Dump, pools: Sequence[CalicoPool], families: Sequence[int], alone: Mapping[Block, str], mode: str
) -> Iterator[Diagnostic]:
    """IPC0867: pods that ask Calico for a pool or an address ask Cilium, too."""
    active = [pool.block for pool in pools if pool.workload and not pool.halted]
    several = [one.family for one in active]
    ranges = {one: "" for one in active if several.count(one.family) == 1} | dict(alone)
    known = {key: ranges[it.block] for it in pools if it.block in ranges for key in (it.name, str(it.block))}
    every = ((who, at, " and ".join(_lacking(asks, families, known))) for who, at, asks in askers(dump))
    if found := [each for each in every if each[2]]:
        ask = count(len(found), "pod or namespace asks", "pods or namespaces ask")
        needs = names((f"{who} needs {what}" for who, _, what in found), 20)  # each is work to do
        text = f"{ask} Calico for a pool or an address, and not Cilium: {needs}"
        way_out = "write these annotations beside those of Calico, into templates of pods, before they move"
        if mode != "multi-pool":
            way_out = "pods that ask for a pool need multi-pool mode: import with --mode multi-pool"
        yield warning("IPC0867", found[0][1], text, help=way_out)


def _lacking(asks: Mapping[str, str], families: Sequence[int], known: Mapping[str, str]) -> Iterator[str]:
    """Yield what a pod needs in Cilium; nothing of a family for which it asks Cilium already.
    `known` are pools for pods alone, by Calico's name and CIDR; "": every pod gets this one anyway. Of a list
    (cni-plugin/pkg/k8s/k8s.go) the first one counts: Cilium takes one (pkg/annotation/k8s.go, since 1.15).
    """
    keys = {each: f"ipam.cilium.io/ipv{each}-pool" for each in families}
    unset = [each for each in families if not asks.keys() & {"ipam.cilium.io/ip-pool", keys[each]}]
    texts = {each: asks.get(f"cni.projectcalico.org/ipv{each}pools", "") for each in unset}
    found = {each: _first(text, known) for each, text in texts.items() if text}
    if len(found) == len(families) and len(set(found.values())) == 1:
        keys = dict.fromkeys(families, "ipam.cilium.io/ip-pool")
    yield from dict.fromkeys(f"{keys[each]}: {name}" for each, name in found.items() if name)
    others = [text for key, text in asks.items() if unset and key.endswith(("IPs", "Addrs"))]
    others += [texts[each] for each, name in found.items() if name is None]
    yield from (f"a pool with podsOnly for {cut(text)}" for text in others)


def _first(text: str, known: Mapping[str, str]) -> str | None:
    """Return the first known pool of a list of names and CIDRs, as ResolvePools of the CNI plugin does."""
    try:
        entries = msgspec.json.decode(text, type=list[str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    keys = (key for entry in entries for key in (entry, *map(str, read_blocks([entry])[0])))
    return next((known[key] for key in keys if key in known), None)
