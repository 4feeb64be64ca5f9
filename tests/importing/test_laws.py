"""The laws of an import: nobody is renumbered, a second one changes no byte, a refresh sees no heartbeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, note
from hypothesis import strategies as st

from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

Objects = list[dumps.Object]

BASE, BASE6 = 0x0A000000, 0xFD00 << 112


@st.composite
def numbers(draw: st.DrawFn, most: int = 12) -> list[int]:
    """Draw the places of blocks: one for each node, all different, close together or far apart."""
    spread = draw(st.sampled_from([16, 64, 4096]))
    return draw(st.lists(st.integers(0, spread - 1), unique=True, min_size=1, max_size=most))


def block4(place: int, prefix: int) -> str:
    return str(Block(4, BASE + (place << (32 - prefix)), prefix))


def block6(place: int) -> str:
    return str(Block(6, BASE6 + (place << 8), 120))


def config(mode: str, *, dual: bool, **more: str) -> dumps.Object:
    return dumps.config_map(ipam=mode, enable_ipv4="true", enable_ipv6="true" if dual else "false", **more)


def labels(index: int) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": "ab"[index % 2], "beta.kubernetes.io/arch": "amd64"}


@st.composite
def kubernetes(draw: st.DrawFn) -> Objects:
    """Draw a cluster in kubernetes mode, or without Cilium: podCIDRs of kube-controller-manager."""
    dual, prefix = draw(st.booleans()), draw(st.sampled_from([24, 26]))
    nodes = [
        dumps.node(
            f"n{index}",
            *([block4(place, prefix)] + ([block6(place)] if dual else [])),
            labels=labels(index),
            ip=f"192.168.0.{index + 1}",
        )
        for index, place in enumerate(draw(numbers()))
    ]
    extra: Objects = []
    if draw(st.booleans()):
        extra.append(config("kubernetes", dual=dual))
    if draw(st.booleans()):
        range4 = draw(st.sampled_from(["10.0.0.0/16", "10.0.0.0/12"]))
        words = [f"--cluster-cidr={range4}{',fd00::/108' if dual else ''}", "--allocate-node-cidrs=true"]
        words += [f"--node-cidr-mask-size-ipv4={prefix}", "--node-cidr-mask-size-ipv6=120"]
        manager = dumps.pod("kcm", "n0", "192.168.0.1", namespace="kube-system", hostNetwork=True)
        manager["metadata"]["labels"] = {"component": "kube-controller-manager"}
        manager["spec"]["containers"][0]["command"] = ["kube-controller-manager", *words]
        extra.append(manager)
    return [*nodes, *extra]


@st.composite
def cluster_pool(draw: st.DrawFn) -> Objects:
    """Draw a cluster whose operator gave out blocks, of ranges that may have changed since."""
    dual, prefix = draw(st.booleans()), draw(st.sampled_from([24, 26]))
    found: Objects = []
    for index, place in enumerate(draw(numbers())):
        name = f"n{index}"
        left = draw(st.sampled_from(["", "10.250.0.0/24"])) if index == 0 else ""
        found.append(dumps.node(name, *([left] if left else []), labels=labels(index)))
        found.append(dumps.cilium_node(name, block4(place, prefix), *([block6(place)] if dual else [])))
    ranges = draw(st.sampled_from(["10.0.0.0/12", "10.0.0.0/20", "172.20.0.0/16 10.0.0.0/22"]))
    more = {"cluster_pool_ipv4_cidr": ranges, "cluster_pool_ipv4_mask_size": str(prefix)}
    if dual:
        more |= {"cluster_pool_ipv6_cidr": "fd00::/104", "cluster_pool_ipv6_mask_size": "120"}
    return [*found, config("cluster-pool", dual=dual, **more)]


@st.composite
def multi_pool(draw: st.DrawFn) -> Objects:
    """Draw a cluster with shared pools: nodes have no, one or several blocks of some of them."""
    found: Objects = []
    nodes = draw(st.integers(1, 6))
    places = draw(st.lists(st.integers(0, 63), unique=True, min_size=nodes, max_size=20))
    given_by: dict[str, dict[str, list[str]]] = {f"n{index}": {} for index in range(nodes)}
    for index, place in enumerate(places):
        pool = "default" if index < nodes else draw(st.sampled_from(["default", "mars"]))
        base = BASE if pool == "default" else BASE + (1 << 16)
        given_by[f"n{index % nodes}"].setdefault(pool, []).append(str(Block(4, base + (place << 5), 27)))
    for index, (name, pools) in enumerate(given_by.items()):
        found.append(dumps.node(name, labels=labels(index)))
        found.append(dumps.cilium_node(name, allocated=pools))
    return [
        *found,
        dumps.pool("default", mask=27, cidrs=["10.0.0.0/20"]),
        dumps.pool("mars", mask=27, cidrs=["10.1.0.0/20"]),
        config("multi-pool", dual=False),
    ]


@st.composite
def crd(draw: st.DrawFn) -> Objects:
    """Draw a cluster in crd mode: nodes have the addresses of a block, some of them, or single ones."""
    found: Objects = []
    for index, place in enumerate(draw(numbers(6))):
        first = BASE + (place << 5)
        size = draw(st.sampled_from([30, 20, 3]))
        addresses = [str(Block(4, first + number, 32)).partition("/")[0] for number in range(1, size + 1)]
        found += [
            dumps.node(f"n{index}", labels=labels(index)),
            dumps.cilium_node(f"n{index}", addresses=addresses),
        ]
    return [*found, config("crd", dual=False)]


def shown(objects: Objects, mode: str) -> dict[str, list[Block]]:
    """Return what each node has in the running cluster."""
    dump = dump_of(objects)
    found: dict[str, list[Block]] = {}
    if mode == "kubernetes":
        found = {node.name: list(node.pod_cidrs) for node in dump.nodes}
    else:
        found = {
            seen.name: [block for block, _ in seen.allocated] or [*seen.blocks, *seen.addresses]
            for seen in dump.cilium_nodes
        }
    return {name: blocks for name, blocks in found.items() if blocks}


def later(objects: Objects) -> Objects:
    """Return the same cluster some minutes later: heartbeats, versions, images and labels of no interest."""
    found: Objects = json.loads(json.dumps(objects))
    for item in found:
        item["metadata"]["resourceVersion"] = "999"
        item["metadata"].setdefault("labels", {})["scheduler.example/seen"] = "yes"
        for condition in item.get("status", {}).get("conditions", ()):
            condition["lastHeartbeatTime"] = "2026-11-22T13:07:00Z"
        if item["kind"] == "Node":
            item["status"]["images"] = []
    return found[::-1]


def check(objects: Objects, mode: str) -> None:
    """Check every law for one cluster."""
    told = any(each["metadata"]["name"] == "cilium-config" for each in objects)
    came = imported(objects, mode=None if told else Mode(mode))
    for text in came.files.values():
        note(text)
    first = compiled(came.files)
    whole = mode != "crd"
    wanted = {
        name: sorted(map(str, blocks)) if whole else blocks for name, blocks in shown(objects, mode).items()
    }
    if whole:
        assert {name: sorted(blocks) for name, blocks in held(first).items()} == wanted
    else:  # single addresses are in a block of their node
        lines = first.plan.lock.lines
        for name, blocks in shown(objects, mode).items():
            mine = [line.block for line in lines if line.node == name]
            assert all(any(around.contains(block) for around in mine) for block in blocks)
    assert imported(objects[::-1], mode=None if told else Mode(mode)).files == came.files
    again = compiled(came.files, first)
    assert (again.lock, again.files) == (first.lock, first.files)
    assert refreshed(came.files, later(objects)) == {
        name: came.files[name] for name in ("nodes.yaml", "ciliumnodes.yaml")
    }


def refreshed(files: dict[str, str] | Any, objects: Objects) -> dict[str, str]:
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    return refresh(cluster, FOLDER, dump_of(objects), Past())


@given(kubernetes())
def test_kubernetes(objects: Objects) -> None:
    check(objects, "kubernetes")


@given(cluster_pool())
def test_cluster_pool(objects: Objects) -> None:
    check(objects, "cluster-pool")


@given(multi_pool())
def test_multi_pool(objects: Objects) -> None:
    check(objects, "multi-pool")


@given(crd())
def test_crd(objects: Objects) -> None:
    check(objects, "crd")


def given_by_cilium(objects: Objects) -> Iterator[tuple[str, Any]]:
    """Yield (name, spec.ipam) of each CiliumNode."""
    for item in objects:
        if item["kind"] == "CiliumNode":
            yield item["metadata"]["name"], item["spec"]["ipam"]


@given(cluster_pool())
def test_what_is_rendered_is_what_is_live(objects: Objects) -> None:
    files = compiled(imported(objects).files).files
    rendered = {
        document["metadata"]["name"]: document["spec"]["ipam"]
        for path, text in files.items()
        if path.startswith("ciliumnodes/") and path.endswith("/ciliumnodes.yaml")
        for document in yaml.safe_load_all(text)
    }
    assert rendered == dict(given_by_cilium(objects))
