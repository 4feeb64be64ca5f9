"""Print the dump of a running cluster for a page of the documentation: `python -m tests.support.page_dump zones --join bj-004=bj-003`.

The cluster runs as `clusters/NAME` in the working directory is compiled. What has happened to it since is said by options. The pages run it unseen,
in place of `kubectl get … -o json`.
"""

from __future__ import annotations

import argparse
import copy
import ipaddress
import sys

from msgspec.structs import replace

from ipamc.pipeline import compile_cluster
from ipamc.workspace.environment import today
from ipamc.workspace.source import Disk
from tests.support import dumps
from tests.support.living import Living, endpoint


def main() -> None:
    """Print it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cluster")
    options.add_argument(
        "--join", action="append", default=[], metavar="NODE=LIKE", help="a node that joined"
    )
    options.add_argument("--again", action="append", default=[], metavar="NODE", help="it was created again")
    options.add_argument("--gone", action="append", default=[], metavar="NODE")
    options.add_argument("--swap", nargs=2, metavar="NODE", help="two Nodes have each other's podCIDRs")
    options.add_argument("--label", action="append", default=[], metavar="NODE:KEY=VALUE")
    options.add_argument(
        "--used", action="append", default=[], metavar="NODE=NUMBER", help="addresses in use"
    )
    options.add_argument("--returned", action="append", default=[], metavar="NODE=CIDR", help="by its agent")
    options.add_argument("--flag", action="append", default=[], metavar="KEY=VALUE", help="of cilium-config")
    given = options.parse_args()
    live = Living.of(compile_cluster(replace(Disk().inputs(f"clusters/{given.cluster}"), today=today())))
    for node in live.git.plan.cluster.nodes:
        if node.max_pods and not node.planned:
            live[f"Node {node.name}"]["status"]["allocatable"]["pods"] = str(node.max_pods)
    for each in given.join:
        join(live, *each.split("="))
    for name in given.again:
        live[f"Node {name}"]["metadata"]["uid"] = f"uid-of-the-new-{name}"
        live[f"Node {name}"]["spec"] = {}
        live.add(dumps.cilium_node(name, owner=f"uid-of-the-new-{name}"))
    for name in given.gone:
        gone(live, name)
    if given.swap:
        one, other = (live[f"Node {name}"] for name in given.swap)
        one["spec"], other["spec"] = other["spec"], one["spec"]
    for each in given.label:
        name, _, label = each.partition(":")
        key, _, value = label.partition("=")
        live[f"Node {name}"]["metadata"]["labels"][key] = value
    for each in given.used:
        use(live, *each.split("="))
    for each in given.returned:
        name, _, cidr = each.partition("=")
        for entry in live[f"CiliumNode {name}"]["spec"]["ipam"]["pools"]["allocated"]:
            entry["cidrs"] = [other for other in entry["cidrs"] if other != cidr]
    live["ConfigMap kube-system cilium-config"]["data"].update(each.split("=") for each in given.flag)
    sys.stdout.write(live.text())


def join(live: Living, name: str, like: str) -> None:
    """Let a node join that has no block yet: its agent waits, so it is not Ready."""
    node = copy.deepcopy(live[f"Node {like}"])
    node["metadata"]["name"], node["metadata"]["uid"] = name, f"uid-{name}"
    node["metadata"]["labels"]["kubernetes.io/hostname"] = name
    node["spec"], node["status"]["addresses"] = {}, []
    for condition in node["status"]["conditions"]:
        condition["status"] = "False"
    live.add(node, dumps.cilium_node(name, owner=f"uid-{name}"))


def gone(live: Living, name: str) -> None:
    """Let a node leave with all that ran there."""
    live.objects = {
        key: item
        for key, item in live.objects.items()
        if name not in {key.split()[-1].removeprefix("web-"), item.get("spec", {}).get("nodeName")}
    }


def use(live: Living, name: str, number: str) -> None:
    """Let pods use the first addresses of a node's blocks."""
    seen = live[f"CiliumNode {name}"]["spec"]["ipam"]
    blocks = [cidr for entry in seen.get("pools", {}).get("allocated", ()) for cidr in entry["cidrs"]]
    free = [str(host) for block in blocks or seen["podCIDRs"] for host in ipaddress.ip_network(block).hosts()]
    for host in free[: int(number)]:
        live.add(endpoint(f"pod-{host.replace('.', '-')}", host))


if __name__ == "__main__":
    main()
