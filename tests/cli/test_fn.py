"""`ipamc fn`: a KRM function compiles as `ipamc compile` does, and its results are the findings."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ipamc.read.resource_list import read_resource_list
from ipamc.report.resource_list import dumps
from tests.support.examples import ALONE
from tests.support.in_process import ipamc

Object = dict[str, Any]
CLUSTER = {
    "apiVersion": "ipamc/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "lab"},
    "spec": {"cilium": {"version": "1.18", "managedBy": "helm"}, "ipam": {"mode": "cluster-pool"}},
}
POOL = {
    "apiVersion": "ipamc/v1alpha1",
    "kind": "IPPool",
    "metadata": {"name": "default"},
    "spec": {"ipv4": {"cidrs": ["10.0.0.0/24"], "blockSize": 27}},
}
NODES = {
    "apiVersion": "ipamc/v1alpha1",
    "kind": "NodeInventory",
    "metadata": {"name": "nodes"},
    "nodes": [{"name": "n1"}, {"name": "n2", "labels": {"version": "1e3", "on": "yes"}}],
}
OTHER = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}
LOCK = (
    '{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n'
    '{"block":"10.0.0.0/27","pool":"default","node":"n1"}\n'
    '{"block":"10.0.0.32/27","pool":"default","node":"n2"}\n'
)


class Ran:
    """What a run gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.list: Object = yaml.safe_load(out) if out else {}
        self.items: list[Object] = self.list.get("items", [])
        self.results: list[Object] = self.list.get("results", [])

    def of_kind(self, kind: str) -> list[Object]:
        return [item for item in self.items if item["kind"] == kind]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(given: Any, **environment: str) -> Ran:
        text = given if isinstance(given, str) else json.dumps(given)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        done = ipamc("fn", cwd=tmp_path, environment={"SOURCE_DATE_EPOCH": "1795348800", **environment})
        return Ran(done.returncode, done.stdout, done.stderr)

    return call


def resource_list(*items: Object, **more: Any) -> Object:
    return {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [*items], **more}


def state(lock: str = LOCK) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "state"},
        "data": {"ipam.lock": lock},
    }


def at(value: Object, path: str, index: int = 0) -> Object:
    notes = {"internal.config.kubernetes.io/path": path, "internal.config.kubernetes.io/index": str(index)}
    return {**value, "metadata": {**value.get("metadata", {}), "annotations": notes}}


WRITES = {"apiVersion": "ipamc/v1alpha1", "kind": "Function", "spec": {"lock": "write"}}


def test_manifests_take_the_place_of_inputs_without_files(run: Any) -> None:
    """As kustomize runs it: what comes out is applied."""
    ran = run(resource_list(CLUSTER, POOL, NODES, state(), OTHER))
    assert ran.code == 0, ran.err
    assert [item["kind"] for item in ran.items] == ["Service", "CiliumNode", "CiliumNode"]
    assert ran.of_kind("Service") == [OTHER]
    assert [
        (node["metadata"]["name"], node["spec"]["ipam"]["podCIDRs"]) for node in ran.of_kind("CiliumNode")
    ] == [
        ("n1", ["10.0.0.0/27"]),
        ("n2", ["10.0.0.32/27"]),
    ]
    assert ran.results == []


def test_inputs_with_files_stay_and_are_not_applied(run: Any) -> None:
    """As kpt runs it: an object that does not come out is deleted from the package."""
    items = [at(item, f"{item['kind']}.yaml") for item in (CLUSTER, POOL, NODES, state(), OTHER)]
    ran = run(resource_list(*items))
    assert ran.code == 0, ran.err
    local = [
        item["kind"]
        for item in ran.items
        if "config.kubernetes.io/local-config" in item["metadata"]["annotations"]
    ]
    assert local == ["Cluster", "IPPool", "NodeInventory", "ConfigMap"]
    assert ran.of_kind("NodeInventory")[0]["nodes"] == NODES["nodes"]
    assert ran.of_kind("ConfigMap")[0]["data"] == {"ipam.lock": LOCK}


@pytest.mark.parametrize(
    ("lock", "code"),
    [
        (LOCK.replace("n2", "n3"), "IPC0413"),
        (LOCK + '{"block":"10.0.0.32/27","pool":"default","node":"n3"}\n', "IPC0407"),
    ],
    ids=["stale", "one block twice"],
)
def test_a_lock_that_is_not_sound_is_refused(run: Any, lock: str, code: str) -> None:
    ran = run(resource_list(CLUSTER, POOL, NODES, state(lock)))
    assert ran.code == 1
    assert code in {result["tags"]["code"] for result in ran.results}
    assert code in ran.err
    assert ran.of_kind("CiliumNode") == []


def test_without_a_lock_nothing_is_given_out(run: Any) -> None:
    ran = run(resource_list(CLUSTER, POOL, NODES))
    assert ran.code == 1
    assert {result["tags"]["code"] for result in ran.results} == {"IPC0413"}


def in_lab(*items: Object) -> list[Object]:
    return [at(item, f"lab/{item['kind'].lower()}.yaml") for item in items]


