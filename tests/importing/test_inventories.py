"""A refresh of several inventories: a node stays in the file that it is in, and no other file is touched."""

from __future__ import annotations

import re

import pytest

from ipamc.importing.refresh import Past, about_nodes, inventories, is_inventory, refresh
from ipamc.model.cluster import Cluster
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

CONFIG = dumps.config_map(
    ipam="cluster-pool", enable_ipv4="true", enable_ipv6="false", cluster_pool_ipv4_cidr="10.0.0.0/16"
)
HEAD = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n"


def there(*names: str) -> list[dumps.Object]:
    """Return the objects of a cluster with these nodes; the number of a node is in its block."""
    blocks = [dumps.cilium_node(name, f"10.0.{name[1:]}.0/24") for name in names]
    return [*(dumps.node(name, uid=f"uid-{name}") for name in names), *blocks, CONFIG]


def sources_of(**more: str) -> dict[str, bytes]:
    """Return the files of a cluster that was imported with the nodes n1 and n2, and of two racks."""
    files = {
        **imported(there("n1", "n2")).files,
        **{f"nodes-{name}.yaml": text for name, text in more.items()},
    }
    return {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}


def cluster_of(sources: dict[str, bytes]) -> Cluster:
    return read(NAME, FOLDER, sources, SCHEMAS)[0]


def names(text: str) -> list[str]:
    return [line.split()[2].strip(",}") for line in text.splitlines() if line.startswith("- {name: ")]


A = f"# rack a\n---\n{HEAD}- {{name: n3, labels: {{rack: a}}, planned: true}}\n- {{name: n4, labels: {{rack: a}}, planned: true}}\n"
B = f"{HEAD}- {{name: n5, labels: {{rack: b}}, planned: true}}\n"


PATTERN = f'{HEAD}- {{names: "n{{3..6}}", labels: {{rack: a}}, maxPods: 60, planned: true}}\n'


def test_a_node_that_joined_leaves_its_pattern() -> None:
    """Of n3 to n6 the node n4 has joined: it has an entry of its own, and the pattern is cut around it."""
    sources = sources_of(a=PATTERN)
    joined = there("n1", "n2", "n4")
    files = refresh(cluster_of(sources), FOLDER, dump_of(joined), Past(), sources=sources)
    rows = [line for line in files["nodes-a.yaml"].splitlines() if line.startswith("- ")]
    assert rows[0] == "- {name: n3, labels: {rack: a}, maxPods: 60, planned: true}"
    assert rows[1].startswith("- {name: n4, uid: uid-n4")
    assert rows[2:] == ['- {names: "n{5..6}", labels: {rack: a}, maxPods: 60, planned: true}']
    later = {**sources, **{f"{FOLDER}/{name}": text.encode() for name, text in files.items()}}
    assert refresh(cluster_of(later), FOLDER, dump_of(joined), Past(), sources=later) == files
    assert [node.name for node in cluster_of(later).nodes] == [f"n{number}" for number in range(1, 7)]
    every = there("n1", "n2", "n3", "n4", "n5", "n6")
    done = refresh(cluster_of(later), FOLDER, dump_of(every), Past(), sources=later)
    assert names(done["nodes-a.yaml"]) == ["n3", "n4", "n5", "n6"]


def test_a_pattern_with_a_maximum_stays_whole() -> None:
    """The limit is not lost when all nodes of an autoscaler have joined, and a node that left is planned again."""
    group = PATTERN.replace("planned: true", "planned: true, maximum: 9")
    kept = '- {names: "n{3..6}", labels: {rack: a}, maxPods: 60, planned: true, maximum: 9}'
    later = sources_of(a=group)
    for running in (["n1", "n2", "n4"], ["n1", "n2", "n3", "n4", "n5", "n6"], ["n1", "n2"]):
        files = refresh(cluster_of(later), FOLDER, dump_of(there(*running)), Past(), sources=later)
        rows = files["nodes-a.yaml"].splitlines()
        assert rows[-1] == kept
        assert names(files["nodes-a.yaml"]) == running[2:]
        later = {**later, **{f"{FOLDER}/{name}": text.encode() for name, text in files.items()}}
        cluster = cluster_of(later)
        assert [node.name for node in cluster.nodes] == [f"n{number}" for number in range(1, 7)]
        assert [node.name for node in cluster.groups[0].more] == [f"n{number}" for number in range(7, 12)]
        assert [node.name for node in cluster.nodes if not node.planned] == running


