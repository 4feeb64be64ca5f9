"""One law for a block that a node shows: what compile refuses, audit calls an error, and the other way round.

Each node of a small cluster shows blocks of all sorts, in every mode. A compile reads what `kubectl get nodes,ciliumnodes` prints of it, and an audit
of the cluster in git reads the same objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any

import pytest
from msgspec.structs import replace

from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Refused, Severity
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.workspace.source import Disk
from tests.support import casefile, dumps, examples, fleet
from tests.support.living import Living

SIX = "fd00:1::/112"
OUTSIDE = ("10.77.0.0/26", "fd00:77::/122")
UNLISTED = "10.9.0.0/26"
FOREIGN = "172.20.0.0/26"
LEFT_OVER = ("10.244.3.0/24", "fd00:244::/120")
LINES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("a", {}),
    ("b", {}),
    ("p", {}),
    ("p", {"pending": True}),
    ("m", {}),
    ("m", {"quarantined": "2026-11-20", "moved": True}),
    ("q", {"quarantined": "2026-11-20"}),
    ("r", {"released": True}),
)
"""The lock: the n-th line has the n-th block. q and r are gone."""
OWN = {"a": [0], "p": [2], "m": [4], "new": []}
"""What nodes hold. `new` is a node that git does not know yet."""
WORLDS = (
    "kubernetes",
    "kubernetes dual",
    "cluster-pool",
    "cluster-pool dual",
    "cluster-pool adopt",
    "multi-pool pool",
    "multi-pool node",
    "multi-pool none",
    "crd",
)


def blocks(world: str, *numbers: int) -> list[str]:
    """Return the n-th blocks of the pool, of each family."""
    size = 28 if world == "crd" else 26
    four = list(islice(ip_network("10.1.0.0/22").subnets(new_prefix=size), 16))
    six = list(islice(ip_network(SIX).subnets(new_prefix=122), 16)) if "dual" in world else []
    return [str(family[at]) for family in (four, six) if family for at in numbers]


def documents(world: str) -> list[fleet.Document]:
    """Return a cluster with its pools."""
    mode, _, special = world.partition(" ")
    spec: dict[str, Any] = {}
    pool: dict[str, Any] = {"ipv4": {"cidrs": ["10.1.0.0/22"], "blockSize": 28 if mode == "crd" else 26}}
    more = []
    if special == "dual":
        spec["ipFamilies"] = ["IPv4", "IPv6"]
        pool["ipv6"] = {"cidrs": [SIX], "blockSize": 122}
    if special == "adopt":
        spec["ipam"] = {"operator": "adopt"}
        more = [fleet.pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 26}, unlisted=True)]
    if mode == "multi-pool":
        spec["ipam"] = {"pinning": special}
    return [fleet.cluster(mode, **spec), fleet.pool("default", **pool), *more]


def lock(world: str) -> str:
    """Return the lock of a world."""
    header = {"lock": 1, "cluster": "fleet", "mode": world.partition(" ")[0], "shards": 1}
    rows = [
        {"block": block, "pool": "default", "node": node, **state}
        for family in (0, 1)
        for at, (node, state) in enumerate(LINES)
        for block in blocks(world, at)[family : family + 1]
    ]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in (header, *rows))


@cache
def _living(world: str) -> Living:
    inventory = fleet.inventory([{"name": name, "uid": f"uid-{name}"} for name in ("a", "b", "m", "p")])
    return Living.of(fleet.compiled(fleet.as_json([*documents(world), inventory]), lock(world)))


def living(world: str) -> Living:
    """Return a cluster in which each node has what it holds, to change."""
    return _living(world).copy()


def show(live: Living, world: str, node: str, shown: Sequence[str], where: str = "") -> None:
    """Let a node have blocks, as its agent shows them after a restart. `where`: in one object of it alone."""
    mode = Mode(world.partition(" ")[0])
    six = [block for block in shown if ":" in block]
    four = [block for block in shown if ":" not in block]
    made = dumps.cilium_node(node, router=[_host(some[0], 1) for some in (four, six) if some])
    ipam = made["spec"]["ipam"]
    if mode is Mode.MULTI_POOL:
        own = f"default.{node}" if world == "multi-pool node" else "default"
        pools = {own: [block for block in shown if block != FOREIGN], "theirs": [FOREIGN]}
        ipam["pools"] = {
            "allocated": [
                {"pool": name, "cidrs": some}
                for name, some in pools.items()
                if set(some) <= set(shown) and some
            ]
        }
        if FOREIGN in shown:
            live.add(dumps.pool("theirs", mask=26, cidrs=["172.20.0.0/24"]))
    else:
        ipam["podCIDRs"] = list(shown)
    if mode is Mode.CRD:
        ipam["pool"] = {_host(block, number): {} for block in shown for number in range(1, 15)}
    if where != "Node":
        live.add(made)
    if f"Node {node}" not in live.objects:
        live.add(dumps.node(node, ip="192.168.99.9"))
    if mode is Mode.KUBERNETES and where != "CiliumNode":
        live[f"Node {node}"]["spec"] = {"podCIDR": shown[0], "podCIDRs": list(shown)}
    for name in (f"Pod default web-{node}", f"CiliumEndpoint default web-{node}"):
        live.objects.pop(name, None)


def _host(block: str, number: int) -> str:
    return str(ip_address(int(ip_network(block).network_address) + number))


def left_over(live: Living, node: str, *pod_cidrs: str) -> None:
    """Let a CiliumNode of multi-pool mode have podCIDRs of a former mode, and no blocks of a pool."""
    show(live, "cluster-pool", node, pod_cidrs)


Plant = Callable[[Living, str, str], None]


def shows(*numbers: int, own: bool = False, more: Sequence[str] = (), where: str = "") -> Plant:
    """Let a node show blocks by their numbers, beside its own ones or not, and others."""

    def plant(live: Living, world: str, node: str) -> None:
        mine = OWN[node] if own else []
        outside = [block for block in more if "dual" in world or ":" not in block]
        show(live, world, node, [*blocks(world, *mine, *numbers), *outside], where)

    return plant


ALL = ("a", "p", "m", "new")
KNOWN = ("a", "p", "m")
SHOWN: Mapping[str, tuple[Sequence[str], str, Plant]] = {
    "its own": (KNOWN, "", shows(own=True)),
    "its pending one": (("p",), "", shows(3)),
    "its own and its pending one": (("p",), "", shows(3, own=True)),
    "its former one": (("m",), "", shows(5)),
    "its own and its former one": (("m",), "", shows(5, own=True)),
    "another's": (ALL, "", shows(1)),
    "its own and another's": (KNOWN, "", shows(1, own=True)),
    "another's pending one": (("a", "m", "new"), "", shows(3)),
    "another's former one": (("a", "p", "new"), "", shows(5)),
    "a quarantined one": (ALL, "", shows(6)),
    "a released one": (ALL, "", shows(7)),
    "a free one": (ALL, "", shows(8)),
    "its own and a free one": (KNOWN, "", shows(8, own=True)),
    "one of no pool": (ALL, "", shows(more=OUTSIDE)),
    "its own and one of no pool": (KNOWN, "", shows(own=True, more=OUTSIDE)),
    "a part of another's": (ALL, "", shows(more=["10.1.0.64/27", "fd00:1::40/123"])),
    "one around its own and another's": (("a",), "", shows(more=["10.1.0.0/25", "fd00:1::/121"])),
    "an unlisted one": (ALL, "adopt", shows(more=[UNLISTED])),
    "its own and an unlisted one": (KNOWN, "adopt", shows(own=True, more=[UNLISTED])),
    "one of a foreign pool": (ALL, "multi-pool", shows(more=[FOREIGN])),
    "its own and one of a foreign pool": (KNOWN, "multi-pool", shows(own=True, more=[FOREIGN])),
    "podCIDRs that are left over": (
        KNOWN,
        "multi-pool",
        lambda live, _, node: left_over(live, node, *LEFT_OVER[:1]),
    ),
    "podCIDRs that are its own": (
        KNOWN,
        "multi-pool",
        lambda live, world, node: left_over(live, node, *blocks(world, *OWN[node])),
    ),
    "podCIDRs that are another's": (
        KNOWN,
        "multi-pool",
        lambda live, world, node: left_over(live, node, *blocks(world, 1)),
    ),
    "its own, of another's family": (
        KNOWN,
        "dual",
        lambda live, world, node: show(
            live, world, node, [*blocks(world, *OWN[node])[:1], *blocks(world, 1)[1:]]
        ),
    ),
    "its own of one family": (
        KNOWN,
        "dual",
        lambda live, world, node: show(live, world, node, blocks(world, *OWN[node])[:1]),
    ),
    "another's, and none of the other family": (
        ALL,
        "dual",
        lambda live, world, node: show(live, world, node, blocks(world, 1)[:1]),
    ),
    "one of no pool, and none of the other family": (
        ALL,
        "dual",
        lambda live, world, node: show(live, world, node, OUTSIDE[:1]),
    ),
    "another's, on its Node alone": (KNOWN, "kubernetes", shows(1, where="Node")),
    "a free one, on its Node alone": (KNOWN, "kubernetes", shows(8, where="Node")),
    "a free one, on its CiliumNode alone": (KNOWN, "kubernetes", shows(8, where="CiliumNode")),
}
"""What nodes show: of which nodes, in which worlds."""
DISPUTED = {"IPC0410", "IPC0423", "IPC0503", "IPC0506", "IPC0513"}
TABLE = [
    pytest.param(world, node, plant, id=f"{world}: {node} shows {name}")
    for world in WORLDS
    for name, (nodes, special, plant) in SHOWN.items()
    for node in nodes
    if special in world
]


def errors(found: Iterable[Diagnostic], node: str, about: str = "IPC") -> list[str]:
    """Return the errors that name a node, and whose code matches."""
    named = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])").search
    return [
        f"{each.code}: {each.message}"
        for each in found
        if each.severity is Severity.ERROR
        and re.match(about, each.code)
        and named(" ".join([each.message, *(related.label for related in each.also)]))
    ]


def agree(said: Iterable[Diagnostic], live: Living, node: str) -> list[str]:
    """Compare a compile and an audit: errors about what a node shows. Return those of the compile.

    IPC0913 is about CiliumPodIPPools, which no compile sees; IPC0922 about blocks that are not shown.
    """
    by_compile, audited = errors(said, node), live.audit()
    by_audit = errors(audited, node, "IPC09(1[0-2]|2[24]|4|50)")
    assert by_audit or not by_compile, f"compile: {by_compile}\naudit: nothing"
    about_shown = errors(audited, node, "IPC09(1[0-2]|24|4|50)")
    assert by_compile or not about_shown, f"compile: nothing\naudit: {about_shown}"
    return by_compile


def refused(live: Living, world: str) -> Sequence[Diagnostic]:
    """Compile with the Nodes and CiliumNodes that run; return why that is refused."""
    inputs = [item for item in live.objects.values() if item["kind"] in {"Node", "CiliumNode"}]
    try:
        return disputes(fleet.compiled(fleet.as_json([*documents(world), *inputs]), lock(world)))
    except Refused as said:
        return said.diagnostics


def disputes(compilation: Compilation) -> Sequence[Diagnostic]:
    """Return the warnings about disputed nodes as errors: an audit has no fewer of them for one node than for all."""
    found = compilation.diagnostics if compilation.plan.disputed else ()
    return [replace(each, severity=Severity.ERROR) for each in found if each.code in DISPUTED]


@pytest.mark.parametrize("world", WORLDS)
def test_a_sound_cluster_is_compiled_and_audited_without_an_error(world: str) -> None:
    live = living(world)
    assert [each.message for each in refused(live, world)] == []
    assert [each.message for each in live.audit() if each.severity is Severity.ERROR] == []


@pytest.mark.deep
@pytest.mark.parametrize(("world", "node", "plant"), TABLE)
def test_compile_refuses_what_audit_calls_an_error(world: str, node: str, plant: Plant) -> None:
    live = living(world)
    plant(live, world, node)
    agree(refused(live, world), live, node)


EVIDENT = re.compile(
    r"kind: (?:(?:Cilium)?Node(?:List)?|List)\b|^#! |^-- (?:rendered|templates|dump)/|ERROR:", re.MULTILINE
).search
"""Cases that have evidence of their own, are rows of the version table, or are refused."""
LONG = 20_000


def _names() -> Iterator[str]:
    """Yield the example clusters, and the cases whose nodes are in an inventory without evidence."""
    yield from (folder.name for folder in examples.FOLDERS)
    for name in casefile.names():
        text = casefile.text(casefile.load(name))
        if len(text) < LONG and not EVIDENT(text):
            yield name


@cache
def _inputs(name: str) -> Inputs:
    for folder in examples.FOLDERS:
        if folder.name == name:
            return replace(Disk().inputs(str(folder)), today="2026-11-21")
    return casefile.inputs(casefile.load(name))


@cache
def _compiled(name: str) -> Compilation | None:
    """Compile inputs; return None where they are refused, or have no two running nodes in a mode that shows blocks by CiliumNodes."""
    try:
        found = compile_cluster(_inputs(name))
    except Refused:
        return None
    cluster = found.plan.cluster
    running = [node for node in cluster.nodes if not node.planned]
    return found if running[1:] and cluster.mode in {Mode.CLUSTER_POOL, Mode.MULTI_POOL} else None


def _families(some: Sequence[str]) -> set[bool]:
    return {":" in block for block in some}


STRANGE: Mapping[str, Callable[[list[str], list[str]], tuple[str, list[str]]]] = {
    "its own": lambda mine, _: ("", mine),
    "another's": lambda _, others: ("", others),
    "one of nobody": lambda mine, _: ("", list(OUTSIDE[: len(_families(mine))])),
    "podCIDRs that are left over": lambda mine, _: ("podCIDRs", list(LEFT_OVER[: len(_families(mine))])),
}
"""What the first node of a case shows, of its blocks and those of another one; and where."""


@pytest.mark.deep
@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("name", list(_names()))
def test_a_case_is_compiled_and_audited_alike(name: str, what: str) -> None:
    git = _compiled(name)
    if not git:
        pytest.skip("it has no two running nodes that CiliumNodes show")
    mode, held = git.plan.cluster.mode, git.plan.held
    node, other = [node.name for node in git.plan.cluster.nodes if not node.planned][:2]
    live = Living.of(git).copy()
    mine, others = ([str(line.block) for line in held.get(each, ())] for each in (node, other))
    where, shown = STRANGE[what](mine, others)
    if what != "its own" and shown:
        show(live, "cluster-pool" if where else mode, node, shown)
        for entry in live[f"CiliumNode {node}"]["spec"]["ipam"].get("pools", {}).get("allocated", ()):
            entry["pool"] = next((line.pool for line in held.get(node, ())), "default")
    evidence = [item for item in live.objects.values() if item["kind"] == "CiliumNode"]
    inputs = _inputs(name)
    seen = {f"{inputs.folder}/seen.json": dumps.kubectl(*evidence).encode()}
    said: Sequence[Diagnostic] = ()
    try:
        said = disputes(
            compile_cluster(
                replace(inputs, sources={**inputs.sources, **seen}, lock=git.lock.encode(), consent=Consent())
            )
        )
    except Refused as refusal:
        said = refusal.diagnostics
    by_compile = agree(said, live, node)
    assert what != "its own" or not by_compile, by_compile