def test_a_state_that_was_lost_is_not_made_anew_beside_what_was_rendered(run: Any) -> None:
    """Else every node would be a newcomer, and get another block."""
    first = run(resource_list(*in_lab(CLUSTER, POOL, NODES), functionConfig=WRITES))
    assert first.code == 0, first.err
    left = [item for item in first.items if item["kind"] != "ConfigMap"]
    ran = run(resource_list(*left, functionConfig=WRITES))
    assert ran.code == 1
    (result,) = ran.results
    assert result["tags"]["code"] == "IPC0401"
    assert "git checkout HEAD -- lab/ipamc-state.yaml" in result["tags"]["help"]


@pytest.mark.parametrize("lock", [None, 1, True, [], {}, ""], ids=repr)
def test_a_lock_that_is_no_text_is_not_made_anew(run: Any, lock: object) -> None:
    kept = {**state(), "data": {"ipam.lock": lock}}
    ran = run(resource_list(*in_lab(CLUSTER, POOL, NODES, kept), functionConfig=WRITES))
    assert ran.code == 1
    (result,) = ran.results
    assert result["tags"]["code"] == "IPC0402"
    assert "git checkout HEAD -- lab/configmap.yaml" in result["tags"]["help"]


@pytest.mark.parametrize(
    "kept", [[], [state(LOCK.splitlines(keepends=True)[0])]], ids=["none", "without a file"]
)
def test_nothing_is_given_out_that_no_file_keeps(run: Any, kept: list[Object]) -> None:
    """Kustomize has no files: the next build would give the blocks to others."""
    ran = run(resource_list(CLUSTER, POOL, NODES, *kept, functionConfig=WRITES))
    assert ran.code == 1
    assert ran.out == ""
    assert "lock: write needs the files of kpt" in ran.err


def test_without_nodes_and_without_a_lock_there_is_nothing_to_keep(run: Any) -> None:
    ran = run(resource_list(CLUSTER, POOL, {**NODES, "nodes": []}))
    assert ran.code == 0, ran.err


def test_many_objects_of_one_name_cost_no_more_than_others() -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}] * 20_000
    start = time.process_time()
    assert len(read_resource_list(json.dumps(resource_list(*nodes))).sources) == 20_000
    assert time.process_time() - start < 20


def test_findings_are_results_about_an_object_a_file_and_a_field(run: Any) -> None:
    pool = at(
        {**POOL, "spec": {"ipv4": {"cidrs": ["10.0.1.0/24", "10.0.0.9/24"], "blockSize": 27}}},
        "pools.yaml",
        3,
    )
    ran = run(resource_list(CLUSTER, pool, NODES, state()))
    assert ran.code == 1
    (result,) = ran.results
    assert result["severity"] == "error"
    assert result["resourceRef"] == {"apiVersion": "ipamc/v1alpha1", "kind": "IPPool", "name": "default"}
    assert result["field"] == {"path": "spec.ipv4.cidrs[1]"}
    assert result["file"] == {"path": "pools.yaml", "index": 3}
    assert "10.0.0.9/24" in result["message"]
    assert "10.0.0.0/24" in result["tags"]["help"]


def test_a_package_keeps_its_lock_from_run_to_run(run: Any) -> None:
    """As kpt runs it: `lock: write`, and everything that came out goes in again."""
    inputs = [at(CLUSTER, "lab/cluster.yaml"), at(POOL, "lab/pools.yaml"), at(NODES, "lab/nodes.yaml")]
    first = run(resource_list(*inputs, functionConfig=WRITES))
    assert first.code == 0, first.err
    (kept,) = first.of_kind("ConfigMap")
    assert kept["data"]["ipam.lock"] == LOCK
    assert kept["metadata"]["annotations"]["internal.config.kubernetes.io/path"] == "lab/ipamc-state.yaml"
    assert {
        node["metadata"]["annotations"]["config.kubernetes.io/path"] for node in first.of_kind("CiliumNode")
    } == {"lab/rendered/ciliumnodes/000/ciliumnodes.yaml"}
    again = run(resource_list(*first.items, functionConfig=WRITES))
    assert again.items == first.items

    nodes = {**NODES, "nodes": [{"name": "n0"}, *NODES["nodes"]]}
    items = [at(nodes, "lab/nodes.yaml") if item["kind"] == "NodeInventory" else item for item in again.items]
    more = run(resource_list(*items, functionConfig={"kind": "ConfigMap", "data": {"lock": "write"}}))
    assert more.code == 0, more.err
    assert {
        node["metadata"]["name"]: node["spec"]["ipam"]["podCIDRs"][0] for node in more.of_kind("CiliumNode")
    } == {
        "n0": "10.0.0.64/27",
        "n1": "10.0.0.0/27",
        "n2": "10.0.0.32/27",
    }


