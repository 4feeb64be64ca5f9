"""What has to hold of everything that the compiler writes, wherever it is applied."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, NODE_CONFIGS, NODES, POOLS, Api, Object, versions
from tests.e2e.objects import verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site, by_address, dumped, loaded


def prove(site: Site, operator: Operator, *, running: bool) -> None:
    """Apply all that was rendered, with the operator running before or started after; nobody may refuse it, change it, or lose it.

    The expectation is the lock, not what was rendered. The operator then restarts and is killed; the agents start; an ordinary apply follows each.
    """
    in_order(site)
    if running:
        with operator.running(site.config, *site.arguments) as program:
            site.apply()
            apply_seeds(site)
            holds(site, operator)
            applying_again_changes_nothing(site)
            program.stop(signal.SIGKILL)
    else:
        site.apply()
        apply_seeds(site)
    with operator.running(site.config, *site.arguments) as program:
        program.stop(signal.SIGKILL)  # while it reads what is there
    with operator.running(site.config, *site.arguments):
        holds(site, operator)
    with operator.running(site.config, *site.arguments):
        holds(site, operator)
        agents_start(site)
        applying_again_changes_nothing(site)
        holds(site, operator)
        if site.config["ipam"] == "multi-pool":
            an_agent_asks_for_more(site, operator)
            applying_again_changes_nothing(site)


def in_order(site: Site) -> None:
    """Nothing is lost, made up or moved between our files and kustomize's output, and what a CiliumNode or a CiliumNodeConfig names comes before it."""
    built = [identity(each) for each in loaded(site.build())]
    assert built == [identity(each) for each in resources(site.rendered)], (
        "kustomize gives the objects in another order than our files"
    )
    pools = {name: index for index, (kind, _, name) in enumerate(built) if kind == "CiliumPodIPPool"}
    for index, each in enumerate(resources(site.rendered)):
        named = (
            each["spec"]["defaults"].get("ipam-default-ip-pool", "")
            if each["kind"] == "CiliumNodeConfig"
            else ""
        )
        assert pools.get(named, -1) < index, f"{identity(each)} comes before the pool that it names"
        assert each["kind"] != "CiliumNode" or index > max(pools.values(), default=-1), (
            f"{identity(each)} comes before a pool"
        )


def resources(folder: Path) -> list[Object]:
    """Read the documents that a kustomization leads to, in its order."""
    found: list[Object] = []
    for name in loaded((folder / "kustomization.yaml").read_text())[0].get("resources", ()):
        path = folder / name
        found += resources(path) if path.is_dir() else loaded(path.read_text())
    return found


def owns_config(site: Site) -> bool:
    """Tell whether the ConfigMap is applied with the rest: nobody else owns it."""
    return bool(site.cluster["cilium"]["managedBy"] == "none")


def identity(document: Object) -> tuple[str, str, str]:
    """Return what makes an object one in a cluster."""
    return document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]


def apply_seeds(site: Site, *options: str) -> None:
    """Apply `seeds/`: once, before the agents of the nodes start."""
    if seeds := site.rendering("seeds/*.yaml"):
        site.api.applied(dumped(seeds), *options)


def handled_by_operator(site: Site) -> bool:
    """Tell whether the operator hands out blocks in this cluster: else it leaves CiliumNodes alone."""
    ipam = site.cluster["ipam"]
    return (ipam["mode"], ipam.get("operator")) == ("cluster-pool", "adopt") or bool(
        ipam["mode"] == "multi-pool"
    )


def at_rest(
    api: Api, operator: Operator, config: Mapping[str, str], *, handled: bool, seconds: float = 90
) -> dict[str, Object]:
    """Wait until nobody writes any more; give the CiliumNodes. `handled`: an operator runs, and shows by a witness that it has read all that was there."""
    if handled:
        witness(api, operator, config)
    # It has a word for each, some seconds later from 1.19 on
    if handled and config["ipam"] == "cluster-pool":
        until(
            lambda: all(
                "operator-status" in each.get("status", {}).get("ipam", {})
                for each in api.items(CILIUM_NODES).values()
            ),
            "the operator has looked at every CiliumNode",
            seconds,
        )

    def seen() -> dict[str, str]:
        return {
            f"{path}/{name}": version
            for path in (CILIUM_NODES, POOLS, NODES)
            for name, version in versions(api.items(path)).items()
        }

    end = time.monotonic() + seconds
    before = seen()
    while True:
        time.sleep(0.5)
        now = seen()
        if now == before:
            return api.items(CILIUM_NODES)
        assert time.monotonic() < end, f"not at rest after {seconds:g} seconds"
        before = now


