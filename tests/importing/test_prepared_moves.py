"""Imports with --mode of clusters whose IPAM mode ipamc does not have: nothing is kept, and a pool is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

import pytest
import yaml

from ipamc.importing.bring_in import Imported
from ipamc.importing.facts import with_kept
from ipamc.importing.refresh import Past, changes, refresh
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

NAMES = ("n1", "n2")
ON = {"enable_ipv4": "true"}
OLD = "10.9.0.0/16"


def cloud(name: str, number: int, *, old: bool) -> dumps.Object:
    """Return a CiliumNode of ENI mode, of 1.19 or of 1.20, which has `pools.allocated` beside `pool`."""
    ips = [f"10.1.{number}.{last}" for last in (4, 5)]
    more = {} if old else {"default": [*(f"{ip}/32" for ip in ips), f"10.1.{number}.16/28"]}
    made = dumps.cilium_node(name, addresses=ips, allocated=more, used=ips[:1])
    made["status"]["eni"] = {"enis": {"eni-1": {"vpc": {"primary-cidr": "10.0.0.0/15"}}}}
    return made


def cluster(mode: str, *, old: bool = False, **more: str) -> list[dumps.Object]:
    nodes = [dumps.node(name, uid=f"u-{name}", ip=f"10.1.{at}.1") for at, name in enumerate(NAMES)]
    pods = [dumps.pod("web", "n1", "10.1.0.4", namespace="shop")]
    if mode == "cluster-pool-v2beta":
        pools = {"cluster_pool_ipv4_cidr": OLD, "cluster_pool_ipv4_mask_size": "24"}
        blocks = [dumps.cilium_node("n1", "10.9.0.0/24"), dumps.cilium_node("n2", "10.9.1.0/24")]
        return [*nodes, *blocks, dumps.config_map(ipam=mode, **ON, **pools, **more)]
    seen = [cloud(name, at, old=old) for at, name in enumerate(NAMES)]
    return [*nodes, *seen, *pods, dumps.config_map(ipam=mode, **ON, **more)]


def ranges(came: Imported) -> list[str]:
    parts = [each["spec"] for each in yaml.safe_load_all(came.files["ippools.yaml"])]
    return [cidr for spec in parts for key in ("ipv4", "ipv6") if key in spec for cidr in spec[key]["cidrs"]]


def moved(objects: Sequence[dumps.Object], mode: Mode, **options: Any) -> Imported:
    return imported(objects, mode=mode, cilium=(1, 18), **options)


CLOUDS = [
    (mode, old) for mode in ("eni", "azure", "alibabacloud", "delegated-plugin") for old in (True, False)
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("runs", "old"), [*CLOUDS, ("cluster-pool-v2beta", False)])
def test_a_prepared_move_has_a_pool_apart_from_all_of_the_dump(runs: str, mode: Mode, *, old: bool) -> None:
    if runs == "cluster-pool-v2beta" and mode.one_block:
        return  # see below
    came = moved(cluster(runs, old=old), mode)
    (found,) = [each for each in came.findings if each.code == "IPC0815"]
    taken = ["10.9.0.0/16"] if runs == "cluster-pool-v2beta" else ["10.0.0.0/15"]
    assert ranges(came) == ["10.0.0.0/16" if runs == "cluster-pool-v2beta" else "10.2.0.0/16"]
    assert not any(ip_network(one).overlaps(ip_network(other)) for one in ranges(came) for other in taken)
    says = (
        f"nodes keep no block of ipam: '{runs}', and no pool lists ranges; ipamc proposes {ranges(came)[0]}"
    )
    assert found.message == f"{says}, which overlaps nothing in the dump"
    assert "IPC0816" not in {each.code for each in came.findings}
    assert "# proposed by ipamc import" in came.files["ippools.yaml"]
    assert sorted(held(compiled(came.files))) == [*NAMES]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("old", [True, False], ids=["1.19", "1.20"])
def test_the_value_of_ipam_tells_eni_mode(mode: Mode, *, old: bool) -> None:
    """Not fields of CiliumNodes: without --mode both are refused, with it both are alike."""
    with pytest.raises(Refused) as refused:
        imported(cluster("eni", old=old))
    assert [each.code for each in refused.value.diagnostics] == ["IPC0811"]
    assert moved(cluster("eni", old=old), mode).files == moved(cluster("eni", old=True), mode).files
    shown = with_kept(dump_of(cluster("eni", old=old)), mode).cilium_nodes
    assert not any(each.blocks or each.allocated or each.addresses for each in shown)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("runs", ["eni", "azure", "cluster-pool-v2beta"])
def test_a_refresh_with_the_same_dump_changes_nothing(runs: str, mode: Mode) -> None:
    came = moved(cluster(runs), mode)
    before = compiled(came.files)
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in came.files.items()}
    there, _ = read(NAME, FOLDER, sources, SCHEMAS)
    dump = dump_of(cluster(runs))
    texts = refresh(there, FOLDER, dump, Past(), sources=sources)
    assert texts == {name: came.files[name] for name in texts}
    found = changes(there, dump)
    assert (found.joined, found.left, found.changed) == ((), (), ())
    assert compiled({**came.files, **texts}, before).lock == before.lock


@pytest.mark.parametrize("mode", [Mode.CLUSTER_POOL, Mode.KUBERNETES])
def test_one_block_of_v2beta_is_kept(mode: Mode) -> None:
    came = moved(cluster("cluster-pool-v2beta"), mode)
    assert held(compiled(came.files)) == {"n1": ["10.9.0.0/24"], "n2": ["10.9.1.0/24"]}


def test_podcidrs_of_nodes_are_kept_in_kubernetes_mode() -> None:
    objects = cluster("eni")
    for at, item in enumerate(objects[:2]):
        item["spec"] = {"podCIDR": f"10.50.{at}.0/24", "podCIDRs": [f"10.50.{at}.0/24"]}
    came = moved(objects, Mode.KUBERNETES)
    assert held(compiled(came.files)) == {"n1": ["10.50.0.0/24"], "n2": ["10.50.1.0/24"]}


def test_pools_that_are_there_already_are_no_proposal() -> None:
    came = moved([*cluster("eni"), dumps.pool("default", mask=26, cidrs=["10.60.0.0/16"])], Mode.MULTI_POOL)
    assert ranges(came) == ["10.60.0.0/16"]
    assert "IPC0815" not in {each.code for each in came.findings}
    assert held(compiled(came.files)) == {"n1": ["10.60.0.0/26"], "n2": ["10.60.0.64/26"]}


def test_an_operator_that_goes_on_gives_blocks_of_the_proposal() -> None:
    came = moved(cluster("azure"), Mode.CLUSTER_POOL, operator="adopt")
    assert "unlisted: true" in came.files["ippools.yaml"]
    assert held(compiled(came.files)) == {}


def test_a_proposal_of_both_families_has_two_blocks_a_node() -> None:
    nodes = [dumps.node(f"x{number}", ip=f"10.{number % 200}.0.1") for number in range(200)]
    came = moved([*cluster("eni", enable_ipv6="true"), *nodes], Mode.CLUSTER_POOL)
    assert ranges(came) == ["10.200.0.0/15", "fd00::/103"]
    assert len(held(compiled(came.files))) == 202


@pytest.mark.parametrize("text", ["10.0.0.0/8", "0.0.0.0/0"])
def test_a_text_of_the_dump_keeps_its_range_free(text: str) -> None:
    """Any address is no range that somebody has."""
    came = moved([*cluster("eni"), dumps.config_map("masquerade", cidrs=text)], Mode.CLUSTER_POOL)
    assert ranges(came) == ["10.2.0.0/16" if text == "0.0.0.0/0" else "100.64.0.0/16"]
