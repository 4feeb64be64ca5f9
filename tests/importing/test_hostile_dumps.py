"""Dumps that somebody broke: every one is read, or refused with findings; nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipamc.importing.bring_in import Options, bring_in
from ipamc.importing.refresh import Past, refresh
from ipamc.model.cilium.support import LAST
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused
from ipamc.read.dump.read import read_dump
from ipamc.read.read import read
from tests.support import calico, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled

KUBEADM = dumps.config_map(
    "kubeadm-config",
    ClusterConfiguration="networking: {podSubnet: 10.0.0.0/16, serviceSubnet: 10.96.0.0/12}\n"
    "controllerManager: {extraArgs: [{name: node-cidr-mask-size, value: '25'}]}\n",
)
MANAGER = dumps.pod("kcm", "n1", "192.168.0.1", namespace="kube-system")
MANAGER["metadata"]["labels"] = {"component": "kube-controller-manager"}
MANAGER["spec"]["containers"][0]["command"] = ["kcm", "--cluster-cidr=10.0.0.0/16,fd00::/64"]
OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
    "spec": {"template": {"spec": {"containers": [{"image": "operator:v1.15.1", "args": ["--ipam=x"]}]}}},
}
BALANCER = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumLoadBalancerIPPool",
    "metadata": {"name": "public"},
    "spec": {"blocks": [{"cidr": "10.0.7.0/24"}, {"start": "10.9.0.1", "stop": "10.9.0.9"}]},
}
NODE_CONFIG = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNodeConfig",
    "metadata": {"name": "mars", "namespace": "kube-system"},
    "spec": {
        "nodeSelector": {"matchLabels": {"rack": "mars"}},
        "defaults": {"ipam-default-ip-pool": "mars"},
    },
}
OBJECTS = [
    dumps.node("n1", "10.0.0.0/24", ip="192.168.0.1", labels={"rack": "a"}),
    dumps.node("n2", "10.0.1.0/24", labels={"rack": "mars"}),
    dumps.cilium_node("n1", "10.0.0.0/24", allocated={"default": ["10.0.0.0/24"]}, router=["10.0.0.5"]),
    dumps.cilium_node("n2", "10.0.1.0/24", addresses=["10.0.1.1", "10.0.1.2"], used=["10.0.1.1"]),
    dumps.pool("default", mask=24, cidrs=["10.0.0.0/16"]),
    dumps.pod("web", "n1", "10.0.0.9"),
    KUBEADM,
    MANAGER,
    OPERATOR,
    BALANCER,
    NODE_CONFIG,
]
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "::",
    "10.0.0.0/24",
    "10.0.0.0/99",
    "a" * 500,
    "é\u2028",
    [],
    {},
    [None],
    {"a": None},
    [[]],
)


CALICO = [
    dumps.node("n1", ip="192.168.0.1", labels={"rack": "a"}),
    dumps.node("n2", "10.244.0.0/24"),
    calico.pool("a", "10.1.0.0/16", nodeSelector="rack == 'a'", labels={"of": "a"}),
    calico.pool("all", "10.2.0.0/16"),
    calico.pool("public", "198.51.100.0/24", allowedUses=["LoadBalancer"]),
    *calico.affine("10.1.0.0/28", "n1", [(1, "n1", "default/web"), (2, "n2", "vxlanTunnelAddress")]),
    *calico.affine("10.2.0.0/28", "n2"),
    calico.block("10.2.0.16/28", "", [(3, "n1", "default/lost")]),
    calico.affinity("10.2.0.32/28", "n2", "pendingDeletion"),
    calico.reservation("kept", ["10.2.0.8/30"]),
    calico.config(),
]
CLUSTER_CIDRS = [
    dumps.node("n1", ip="192.168.0.1", labels={"rack": "a"}, ready=False),
    CALICO[1],
    {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "metadata": {"name": "a"},
        "spec": {
            "perNodeHostBits": 8,
            "ipv4": "10.244.0.0/16",
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]
            },
        },
    },
]
OTHERS = {"Calico": CALICO, "ClusterCIDR": CLUSTER_CIDRS}
SOURCES = [*(mode.value for mode in Mode), *OTHERS]


def objects(mode: str) -> list[dumps.Object]:
    """Return the objects of a cluster in one of Cilium's modes, or of one of OTHERS."""
    if mode in OTHERS:
        return OTHERS[mode]
    config = dumps.config_map(
        ipam=mode, enable_ipv4="true", enable_ipv6="false", cluster_pool_ipv4_cidr="10.0.0.0/16"
    )
    return [*OBJECTS, config]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from places(inner)


def broken(chance: random.Random, mode: str) -> dict[str, Any]:
    """Return a list of objects in which a few values are others, or gone."""
    whole: dict[str, Any] = json.loads(dumps.kubectl(*objects(mode)))
    for _ in range(chance.randint(1, 4)):
        container, key = chance.choice(list(places(whole["items"])))
        if isinstance(container, dict) and chance.random() < 0.3:
            container.pop(key, None)
        else:
            try:
                container[key] = copy.deepcopy(chance.choice(ODD))
            except IndexError:
                continue
    return whole


def examine(text: str) -> str:
    """Read, import, compile and refresh; return what became of it. Any other exception is a bug."""
    try:
        dump, _ = read_dump([("dump", [text.encode()])])
        came = bring_in(NAME, dump, Options(cilium=LAST, managed_by="helm"))
    except Refused:
        return "no dump"
    sources = {f"{FOLDER}/{name}": file.encode() for name, file in came.files.items()}
    try:
        compiled(came.files)
    except Refused as refused:
        codes = {found.code for found in refused.diagnostics}
        # What an import writes is always well-formed: only what it means may be refused.
        assert not codes & {f"IPC00{number:02}" for number in range(1, 12)}, came.files
        return "refused"
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    again = refresh(cluster, FOLDER, dump, Past())
    assert again == {name: came.files[name] for name in again}
    return "fine"


@pytest.mark.parametrize("mode", SOURCES)
@given(st.randoms(use_true_random=False))
def test_broken_dumps(mode: str, chance: random.Random) -> None:
    whole = broken(chance, mode)
    examine(json.dumps(whole, indent=4))
    examine(json.dumps(whole))


@given(st.randoms(use_true_random=False))
def test_broken_dumps_in_yaml(chance: random.Random) -> None:
    examine(yaml.safe_dump(broken(chance, "cluster-pool")))


@pytest.mark.parametrize("mode", SOURCES)
def test_the_dump_itself_is_sound(mode: str) -> None:
    assert examine(dumps.kubectl(*objects(mode))) == "fine"