def witness(api: Api, operator: Operator, config: Mapping[str, str]) -> None:
    """Have the operator serve one more CiliumNode, which goes again. It writes nothing where nothing is to be done: only this shows that it has looked."""
    four = config["enable-ipv4"] == "true"
    body: Object = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": "witness"},
        "spec": {},
    }
    if config["ipam"] == "multi-pool":
        ranges = (
            {"ipv4": {"cidrs": ["203.0.113.0/24"], "maskSize": 28}}
            if four
            else {"ipv6": {"cidrs": ["2001:db8:0:1::/64"], "maskSize": 80}}
        )
        api.create(
            POOLS,
            {
                "apiVersion": "cilium.io/v2alpha1",
                "kind": "CiliumPodIPPool",
                "metadata": {"name": "witness"},
                "spec": ranges,
            },
        )
        needed = {"ipv4-addrs" if four else "ipv6-addrs": 1}
        body["spec"] = {"ipam": {"pools": {"requested": [{"pool": "witness", "needed": needed}]}}}
    api.create(CILIUM_NODES, body)

    def served() -> bool:
        ipam = api.get(f"{CILIUM_NODES}/witness")["spec"].get("ipam", {})
        return bool(ipam.get("podCIDRs") or ipam.get("pools", {}).get("allocated"))

    assert operator.program
    operator.program.until(served, "the operator serves a new CiliumNode")
    api.delete(f"{CILIUM_NODES}/witness", f"{POOLS}/witness")


def holds(site: Site, operator: Operator) -> None:
    """Every node ends with exactly the blocks of the lock, in our bytes, and the operator finds nothing wrong.

    With `operator: adopt` it says of blocks that it may not give out that it does not know them.
    """
    live = at_rest(site.api, operator, site.config, handled=handled_by_operator(site))
    adopts = site.cluster["ipam"].get("operator") == "adopt"
    for name, node in live.items():
        said = verdict(node)
        if not (adopts and said in unknown_blocks(site, node)):
            assert not said, f"{name}: {said}"
    mode = site.cluster["ipam"]["mode"]
    if mode == "kubernetes":
        assert node_blocks(site) == expected_nodes(site)
    else:
        assert {name: node["spec"]["ipam"].get("podCIDRs", ()) for name, node in live.items()} == {
            name: by_address(block for _, block in blocks) if mode != "multi-pool" else ()
            for name, blocks in expected(site).items()
        }
    if mode == "multi-pool":
        assert {
            name: node["spec"]["ipam"].get("pools", {}).get("allocated", []) for name, node in live.items()
        } == expected_seeds(site, operator)
        assert {name: spec(each) for name, each in site.api.items(POOLS).items()} == expected_pools(
            site, operator
        )
    if mode == "crd":
        assert {name: sorted(node["spec"]["ipam"]["pool"]) for name, node in live.items()} == {
            name: sorted(address for _, block in blocks for address in addresses(block))
            for name, blocks in expected(site).items()
        }
    if owns_config(site):
        assert site.api.get(f"{CONFIG_MAPS}/cilium-config")["data"] == site.config


def unknown_blocks(site: Site, node: Object) -> set[str]:
    """Return what the operator says of those blocks of a CiliumNode that are not in its list."""
    listed = [
        ip_network(cidr)
        for family in (4, 6)
        for cidr in site.config.get(f"cluster-pool-ipv{family}-cidr", "").split()
    ]
    blocks = [ip_network(block) for block in node["spec"]["ipam"].get("podCIDRs", ())]
    outside = [block for block in blocks if not any(block.overlaps(cidr) for cidr in listed)]
    return {f"allocator not configured for the requested CIDR {block}" for block in outside}


