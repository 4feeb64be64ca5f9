"""Each address, CIDR, size and switch of a dump, made odd in turn: the value that Go reads, or a finding that names its object.

The places are found by their values, so a new field of these clusters is covered by itself. `IPAMC_TESTS=all` plays every place in
every cluster; else each kind of place is played once.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from ipamc.importing.bring_in import Options, bring_in
from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import Block, CidrError, address_text, parse_address, parse_block
from ipamc.model.diagnostics import Diagnostic, Refused, Span
from ipamc.pipeline import Compilation
from ipamc.read.dump.read import read_dump
from ipamc.read.read import read
from ipamc.review.audit import audit
from ipamc.review.audit.context import Context
from ipamc.workspace.rendered import Manifests
from tests.support import calico, depth, dumps
from tests.support.dumps import Object
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled

Path = tuple[str | int, ...]


def made(api: str, kind: str, name: str, spec: Object, **metadata: str) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def workload(kind: str, name: str, container: str, *arguments: str, **more: Any) -> Object:
    one = {"name": container, "image": f"quay.io/cilium/{name}:v1.18.2", "args": list(arguments), **more}
    return made("apps/v1", kind, name, {"template": {"spec": {"containers": [one]}}}, namespace="kube-system")


def nodes(*cidrs: Sequence[str], annotations: Sequence[Object] = ({}, {})) -> list[Object]:
    """Return two Nodes with their podCIDRs."""
    found = []
    for number, (some, given) in enumerate(zip(cidrs or ((), ()), annotations, strict=True), 1):
        rack = {"rack": "mars" if number > 1 else "a"}
        node = dumps.node(f"n{number}", *some, uid=f"u{number}", ip=f"192.168.0.{number}", labels=rack)
        node["metadata"]["annotations"] = dict(given)
        found.append(node)
    return found


def endpoint(pod: str, address: str, node: str) -> Object:
    status = {"networking": {"addressing": [{"ipv4": address}], "node": node}}
    return {**made("cilium.io/v2", "CiliumEndpoint", pod, {}, namespace="default"), "status": status}


MANAGER = dumps.pod("kcm", "n1", "192.168.0.1", namespace="kube-system", hostNetwork=True)
MANAGER["metadata"]["labels"] = {"component": "kube-controller-manager"}
MANAGER["spec"]["containers"] = [
    {
        "command": [
            "kube-controller-manager",
            "--allocate-node-cidrs=true",
            "--cluster-cidr=10.1.0.0/16,fd00::/64",
            "--node-cidr-mask-size-ipv4=24",
            "--node-cidr-mask-size-ipv6=80",
            "--service-cluster-ip-range=10.96.0.0/12",
        ]
    }
]
KUBEADM = """\
networking: {podSubnet: "10.1.0.0/16", serviceSubnet: "10.96.0.0/12"}
controllerManager: {extraArgs: [{name: node-cidr-mask-size, value: '25'}]}
"""
OWN = {"ipam": "cluster-pool", "enable_ipv4": "true", "enable_ipv6": "false"}
FOUR = {"cluster_pool_ipv4_cidr": "10.1.0.0/16 10.2.0.0/16", "cluster_pool_ipv4_mask_size": "24"}
SIX = {"enable_ipv6": "true", "cluster_pool_ipv6_cidr": "fd00::/104", "cluster_pool_ipv6_mask_size": "120"}
ROUTES = {"ipv4_native_routing_cidr": "10.0.0.0/8", "enable_bgp_control_plane": "true"}
AUTO = {"auto_create_cilium_pod_ip_pools": "default=ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:24"}
BLOCKS = [dumps.cilium_node("n1", "10.1.0.0/24", router=["10.1.0.7"]), dumps.cilium_node("n2", "10.1.1.0/24")]
LISTED = [f"--cluster-pool-ipv4-cidr={FOUR['cluster_pool_ipv4_cidr'].split()[0]}"]
LISTED += ["--cluster-pool-ipv4-cidr", "10.2.0.0/16", "--cluster-pool-ipv4-mask-size=24"]
VARIABLES = [
    {"name": "CILIUM_CLUSTER_POOL_IPV4_CIDR", "value": "10.1.0.0/16 10.2.0.0/16"},
    {"name": "CILIUM_CLUSTER_POOL_IPV4_MASK_SIZE", "value": "24"},
    {"name": "CILIUM_DEBUG", "valueFrom": {"configMapKeyRef": {"name": "cilium-config", "key": "debug"}}},
]
CONFIG_DIR = "--config-dir=/tmp/cilium/config-map"
CLUSTERS: dict[str, list[Object]] = {
    "cluster-pool": [
        *nodes(),
        *BLOCKS,
        dumps.config_map(**OWN, **FOUR, **ROUTES),
        made("networking.k8s.io/v1", "ServiceCIDR", "all", {"cidrs": ["10.96.0.0/12", "fd00:96::/108"]}),
        made(
            "cilium.io/v2",
            "CiliumLoadBalancerIPPool",
            "public",
            {"blocks": [{"cidr": "10.9.7.0/24"}, {"start": "10.9.0.1", "stop": "10.9.0.9"}]},
        ),
        dumps.pod("web", "n1", "10.1.0.9"),
        endpoint("web", "10.1.0.9", "192.168.0.1"),
    ],
    "dual stack": [
        *nodes(),
        dumps.cilium_node("n1", "10.1.0.0/24", "fd00::/120"),
        dumps.cilium_node("n2", "10.1.1.0/24", "fd00::100/120"),
        dumps.config_map(**{**OWN, **FOUR, **SIX}),
    ],
    "arguments": [
        *nodes(),
        *BLOCKS,
        dumps.config_map(ipam="cluster-pool"),
        workload("Deployment", "cilium-operator", "cilium-operator", *LISTED, CONFIG_DIR),
        workload(
            "DaemonSet",
            "cilium",
            "cilium-agent",
            "--enable-ipv4=true",
            "--ipv4-native-routing-cidr=10.0.0.0/8",
        ),
    ],
    "environment": [
        *nodes(),
        *BLOCKS,
        dumps.config_map(ipam="cluster-pool"),
        workload("Deployment", "cilium-operator", "cilium-operator", CONFIG_DIR, env=VARIABLES),
    ],
    "kubernetes": [
        *nodes(
            ["10.1.0.0/24", "fd00::/80"],
            ["10.1.1.0/24", "fd00:0:0:0:1::/80"],
            annotations=[{"projectcalico.org/IPv4Address": "192.168.0.1/24"}, {}],
        ),
        dumps.config_map(ipam="kubernetes", enable_ipv4="true", enable_ipv6="true"),
        MANAGER,
    ],
    "kubeadm": [
        *nodes(["10.1.0.0/25"], ["10.1.1.0/25"]),
        dumps.config_map(ipam="kubernetes"),
        dumps.config_map("kubeadm-config", ClusterConfiguration=KUBEADM),
    ],
    "annotations": [
        *nodes(
            annotations=[
                {"network.cilium.io/ipv4-pod-cidr": "10.1.0.0/24"},
                {"io.cilium.network.ipv4-pod-cidr": "10.1.1.0/24"},
            ]
        ),
        dumps.config_map(ipam="kubernetes", annotate_k8s_node="true"),
    ],
    "multi-pool": [
        *nodes(),
        dumps.cilium_node("n1", allocated={"default": ["10.1.0.0/24"]}),
        dumps.cilium_node("n2", allocated={"mars": ["10.2.0.0/25"]}),
        dumps.pool("default", mask=24, cidrs=["10.1.0.0/16"]),
        dumps.pool("mars", mask=25, cidrs=["10.2.0.0/16"]),
        dumps.config_map(ipam="multi-pool", **AUTO),
        made(
            "cilium.io/v2",
            "CiliumNodeConfig",
            "mars",
            {
                "nodeSelector": {"matchLabels": {"rack": "mars"}},
                "defaults": {
                    "ipam-default-ip-pool": "mars",
                    "enable-ipv4": "true",
                    "ipv4-native-routing-cidr": "10.0.0.0/8",
                },
            },
            namespace="kube-system",
        ),
    ],
    "crd": [
        *nodes(),
        dumps.cilium_node("n1", addresses=[f"10.1.0.{number}" for number in range(1, 7)], used=["10.1.0.1"]),
        dumps.cilium_node("n2", addresses=[f"10.1.0.{number}" for number in range(9, 15)]),
        dumps.config_map(ipam="crd", enable_ipv4="true"),
    ],
    "Calico": [
        *nodes((), ["10.244.0.0/24"]),
        calico.pool("a", "10.1.0.0/16", nodeSelector="rack == 'a'", disabled=False),
        calico.pool("all", "10.2.0.0/16"),
        calico.pool("public", "198.51.100.0/24", allowedUses=["LoadBalancer"]),
        *calico.affine("10.1.0.0/28", "n1", [(1, "n1", "default/web")]),
        *calico.affine("10.2.0.0/28", "n2"),
        calico.block("10.2.0.16/28", "", [(3, "n1", "default/lost")]),
        calico.affinity("10.2.0.32/28", "n2", "pendingDeletion"),
        calico.affinity("10.2.0.48/28", "n2"),
        calico.reservation("kept", ["10.2.0.8/29"]),
        calico.FROZEN,
    ],
    "ClusterCIDRs": [
        *nodes(["10.244.0.0/24"], ["10.244.1.0/24"]),
        made(
            "networking.x-k8s.io/v1",
            "ClusterCIDR",
            "a",
            {"perNodeHostBits": 8, "ipv4": "10.244.0.0/16", "ipv6": "fd00::/112"},
        ),
    ],
}

UNREAD = {"natOutgoing", "strictAffinity"}
"""Switches that no block depends on; the strictAffinity of an IPAMConfig is played as any other."""
_ADDRESS = re.compile(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*[0-9a-fA-F:](?:/\d+)?").finditer
_SIZE = re.compile(r"(?<=size[=:])\d+|^\d+$").finditer


class Case(NamedTuple):
    """An odd value at a place; `means` is what Go reads."""

    path: Path
    means: str  # "the same", "nothing", "absent", or "a default"
    objects: list[Object]
    text: str

    @property
    def kind(self) -> tuple[Any, ...]:
        """The kind of place and oddness: a part of the tests has one case of each."""
        keys = [key for key in self.path[1:] if isinstance(key, str) and not _addresses(key)]
        odd = re.sub(r"\d+", "", self.text.rpartition("/")[2]) if self.means == "nothing" else ""
        return self.objects[int(self.path[0])]["kind"], *keys, self.means, odd


def _addresses(text: str) -> list[tuple[int, str, Block | None]]:
    """Return the addresses and CIDRs inside a text: place, text, and the block of a CIDR."""
    found: list[tuple[int, str, Block | None]] = []
    for match in _ADDRESS(text):
        try:
            found.append((match.start(), match[0], parse_block(match[0], pods=False)))
        except CidrError:
            try:
                parse_address(match[0])
            except CidrError:
                continue
            found.append((match.start(), match[0], None))
    return found


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _leaves(inner, (*path, key))
        if isinstance(inner, dict) and isinstance(key, str) and len(path) > 1 and _addresses(key):
            yield (*path, key), inner
    if not isinstance(value, dict | list):
        yield path, value


def _odd(path: Path, value: Any) -> Iterator[tuple[Any, str]]:
    """Yield odd values for a value, and what they mean."""
    key = str(path[-1])
    if isinstance(value, bool):
        yield from (("maybe", "nothing"), (str(value).lower(), "nothing"))
    elif isinstance(value, int) and key in {"maskSize", "blockSize", "perNodeHostBits"}:
        yield from ((odd, "nothing") for odd in (300, -1, "nonsense", [value]))
        yield 0, "a default" if key == "blockSize" else "nothing"
    elif isinstance(value, str):
        found = _addresses(value)
        for at, text, block in found:

            def put(odd: str, at: int = at, text: str = text) -> str:
                return value[:at] + odd + value[at + len(text) :]

            length = "/24" if block else ""
            for odd in ("nonsense", f"10.1.0.300{length}", "10.1.0.0/33"):
                yield put(odd), "nothing"
            if block and block.size > 5:
                yield put(f"{address_text(block.family, block.first + 5)}/{block.prefix}"), "the same"
            if block and block.family == 4:
                yield put(f"::ffff:{address_text(4, block.first)}/{block.prefix + 96}"), "the same"
            if text == value:
                yield from ((7, "nothing"), ([value], "nothing"), (None, "absent"))
        if value in {"true", "false"}:
            yield from ((odd, "the same") for odd in (value.title(), value[0], value[0].upper()))
            yield from (("maybe", "nothing"), ("yes", "nothing"))
        elif not found and "mask" in f"{key} {path[1:]} {value}".lower():
            for match in _SIZE(value):
                for odd in ("nonsense", "300", "0", "-1", "024"):
                    yield value[: match.start()] + odd + value[match.end() :], "nothing"


def cases(cluster: str) -> Iterator[Case]:
    """Yield a cluster with each odd value."""
    whole = CLUSTERS[cluster]
    for path, value in _leaves(whole):
        if isinstance(value, dict):  # addresses that are keys
            odds: list[tuple[Any, str]] = [
                (odd, "nothing") for odd in ("nonsense", "10.1.0.300", "10.1.0.1/33")
            ]
        else:
            odds = list(_odd(path, value))
        for odd, means in odds:
            objects = copy.deepcopy(whole)
            container: Any = objects
            for key in path[:-1]:
                container = container[key]
            if isinstance(value, dict):
                container[odd] = container.pop(path[-1])
            else:
                container[path[-1]] = odd
            yield Case(path, means, objects, str(odd))


Findings = list[Diagnostic]


def brought(objects: list[Object]) -> tuple[dict[str, str], str, Findings, Compilation | None]:
    """Import and compile: files, lock and findings; no files if the import is refused."""
    found: Findings = []
    files: dict[str, str] = {}
    try:
        dump, warnings = read_dump([("dump.json", [dumps.kubectl(*objects).encode()])])
        found += warnings
        imported = bring_in(NAME, dump, Options(cilium=(1, 18), managed_by="helm"))
        found += imported.findings
        files = dict(imported.files)
        compilation = compiled(files)
    except Refused as refused:
        return files, "", [*found, *refused.diagnostics], None
    return files, compilation.lock, [*found, *compilation.diagnostics], compilation


def fresh(found: Findings, before: Findings, item: Object) -> list[str]:
    """Return the messages that are new, and name an object or have its place."""
    known = {each.message for each in before}
    named = (item["kind"], item["metadata"]["name"])
    return [
        each.message
        for each in found
        if each.message not in known
        and (
            any(name in each.message for name in named)
            or item["kind"].lower() in each.help
            or (isinstance(each.at, Span) and each.at.line > 1)
        )
    ]


def chosen() -> dict[str, list[Case]]:
    """Return the cases of each cluster; in a part of the tests, one of each kind."""
    known: set[Any] = set()
    found: dict[str, list[Case]] = {}
    for cluster in CLUSTERS:
        for case in cases(cluster):
            if depth.ALL or case.kind not in known:
                known.add(case.kind)
                found.setdefault(cluster, []).append(case)
    return found


@pytest.fixture(scope="module")
def every() -> dict[str, list[Case]]:
    return chosen()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_an_import_reads_it_or_says_so(cluster: str, every: dict[str, list[Case]]) -> None:
    files, lock, before, _ = brought(CLUSTERS[cluster])
    assert lock
    silent = []
    for case in every.get(cluster, ()):
        item = CLUSTERS[cluster][int(case.path[0])]
        now, its_lock, found, _ = brought(case.objects)
        same, said = (now, its_lock) == (files, lock), fresh(found, before, item)
        if case.means == "absent":
            gone = copy.deepcopy(case.objects)
            container: Any = gone
            for key in case.path[:-1]:
                container = container[key]
            container.pop(case.path[-1])
            fine = bool(said) or (now, its_lock) == brought(gone)[:2]
        elif case.means == "nothing":
            unread = case.path[-1] in UNREAD and item["kind"] != "IPAMConfig"
            fine = bool(said) or (same and unread)
        else:
            quiet = case.means == "a default" or "/" not in case.text
            other = not now or bool(
                {"podCIDR", "podCIDRs"} & {*case.path}
            )  # one overrides the other where they differ
            fine = (same and (bool(said) or quiet)) or (other and bool(said))
        if not fine:
            silent.append((item["kind"], case.path[1:], case.text, case.means, said))
    assert silent == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_refresh_and_audit_read_it_or_say_so(cluster: str, every: dict[str, list[Case]]) -> None:
    files, _, _, compilation = brought(CLUSTERS[cluster])
    assert compilation
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
    there, _ = read(NAME, FOLDER, sources, SCHEMAS)
    git = Manifests({path: text.encode() for path, text in compilation.files.items()})
    plan = compilation.plan

    def seen(objects: list[Object]) -> tuple[dict[str, str], Findings, Findings]:
        """Return what a refresh writes, what is said of the dump, and what an audit finds."""
        try:
            dump, warnings = read_dump([("dump.json", [dumps.kubectl(*objects).encode()])])
            texts = refresh(there, FOLDER, dump, Past())
        except Refused as refused:
            return {}, list(refused.diagnostics), []
        scene = Context(cluster=plan.cluster, lock=plan.lock, dump=dump, git=git, applied=git)
        return texts, warnings, list(audit(scene))

    texts, warnings, findings = seen(CLUSTERS[cluster])
    for case in every.get(cluster, ()):
        if case.means != "absent":
            now, said, found = seen(case.objects)
            known = {each.message for each in (*warnings, *findings)}
            told = [each.message for each in (*said, *found) if each.message not in known]
            lost = [each.message for each in findings if each.message not in {one.message for one in found}]
            assert told or (now == texts and not lost), (case.path, case.text)
