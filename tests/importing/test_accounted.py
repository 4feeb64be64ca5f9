"""Every address of a dump that lies in a range of pods: a block, reserved with the reason, or reported."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from ipamc.importing.refresh import inside_ranges
from ipamc.model.cidr import Block, parse_block
from ipamc.model.diagnostics import Diagnostic
from ipamc.read.dump.read import read_dump
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

RANGE = {
    "cluster_pool_ipv4_cidr": "10.244.0.0/16",
    "cluster_pool_ipv4_mask_size": "24",
    "cluster_pool_ipv6_cidr": "fd00:10::/104",
    "cluster_pool_ipv6_mask_size": "120",
}
POOL = [
    dumps.node("n1", ip="192.168.0.1"),
    dumps.cilium_node("n1", "10.244.0.0/24"),
    dumps.config_map(ipam="cluster-pool", enable_ipv4="true", enable_ipv6="false", **RANGE),
]
DUAL = [
    POOL[0],
    dumps.cilium_node("n1", "10.244.0.0/24", "fd00:10::/120"),
    dumps.config_map(ipam="cluster-pool", enable_ipv4="true", enable_ipv6="true", **RANGE),
]


def thing(
    kind: str, spec: Any, *, name: str = "lan", api: str = "example.com/v1", **more: Any
) -> dumps.Object:
    """Return an object of any kind."""
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": "x"},
        "spec": spec,
        **more,
    }


def metallb(*ranges: str, name: str = "lan") -> dumps.Object:
    return thing("IPAddressPool", {"addresses": list(ranges)}, name=name, api="metallb.io/v1beta1")


def reserved(*objects: dumps.Object, pool: list[dumps.Object] = POOL) -> dict[str, str]:
    """Return what an import reserves, with the reasons."""
    (found,) = imported([*pool, *objects]).draft.pools
    return {str(block): why for block, why in found.reserved.items()}


def told(*objects: dumps.Object, code: str = "IPC0835", pool: list[dumps.Object] = POOL) -> list[Diagnostic]:
    return [found for found in imported([*pool, *objects]).findings if found.code == code]


def test_a_pool_of_metallb_is_reserved_with_the_reason() -> None:
    files = imported([*POOL, metallb("10.244.220.0/28")]).files
    assert '\n  - {cidr: 10.244.220.0/28, reason: "IPAddressPool lan of MetalLB"}\n' in files["ippools.yaml"]
    (finding,) = told(metallb("10.244.220.0/28"), code="IPC0819")
    assert finding.at.line > 1  # type: ignore[union-attr]  # a span
    compiled(files)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (["10.244.220.10-10.244.220.20"], ["10.244.220.0/27"]),  # condensed
        (["10.244.220.10 - 10.244.220.20"], ["10.244.220.0/27"]),
        (["10.244.220.1/32", "10.244.220.200/32"], ["10.244.220.0/24"]),
        (["10.244.220.250-10.244.221.3"], ["10.244.220.248/29", "10.244.221.0/30"]),  # not wider than a block
        (["10.244.0.0/23"], ["10.244.1.0/24"]),  # not over a held block
        (["10.244.0.7/32"], []),
        (["198.51.100.0/24"], []),
        (["10.244.221.7/28"], ["10.244.221.0/28"]),  # host bits
    ],
)
def test_what_is_reserved_is_condensed(ranges: list[str], expected: list[str]) -> None:
    assert reserved(metallb(*ranges)) == dict.fromkeys(expected, "IPAddressPool lan of MetalLB")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (thing("Service", {"clusterIP": "10.244.9.9"}, api="v1"), {"10.244.9.9/32": "Services"}),
        (
            thing("Service", {}, api="v1", status={"loadBalancer": {"ingress": [{"ip": "10.244.9.9"}]}}),
            {"10.244.9.9/32": "Services"},
        ),
        (thing("Service", {"loadBalancerSourceRanges": ["10.244.9.0/24"]}, api="v1"), {}),
        (
            thing(
                "NetworkAttachmentDefinition",
                {
                    "config": '{"ipam": {"type": "host-local", "subnet": "10.244.9.0/24", "gateway": "10.244.9.1"}}'
                },
                api="k8s.cni.cncf.io/v1",
            ),
            {"10.244.9.0/24": "NetworkAttachmentDefinition lan of Multus"},
        ),
        (
            thing(
                "Node", {}, api="v1", status={"addresses": [{"type": "ExternalIP", "address": "10.244.9.1"}]}
            ),
            {"10.244.9.1/32": "nodes"},
        ),
    ],
)
def test_networks_of_others(item: dumps.Object, expected: dict[str, str]) -> None:
    if item["kind"] == "Node":
        item = {**item, "metadata": {"name": "n2", "uid": "u2"}}
    assert reserved(item) == expected


@pytest.mark.parametrize(
    "form",
    [
        dumps.kubectl,
        lambda *some: json.dumps({"apiVersion": "v1", "kind": "List", "items": some}),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "10.244.77.1",
        "10.244.77.0/24",
        "10.244.77.1/24",
        "10.244.77.1-10.244.77.9",
        "192.0.2.1, 10.244.77.1",
        "192.0.2.1 10.244.77.1",
        "::ffff:10.244.77.1",
        "10.244.77.1\n",
        "fd00:10::7701",
        "fd00:10:0:0:0:0:0:7701",
        "fd00:10::7701/128,10.0.0.1",
        '{"a": ["10.244.77.1"]}',
    ],
)
def test_an_address_in_any_kind_is_reported_and_not_reserved(text: str, form: Any) -> None:
    objects = [*DUAL, thing("Widget", {"a": [{"b": text}]}), thing("Widget", {"c": text})]
    dump, _ = read_dump([("dump.json", [form(*objects).encode()])], every=True)
    scalars = [scalar for scalar in dump.scalars if scalar.kind == "Widget"]
    assert scalars
    finding, note = told(*objects[3:], pool=DUAL)
    assert finding.message.startswith("unexplained addresses in ranges of pods: Widget contains ")
    assert note.message == "only the addresses of these kinds are read: 2 Widget.example.com"
    assert reserved(*objects[3:], pool=DUAL) == {}


@pytest.mark.parametrize(
    "text",
    ["1.2.3.4", "10.244.77", "10.244.77.1:80", "v10.244.77.1", "10.244.0.9", "10.244.0.0/16", "10.0.0.0/8"],
)
def test_what_is_no_address_or_explained_is_not_reported(text: str) -> None:
    assert [found.severity.name for found in told(thing("Widget", {"a": text}))] == ["NOTE"]


def test_one_finding_a_kind() -> None:
    many = [thing("Widget", {"a": f"10.244.{number}.1"}, name=f"w{number}") for number in range(10, 200)]
    pools = [metallb(f"10.244.{number}.0/30", name=f"p{number}") for number in range(10, 200)]
    nodes = [dumps.node(f"m{number}", ip=f"10.244.{number}.9") for number in range(200, 250)]
    codes = [found.code for found in imported([*POOL, *many, *pools, *nodes]).findings]
    assert codes.count("IPC0835") == 1  # MetalLB's pools explain the Widgets' addresses
    assert codes.count("IPC0819") == 1  # a compile tells of the InternalIPs of nodes


def test_texts_of_configmaps_are_read_line_by_line() -> None:
    text = "pools:\n- addresses:\n  - 10.244.80.0/24\n  - 10.244.81.1-10.244.81.3\n  avoid: [10.244.82.1]\n  'six': fd00:10::5:0/112\n"
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "x"},
        "data": {"c": text},
    }
    (finding,) = told(item, pool=DUAL)
    assert "10.244.80.0/24, 10.244.81.1-10.244.81.3, 10.244.82.1, fd00:10::5:0/112" in finding.message


def test_the_entry_to_add_has_the_whole_range() -> None:
    finding, _ = told(thing("Widget", {"a": "10.244.77.240-10.244.77.250"}))
    assert "add {cidr: 10.244.77.240/28, reason: another network}" in str(finding.help)


def test_the_place_is_the_line_of_the_text() -> None:
    text = dumps.kubectl(*POOL, thing("Widget", {"a": "x", "b": "10.244.77.1"}))
    (finding, *_) = [
        found
        for found in told(thing("Widget", {"a": "x", "b": "10.244.77.1"}))
        if found.severity.name == "WARNING"
    ]
    assert "10.244.77.1" in text.splitlines()[finding.at.line - 1]  # type: ignore[union-attr]


def test_a_refresh_names_what_is_not_reserved_yet() -> None:
    before = imported([*POOL, metallb("10.244.220.0/28")]).files
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in before.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    assert inside_ranges(cluster, dump_of([*POOL, metallb("10.244.220.0/28")])) == ()
    (finding,) = inside_ranges(cluster, dump_of([*POOL, metallb("10.244.221.0/28")]))
    assert finding.help.startswith(
        "add {cidr: 10.244.221.0/28, reason: 'IPAddressPool lan of MetalLB'} to reserved of pool"
    )
    assert len(finding.also) == 1


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1." * 100_000,
        "," * 300_000,
        ": 1.1." * 50_000,
        "\\" * 300_000,
        "a: 1.1.1.1" + " " * 300_000,
        ":" * 300_000,
        '"1.1.' * 60_000,
    ],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"c": text}}
    service = thing("Service", {"a": '"loadBalancerSourceRanges": [' * 10_000}, api="v1")
    begin = time.process_time()
    dump_of([*POOL, item, service])
    assert time.process_time() - begin < 3


@pytest.mark.parametrize("seed", range(40))
def test_no_new_block_has_an_address_that_the_dump_shows(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - no secret

    def one() -> str:
        return f"10.244.{draw.randrange(16)}.{draw.randrange(256)}"

    nodes = [dumps.node(f"m{number}", ip=one(), ready=False) for number in range(draw.randrange(1, 4))]
    services = [thing("Service", {"clusterIP": one()}, api="v1", name=f"s{number}") for number in range(4)]
    pools = [metallb(f"{one()}/{draw.choice((26, 28, 32))}", name=f"p{number}") for number in range(2)]
    result = imported([*POOL, *nodes, *services, *pools])
    blocks = [
        parse_block(block)
        for node, some in held(compiled(result.files)).items()
        if node != "n1"
        for block in some
    ]
    shown = [Block(4, ip[1], 32) for node in dump_of(nodes + POOL).nodes for ip in node.internal_ips]
    shown += [parse_block(service["spec"]["clusterIP"] + "/32") for service in services]
    assert len(blocks) == len(nodes)
    assert not [(block, address) for block in blocks for address in shown if block.contains(address)]