def test_what_was_published_is_remembered(run: Any) -> None:
    """A shared pool that was published does not change its CIDRs: the state tells what was rendered."""
    shared = {**CLUSTER, "spec": {**CLUSTER["spec"], "ipam": {"mode": "multi-pool", "pinning": "none"}}}  # type: ignore[dict-item]
    nodes = {**NODES, "nodes": []}
    first = run(resource_list(*in_lab(shared, POOL, nodes), functionConfig=WRITES))
    assert first.code == 0, first.err
    (kept,) = first.of_kind("ConfigMap")
    wider = {**POOL, "spec": {"ipv4": {"cidrs": ["10.0.0.0/23"], "blockSize": 27}}}
    second = run(resource_list(*in_lab(shared, wider, nodes), kept, functionConfig=WRITES))
    assert second.code == 0, second.err
    (pool,) = second.of_kind("CiliumPodIPPool")
    assert pool["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/24", "10.0.1.0/24"]


@pytest.mark.parametrize("folder", ALONE, ids=lambda folder: folder.name)
def test_the_examples_compile_as_they_are_rendered(folder: Path, run: Any) -> None:
    files = sorted(path for path in folder.glob("*.yaml") if path.name != "kustomization.yaml")
    items = [document for path in files for document in yaml.safe_load_all(path.read_text()) if document]
    rendered = {
        path.relative_to(folder / "rendered").as_posix().replace("/", "."): path.read_text()
        for path in sorted((folder / "rendered").rglob("*.yaml"))
    }
    data = {"ipam.lock": (folder / "ipam.lock").read_text(), **rendered}
    ran = run(resource_list(*items, {**state(), "data": data}))
    assert ran.code == 0, ran.err
    manifests = [
        item
        for item in ran.items
        if "rendered/" in item["metadata"].get("annotations", {}).get("config.kubernetes.io/path", "")
    ]
    for item in manifests:
        path = item["metadata"]["annotations"].pop("config.kubernetes.io/path")
        index = int(item["metadata"]["annotations"].pop("config.kubernetes.io/index"))
        for key in ("path", "index"):
            item["metadata"]["annotations"].pop(f"internal.config.kubernetes.io/{key}")
        if not item["metadata"]["annotations"]:
            del item["metadata"]["annotations"]
        assert item == list(yaml.safe_load_all((folder / path).read_text()))[index]
    assert manifests


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "stdin is not a ResourceList"),
        ("a: [", "error[IPC0001]"),
        ("kind: List\nitems: []\n", "stdin is not a ResourceList"),
        ("kind: ResourceList\napiVersion: v9\n", "the ResourceList has apiVersion 'v9'"),
        (json.dumps(resource_list() | {"items": {"a": 1}}), "items of the ResourceList is not a list"),
        (json.dumps(resource_list(state(), state())), "two ConfigMaps have ipam.lock"),
        (json.dumps(resource_list(functionConfig={"kind": "Pod"})), "functionConfig is of kind 'Pod'"),
        (
            json.dumps(resource_list(functionConfig={"kind": "ConfigMap", "data": {"lock": "yes"}})),
            "lock: 'yes'",
        ),
        (json.dumps(resource_list(functionConfig=7)), "functionConfig is of kind None"),
        (json.dumps(resource_list(functionConfig={"kind": ["Pod"]})), "functionConfig is of kind ['Pod']"),
        (
            json.dumps(resource_list(functionConfig={"kind": "Function", "spec": {"lock": ["write"]}})),
            "lock: ['write']",
        ),
    ],
)
def test_what_is_no_list_is_refused(run: Any, text: str, says: str) -> None:
    ran = run(text)
    assert ran.code == 1
    assert ran.out == ""
    assert says in ran.err


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"kind": ["Cluster"], "apiVersion": {}},
        {**CLUSTER, "metadata": None},
        {**CLUSTER, "metadata": {"name": 7, "annotations": []}},
        {**CLUSTER, "metadata": {"name": "../../x"}},
        {**POOL, "metadata": {"annotations": {"config.kubernetes.io/index": "9" * 99}}},
        {"kind": "ConfigMap", "data": {"ipam.lock": None}},
        {
            "kind": "ConfigMap",
            "data": {"ipam.lock": "", "..yaml": "", "nodes.yaml": "\x00", "pools.a.ippools.yaml": "["},
        },
    ],
)
def test_odd_objects_are_findings(run: Any, item: Object) -> None:
    ran = run(resource_list(item, functionConfig=WRITES))
    assert ran.code == 1
    assert ran.results
    assert "Traceback" not in ran.err


def values() -> st.SearchStrategy[Any]:
    texts = st.text(max_size=12) | st.sampled_from(
        ["1e3", "yes", "0x1", "~", "1_0", "a: b", "- a", "a\nb\n", " a\n", "#", "|", "a\n\n", "\n"]
    )
    leaves = (
        st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False, allow_infinity=False)
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=12,
    )


@given(items=st.lists(st.dictionaries(st.text(max_size=3), values(), max_size=3), max_size=3))
@example([{"small": 1e-05, "large": -1e16, "usual": 2.5e-07}])
def test_every_reader_reads_what_is_written(items: list[Object]) -> None:
    text = dumps(items, [])
    for read in (yaml.safe_load, YAML(typ="safe", pure=True).load):
        assert read(text)["items"] == items
