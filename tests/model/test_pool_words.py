"""The native form that findings advise for pools of other dialects: what it says can be pasted, and moves nobody."""

from __future__ import annotations

import re

import pytest

from ipamc.model.diagnostics import Refused
from ipamc.pipeline import compile_cluster
from ipamc.read.read import read
from tests.support import casefile, fleet

CLUSTER = fleet.cluster(ipFamilies=["IPv4", "IPv6"])
NODES = fleet.inventory([{"name": "worker-1", "labels": {"rack": "a", "y": "1e3"}}, {"name": "worker-2"}])
CALICO = {
    "apiVersion": "projectcalico.org/v3",
    "kind": "IPPool",
    "metadata": {"name": "p4", "labels": {"on": "y"}},
}
CALICO_6 = {
    "apiVersion": "projectcalico.org/v3",
    "kind": "IPPool",
    "metadata": {"name": "p6"},
    "spec": {"cidr": "fd00:6::/112"},
}
CLUSTER_CIDR = {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": "both"}}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]}
EVERYBODY = {
    **CLUSTER_CIDR,
    "metadata": {"name": "rest"},
    "spec": {"ipv4": "10.3.0.0/24", "ipv6": "fd00:3::/112", "perNodeHostBits": 6},
}


@pytest.mark.parametrize(
    "pools",
    [
        [{**CALICO, "spec": {"cidr": "10.1.0.0/24", "nodeSelector": "!has(gpu) && y != 'no'"}}, CALICO_6],
        [{**CALICO, "spec": {"cidr": "10.1.0.0/24", "blockSize": 28}}, CALICO_6],
        [{**CLUSTER_CIDR, "spec": {"ipv4": "10.2.0.0/24", "ipv6": "fd00:2::/112", "perNodeHostBits": 5}}],
        [{**CLUSTER_CIDR, "spec": {"ipv4": "10.2.0.0/24", "ipv6": "fd00:2::/112", "perNodeHostBits": 5, "nodeSelector": TERMS}}, EVERYBODY],
    ],
    ids=["calico", "block size", "cluster cidr", "terms"],
)  # fmt: skip
def test_the_native_form_can_be_pasted_and_moves_nobody(pools: list[fleet.Document]) -> None:
    before = fleet.compiled(fleet.as_json([CLUSTER, *pools, NODES]))
    reserving = {**pools[0], "spec": {**pools[0]["spec"], "reserved": []}}
    with pytest.raises(Refused) as refused:
        fleet.compiled(fleet.as_json([CLUSTER, reserving, *pools[1:], NODES]))
    (finding,) = (each for each in refused.value.diagnostics if each.code == "IPC0012")
    pasted = fleet.as_json([CLUSTER, *pools[1:], NODES]) | {"clusters/fleet/pasted.yaml": _form(finding.help)}
    assert fleet.compiled(pasted, before.lock).lock == before.lock
    assert fleet.compiled(pasted).lock == before.lock


@pytest.mark.parametrize("name", ["pools/advice-by-dialect", "selection/no-room/by-dialect-multi-pool"])
def test_every_native_form_in_a_report_is_one_document(name: str) -> None:
    case = casefile.load(name)
    with pytest.raises(Refused) as refused:
        compile_cluster(casefile.inputs(case))
    forms = [_form(each.help) for each in refused.value.diagnostics if "{apiVersion" in each.help]
    assert forms
    for form in forms:
        files = fleet.as_json([fleet.cluster()]) | {"clusters/fleet/pasted.yaml": form}
        cluster, findings = read("fleet", "clusters/fleet", files, fleet.SCHEMAS)
        assert not findings
        assert len(cluster.pools) == 1


def _form(text: str) -> bytes:
    found = re.search(r"\{apiVersion.*\}", text)
    assert found, text
    return found[0].encode()