def expected(site: Site) -> dict[str, list[tuple[str, str]]]:
    """Return the lock's pools and blocks of the nodes that have a CiliumNode: planned ones only where the operator does not collect them."""
    planned = {
        node["name"]
        for document in site.documents()
        for node in document.get("nodes", ())
        if node.get("planned")
    }
    early = tuple(map(int, site.version.split("."))) < (1, 18)
    return {name: blocks for name, blocks in site.lock().items() if not (early and name in planned)}


def expected_seeds(site: Site, operator: Operator) -> dict[str, list[Object]]:
    """Return `pools.allocated` as the operator writes it: pools by name; CIDRs in order of text before 1.20 (seen: 10.20.0.128/27 before 10.20.0.96/27)."""
    numeric = operator.version >= (1, 20)
    pinned = site.cluster["ipam"].get("pinning") == "node"
    shared = {each["metadata"]["name"] for each in site.rendering("cilium/ippools.yaml")}
    found: dict[str, list[Object]] = {}
    for name, blocks in expected(site).items():
        pools: dict[str, list[str]] = defaultdict(list)
        for pool, block in blocks:
            pools[f"{pool}.{name}" if pinned and pool not in shared else pool].append(block)
        found[name] = [
            {"cidrs": by_address(some) if numeric else sorted(some), "pool": pool}
            for pool, some in sorted(pools.items())
        ]
    return found


def expected_pools(site: Site, operator: Operator) -> dict[str, Object]:
    """Return the CiliumPodIPPools that there should be, whoever creates them: from manifests, and from the inputs where the operator's flag does.

    From 1.20 on the apiserver fills in what was not said of the first and the last address.
    """
    pools = {
        each["metadata"]["name"]: spec(each)
        for each in site.rendering("cilium/ippools.yaml", "pools/*/ippools.yaml")
    }
    names = site.cluster["ipam"].get("autoCreate", ())
    for document in site.documents():
        if document["kind"] == "IPPool" and document["metadata"]["name"] in names:
            families = {key: value for key, value in document["spec"].items() if key in {"ipv4", "ipv6"}}
            pools[document["metadata"]["name"]] = {
                family: {"cidrs": each["cidrs"], "maskSize": each["blockSize"]}
                for family, each in families.items()
            }
    filled_in = {"allowFirstIP": False, "allowLastIP": False} if operator.version >= (1, 20) else {}
    return {name: {**filled_in, **each} for name, each in pools.items()}


def spec(document: Object) -> Object:
    """Return an object's spec."""
    return dict(document["spec"])


def node_blocks(site: Site) -> dict[str, object]:
    """Return what each Node says of its blocks: podCIDRs with the first one apart, or annotations."""
    found: dict[str, object] = {}
    annotated = site.cluster.get("patchNodes") == "annotations"
    for name, node in site.api.items(NODES).items():
        if annotated:
            found[name] = sorted(
                value
                for key, value in node["metadata"].get("annotations", {}).items()
                if key.endswith("-pod-cidr")
            )
        else:
            found[name] = (node["spec"].get("podCIDR"), *node["spec"].get("podCIDRs", ()))
    return found


def expected_nodes(site: Site) -> dict[str, object]:
    """Return the same from the lock: the primary family first."""
    cluster = site.cluster
    families = cluster.get("ipFamilies", ["IPv4"])
    found: dict[str, object] = {}
    for name, some in expected(site).items():
        blocks = sorted(
            (block for _, block in some), key=lambda block: families.index(f"IPv{ip_network(block).version}")
        )
        found[name] = sorted(blocks) if cluster.get("patchNodes") == "annotations" else (blocks[0], *blocks)
    return found


def addresses(block: str) -> Iterator[str]:
    """Return the addresses of a block that pods can have: first and last left out where there are more than two."""
    network = ip_network(block)
    last = network.num_addresses - 1
    return (str(address) for index, address in enumerate(network) if last < 2 or 0 < index < last)