def test_a_node_stays_in_its_file() -> None:
    """Of the racks a and b a node of a has joined: b is not written, and what is new is in nodes.yaml."""
    sources = sources_of(a=A, b=B)
    files = refresh(cluster_of(sources), FOLDER, dump_of(there("n1", "n3", "n9")), Past(), sources=sources)
    assert {name: names(text) for name, text in files.items() if name != "ciliumnodes.yaml"} == {
        "nodes.yaml": ["n1", "n9"],
        "nodes-a.yaml": ["n3", "n4"],
    }
    assert "uid: uid-n3" in files["nodes-a.yaml"]
    assert "{name: n4, labels: {rack: a}, planned: true}" in files["nodes-a.yaml"]
    later = {**sources, **{f"{FOLDER}/{name}": text.encode() for name, text in files.items()}}
    again = refresh(cluster_of(later), FOLDER, dump_of(there("n1", "n3", "n9")), Past(), sources=later)
    assert again == files
    left = refresh(cluster_of(later), FOLDER, dump_of(there("n1", "n9")), Past(), sources=later)
    assert names(left["nodes-a.yaml"]) == ["n4"], "a node that left leaves its file"
    texts = {path.removeprefix(f"{FOLDER}/"): data.decode() for path, data in later.items()}
    assert set(held(compiled(texts))) == {"n1", "n3", "n4", "n5", "n9"}


def test_the_age_is_that_of_all_inventories() -> None:
    """A file of planned nodes alone tells nothing of the age: the cluster has none of them."""
    sources = sources_of(a=A.replace(", planned: true}\n- {name: n4", ", uid: uid-n3}\n- {name: n4"), b=B)
    assert inventories(cluster_of(sources), FOLDER) == [f"{FOLDER}/nodes.yaml", f"{FOLDER}/nodes-a.yaml"]


def test_nodes_that_no_dump_ever_had_are_named_by_file() -> None:
    sources = sources_of(a=A.replace(", planned: true", ""), b=B.replace(", planned: true", ""))
    said = [
        found.message for found in about_nodes(cluster_of(sources), FOLDER, dump_of(there("n1", "n2", "n3")))
    ]
    assert said == [
        "1 node leaves the inventory (no uid in nodes-a.yaml, and not in the dump): n4",
        "1 node leaves the inventory (no uid in nodes-b.yaml, and not in the dump): n5",
    ]


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (HEAD, True),
        (f"\n# rack a\n---\n{HEAD}", True),
        (HEAD.replace("kind: NodeInventory", "'kind': \"NodeInventory\"  # nodes\r"), True),
        (f"{HEAD}- {{name: n1, labels: {{kind: worker}}}}\n- name: n2\n  labels:\n    kind: x\n", True),
        (f"{HEAD}---\nkind: IPPool\n", False),
        (f"{HEAD}---\n{{kind: IPPool}}\n", False),
        (f"{HEAD}...\n{{kind: IPPool}}\n", False),
        (f"kind: IPPool\n---\n{HEAD}", False),
        (f"{{kind: IPPool}}\n---\n{HEAD}", False),
        (f"{HEAD}---\n{HEAD}", False),
        ("{apiVersion: ipamc/v1alpha1, kind: NodeInventory, nodes: []}\n", False),
        ("apiVersion: v1\nkind: List\n", False),
        (HEAD.replace("NodeInventory", "NodeInventories"), False),
        ("", False),
    ],
)
def test_a_file_that_is_an_inventory_and_nothing_else(text: str, sure: bool) -> None:  # noqa: FBT001 - a column
    assert is_inventory("nodes-a.yaml", text.encode()) is sure
    assert not is_inventory("nodes-a.json", text.encode())


@pytest.mark.parametrize("dual", [False, True], ids=["single stack", "dual stack"])
def test_addresses_of_nodes_are_at_most_a_third_of_what_else_an_inventory_has(*, dual: bool) -> None:
    """Of 1,000 nodes with a zone and a rack: 19 percent, and 33 of both families; further labels make it less."""
    objects = [CONFIG]
    for number in range(1000):
        labels = {
            "topology.kubernetes.io/zone": f"hall-{number // 250}",
            "example.com/rack": f"r{number // 40:02}",
        }
        name, uid = f"worker-{number:04}", f"{number:08x}-1111-4111-8111-{number:012x}"
        node = dumps.node(name, uid=uid, labels=labels)
        ips = [f"172.16.{number // 250}.{number % 250 + 1}", f"2001:db8:10:1::{number + 16:x}"]
        node["status"]["addresses"] = [{"type": "InternalIP", "address": ip} for ip in ips[: 1 + dual]]
        objects += [node, dumps.cilium_node(name, f"10.0.{number // 4}.{number % 4 * 64}/26")]
    text = imported(objects).files["nodes.yaml"]
    less, found = re.subn(r", internalIPs: \[.*?\]", "", text)
    assert found == 1000
    assert 3 * (len(text) - len(less)) <= len(less)
