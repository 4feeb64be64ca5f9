"""The running cluster of the README and of pages: 300 nodes in six racks on stock Cilium, as kubectl prints it.

    python -m tests.support.running_cluster > dump.json
    python -m tests.support.running_cluster broken > dump.json

Its nodes have the blocks that Cilium's operator gave them, in the order in which they joined, so racks are mixed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import islice

from tests.support import dumps, living

RACKS, OF_A_RACK = "abcdef", 50
RANGE = IPv4Network("10.128.0.0/15")


def objects(*, broken: bool = False) -> Iterator[dumps.Object]:
    """Return the objects of the dump, in order of kind as kubectl prints them.
    Where it is `broken`, two nodes have one block, and a CiliumNode is left of a machine that is gone.
    """
    names = [f"node-{rack}-{number:02}" for rack in RACKS for number in range(1, OF_A_RACK + 1)]
    came = sorted(names, key=lambda name: (name[-2:], name[::-1]))  # one of each rack, then the next of each
    blocks = dict(zip(came, map(str, islice(RANGE.subnets(new_prefix=24), len(came))), strict=True))
    if broken:
        blocks["node-c-21"] = blocks["node-b-07"]
        yield dumps.cilium_node("node-f-51", "10.129.60.0/24", router=["10.129.60.1"])
    for at, name in enumerate(names):
        labels = {
            "topology.kubernetes.io/zone": "fra1",
            "rack": name.split("-")[1],
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "metal",
        }
        yield dumps.node(name, labels=labels, ip=f"192.168.{at // 200}.{at % 200 + 10}")
    for name, block in blocks.items():
        yield dumps.cilium_node(name, block, router=[block.replace(".0/24", ".1")])
    for name, block in blocks.items():
        ip = block.replace(".0/24", ".18" if broken and name == "node-c-21" else ".17")
        yield dumps.pod(f"web-{name}", name, ip, namespace="shop")
        yield living.agent(name, "v1.18.3")
        yield living.endpoint(f"web-{name}", ip, namespace="shop")
    operator = dumps.pod(
        "cilium-operator-5f6b", "node-a-01", "192.168.0.10", namespace="kube-system", hostNetwork=True
    )
    operator["metadata"]["labels"] = {"io.cilium/app": "operator", "name": "cilium-operator"}
    operator["spec"]["containers"] = [
        {
            "name": "cilium-operator",
            "image": "quay.io/cilium/operator-generic:v1.18.3",
            "command": ["cilium-operator-generic"],
            "args": ["--config-dir=/tmp/cilium/config-map", "--debug=$(CILIUM_DEBUG)"],
        }
    ]
    yield operator
    config = dumps.config_map(
        ipam="cluster-pool",
        cluster_pool_ipv4_cidr=str(RANGE),
        cluster_pool_ipv4_mask_size="24",
        enable_ipv4="true",
        enable_ipv6="false",
        routing_mode="native",
        ipv4_native_routing_cidr="10.128.0.0/13",
        cluster_name="prod",
    )
    config["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    config["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cilium"}
    yield config


if __name__ == "__main__":
    sys.stdout.write(dumps.kubectl(*objects(broken="broken" in sys.argv)))