def applying_again_changes_nothing(site: Site) -> None:
    """A second apply is accepted, and writes nothing: no drift for a GitOps tool to fight over."""
    before = everything(site.api)
    site.apply()
    assert everything(site.api) == before


def everything(api: Api) -> dict[str, str]:
    """Return the resourceVersion of all that a cluster's output can touch."""
    return {
        f"{path}/{name}": version
        for path in (NODES, CONFIG_MAPS, POOLS, CILIUM_NODES, *NODE_CONFIGS)
        for name, version in versions(api.items(path)).items()
    }


# The agent's part. No agent runs here: it needs a kernel of its own.


def agents_start(site: Site) -> None:
    """Let every node's agent start: it replaces what it owns in its CiliumNode, by a full update (pkg/nodediscovery, 1.15 to 1.20)."""
    nodes = site.api.items(NODES)
    live = [node for node in site.api.items(CILIUM_NODES).values() if node["metadata"]["name"] in nodes]
    multi_pool = site.cluster["ipam"]["mode"] == "multi-pool"
    site.api.at_once(lambda each: agent_starts(site.api, each, nodes, multi_pool=multi_pool), live)
    until(lambda: len(site.api.items(CILIUM_NODES)) >= len(live), "the CiliumNodes are there")


def agent_starts(api: Api, seen: Object, nodes: Mapping[str, Object], *, multi_pool: bool) -> Object:
    """Let one agent start. In multi-pool mode it asks the pool of its first block for what an idle agent with a pre-allocation of 8 asks for."""
    name = seen["metadata"]["name"]
    node = nodes[name]["metadata"]

    def edit(whole: Object) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["uid"]}
        whole["metadata"] |= {
            "labels": node.get("labels", {}),
            "annotations": {"cilium.io/test": "e2e"},
            "ownerReferences": [owner],
        }
        whole["spec"]["addresses"] = [{"type": "InternalIP", "ip": "172.18.0.9"}]
        whole["spec"]["health"] = {"ipv4": "172.18.0.10"}
        if multi_pool and (allocated := whole["spec"]["ipam"]["pools"].get("allocated")):
            needed = {"ipv4-addrs": 16} if "." in allocated[0]["cidrs"][0] else {"ipv6-addrs": 16}
            whole["spec"]["ipam"]["pools"]["requested"] = [{"pool": allocated[0]["pool"], "needed": needed}]

    return api.change(f"{CILIUM_NODES}/{name}", edit)


def an_agent_asks_for_more(site: Site, operator: Operator) -> None:
    """Let one agent ask for more than its blocks hold: it is given another block of its pool, or with a pool of its own nothing but an answer."""
    name, node = next(iter(site.api.items(CILIUM_NODES).items()))
    first = node["spec"]["ipam"]["pools"]["allocated"][0]
    usable = sum(ip_network(cidr).num_addresses for cidr in first["cidrs"])
    request = {
        "pool": first["pool"],
        "needed": {"ipv4-addrs" if "." in first["cidrs"][0] else "ipv6-addrs": usable},
    }
    site.api.change(
        f"{CILIUM_NODES}/{name}", lambda whole: whole["spec"]["ipam"]["pools"].update(requested=[request])
    )
    after = at_rest(site.api, operator, site.config, handled=True)[name]
    given = after["spec"]["ipam"]["pools"]["allocated"][0]["cidrs"]
    assert set(first["cidrs"]) <= set(given)
    pinned = site.cluster["ipam"].get("pinning") == "node"
    assert (
        ("pool empty" in after["status"]["ipam"]["operator-status"]["error"])
        if pinned
        else len(given) > len(first["cidrs"])
    )


def with_operator(
    api: Api, operator: Operator, config: Mapping[str, str], *nodes: Object
) -> dict[str, Object]:
    """Create CiliumNodes one after the other while an operator runs; give what becomes of them."""
    with operator.running(config):
        for node in nodes:
            api.create(CILIUM_NODES, node)
            live = at_rest(api, operator, config, handled=True)
    return live
