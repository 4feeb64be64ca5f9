"""The benchmarks: inputs are those of a real cluster, figures mean what they say, and every program runs.

No time is asserted here: speed is measured by `make bench`.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

from ipamc.model.diagnostics import Place
from ipamc.model.node import Node
from ipamc.read.read import read
from ipamc.workspace.disk import assets
from tests.support import benchmarks
from tests.support.benchmarks import Cost

inputs, kubectl, running = (benchmarks.module(name) for name in ("inputs", "kubectl", "running"))
compiles, measure, scaling = (benchmarks.module(name) for name in ("compile", "measure", "scaling"))
scene, stages, targets = (benchmarks.module(name) for name in ("scene", "stages", "targets"))
tables = benchmarks.module("tables")
WAITING = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin "
    "returns error: cni plugin not initialized"
)
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz" * 2)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("worker", "worker"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("a,b", "a,b"),
        ("it's", "it's"),
        ("=", "="),
        ("é", "é"),
        ('k:{"type":"Ready"}', 'k:{"type":"Ready"}'),
        ("394886716Ki", "394886716Ki"),
        ("", '""'),
        ("true", '"true"'),
        ("y", '"y"'),
        ("null", '"null"'),
        ("~", '"~"'),
        ("64", '"64"'),
        ("08", '"08"'),
        ("0777", '"0777"'),
        ("0x1", '"0x1"'),
        ("1_000", '"1_000"'),
        ("1.5", '"1.5"'),
        ("12e3", '"12e3"'),
        ("1:30", '"1:30"'),
        ("2026-11-22", '"2026-11-22"'),
        ("2026-11-22T12:00:00Z", '"2026-11-22T12:00:00Z"'),
        ('{"x":"y"}', """'{"x":"y"}'"""),
        ("a: b", "'a: b'"),
        ("#x", "'#x'"),
        ("- a", "'- a'"),
        ("@a", "'@a'"),
        ("[a]", "'[a]'"),
        ("*a", "'*a'"),
        (" a", "' a'"),
        ("5 ", "'5 '"),
        (WAITING, f"'{WAITING[:84]}\n      {WAITING[85:]}'"),
        (LETTERS, f"{LETTERS[:75]}\n      {LETTERS[76:]}"),
    ],
)
def test_scalars_are_printed_as_kubectl_prints_them(value: str, printed: str) -> None:
    """The right column was printed by kubectl 1.35, as values of annotations of one letter."""
    assert kubectl.text(value, 6, 7) == printed


def model(name: str, text: str) -> tuple[Node, ...]:
    """Read a cluster with an inventory; return its nodes without their places. No finding is there."""
    files = {"cluster.yaml": inputs.CLUSTER, "ippools.yaml": inputs.pools(), name: text}
    data = {f"clusters/bench/{path}": content.encode() for path, content in files.items()}
    cluster, found = read("bench", "clusters/bench", data, assets("schemas"))
    assert not found
    nodes = sorted(cluster.nodes, key=lambda node: node.name)
    return tuple(msgspec.structs.replace(node, at=Place("")) for node in nodes)


def test_a_dump_is_the_same_in_both_formats_and_has_what_is_known_of_the_nodes_in_short() -> None:
    count = running.NOT_READY
    objects = list(running.nodes(count, inputs.ZONES))
    in_json, in_yaml = ("".join(printed(objects)) for printed in (kubectl.json_list, kubectl.yaml_list))
    assert json.loads(in_json)["items"] == objects
    assert list(yaml.load(in_yaml, yaml.CSafeLoader)["items"][-1]["status"]) == sorted(objects[-1]["status"])
    full = model("nodes.json", in_json)
    assert full == model("nodes.yaml", in_yaml)
    assert all(node.live and node.running for node in full)
    short = inputs.nodes(range(count), uids=True)
    slim = model("nodes.json", inputs.as_json(short))
    assert slim == model("nodes.yaml", inputs.as_yaml(short))
    for node, known in zip(full, slim, strict=True):
        assert (node.name, node.uid, node.max_pods) == (known.name, known.uid, known.max_pods)
        assert known.labels.items() <= node.labels.items()
        assert len(known.labels) == 7


def test_a_node_weighs_what_one_of_a_real_cluster_weighs() -> None:
    node = running.node(0, 10)
    assert 28_000 < len(kubectl.one(node, "json")) < 36_000
    assert 16_000 < len(kubectl.one(node, "yaml")) < 20_000
    assert len(node["status"]["images"]) == 50
    assert {len(image["names"]) for image in node["status"]["images"]} == {2}
    assert len(node["status"]["conditions"]) == 5
    assert msgspec.json.encode(node) == msgspec.json.encode(node, order="deterministic")  # as Go sorts keys
    assert node == running.node(0, 10) != running.node(1, 10)


@pytest.mark.parametrize(
    ("values", "exponent"),
    [
        ({1_000: 1.0, 2_000: 2.0, 4_000: 4.0}, 1.0),
        ({1_000: 1.0, 2_000: 4.0, 4_000: 16.0}, 2.0),
        ({1_000: 3.0, 100_000: 30.0}, 0.5),
        ({1_000: 7.0, 2_000: 7.0}, 0.0),
        ({1_000: 1.1, 10_000: 2.0, 100_000: 11.0}, 0.5),  # 1 and n/10,000: what is paid once makes it flat
    ],
)
def test_the_exponent_of_a_fit(values: dict[int, float], exponent: float) -> None:
    assert scaling.exponent(values) == pytest.approx(exponent, abs=1e-9)


def test_the_last_step_is_that_between_the_two_largest_sizes() -> None:
    costs = {1_000: Cost(9, 1.0, 1), 4_000: Cost(9, 16.0, 1), 2_000: Cost(9, 8.0, 1)}
    assert scaling.last_step(costs) == pytest.approx(1.0)


def test_runs_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []
    seconds = iter([100.0, 100.0, 1.0, 20.0, 3.0, 10.0, 2.0, 30.0])

    def work(name: str) -> Cost:
        order.append(name)
        return Cost(next(seconds), 0.5, len(order))

    costs = measure.alternate({"a": lambda: work("a"), "b": lambda: work("b")}, 3)
    assert "".join(order) == "abababab"
    assert costs == {"a": Cost(2.0, 0.5, 7), "b": Cost(20.0, 0.5, 8)}
    assert measure.alternate({"a": lambda: Cost(9.0, 1.0, 1)}, 0) == {"a": Cost(9.0, 1.0, 1)}


def test_least_of_runs_is_least_in_each_figure() -> None:
    assert measure.least([Cost(1.0, 9.0, 5), Cost(2.0, 8.0, 4)]) == Cost(1.0, 8.0, 4)


def test_a_child_is_measured_and_not_this_process(tmp_path: Path) -> None:
    program = "import sys; block = bytearray(200 << 20); sys.exit(3)"
    cost = measure.run([measure.sys.executable, "-S", "-c", program], tmp_path, codes=(3,))
    assert cost.code == 3
    assert 200 << 20 < cost.memory < 250 << 20
    small = measure.run([measure.sys.executable, "-S", "-c", ""], tmp_path)
    assert small.memory < 30 << 20
    with pytest.raises(SystemExit, match="ended with 1"):
        measure.run([measure.sys.executable, "-c", "1 / 0"], tmp_path)


def test_a_clock_counts_no_second_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(stages.time, "process_time", lambda: float(next(ticks)))
    clock = stages.Clock()
    with clock.stage("outer"), clock.stage("inner"):
        pass
    with clock.stage("outer"):
        pass
    assert clock.spent == {stages.OTHER: 2.0, "outer": 3.0, "inner": 1.0}


@pytest.mark.parametrize(
    ("kind", "count", "costs", "touched", "reads", "missed"),
    [
        ("slim JSON", 5_000, {"full": Cost(0.2, 0.2, 1)}, {}, False, []),
        ("slim JSON", 5_000, {"full": Cost(0.21, 0.2, 1)}, {}, False, ["compile 5,000 nodes, slim JSON"]),
        (
            "full YAML",
            5_000,
            {"full": Cost(2, 2, 251_000_000)},
            {},
            False,
            ["compile 5,000 nodes, full YAML: memory"],
        ),
        (
            "slim YAML",
            100_000,
            {
                "full": Cost(5, 5, 1),
                "again": Cost(3.1, 3, 1),
                "plan": Cost(7.6, 7, 1),
                "which": Cost(1, 1, 1),
            },
            {"again": ["ipam.lock"]},
            True,
            [
                "nothing changed, 100,000 nodes, slim YAML",
                "nothing changed, 100,000 nodes, slim YAML: files written",
                "plan, 100,000 nodes, slim YAML",
                "which reads the inventory, 100,000 nodes, slim YAML",
            ],
        ),
        (
            "slim YAML",
            7,
            {"full": Cost(9, 9, 9), "more": Cost(9, 9, 9)},
            {"more": ["ipam.lock", "rendered/ciliumnodes/000/ciliumnodes.yaml"]},
            False,
            [],
        ),
        (
            "slim YAML",
            7,
            {"full": Cost(9, 9, 9), "more": Cost(9, 9, 9)},
            {
                "more": [
                    "rendered/ciliumnodes/000/ciliumnodes.yaml",
                    "rendered/ciliumnodes/001/ciliumnodes.yaml",
                ]
            },
            False,
            ["one node more, 7 nodes, slim YAML"],
        ),
    ],
)
def test_goals_that_are_missed(
    kind: str,
    count: int,
    costs: dict[str, Cost],
    touched: dict[str, list[str]],
    reads: bool,  # noqa: FBT001 - a parameter of the test
    missed: list[str],
) -> None:
    measured = compiles.Measured(kind=kind, count=count, costs=costs, touched=touched, which_reads=reads)
    rows = targets.rows(targets.Results(compiles=[measured]))
    assert [goal for goal, _, _, met in rows if met != "yes"] == missed


def test_goals_beside_others_and_of_many() -> None:
    results = targets.Results(
        peers={5: {"slim JSON": Cost(2, 1, 1), "slim YAML": Cost(3, 1, 1), "cue": Cost(2.5, 1, 1), "helm": Cost(2.5, 1, 1)}},
        grown={"slim JSON": {1_000: Cost(1, 1, 10), 10_000: Cost(9, 9, 1_000)}},
        fleets={(100, 500): {1: Cost(17, 1, 1), 2: Cost(10, 1, 1)}, (1_000, 200): {1: Cost(90, 1, 1), 2: Cost(50, 1, 1)}},
        starts={"ipamc --version": Cost(0.081, 1, 1)},
    )  # fmt: skip
    assert [(goal, met) for goal, _, _, met in targets.rows(results)] == [
        ("ahead of cue export (JSON), 5 nodes", "yes"),
        ("ahead of helm template (YAML), 5 nodes", "**no**"),
        ("seconds grow, 1,000 to 10,000 nodes, slim JSON", "yes"),
        ("memory grow, 1,000 to 10,000 nodes, slim JSON", "**no**"),
        ("two processes, 100 clusters of 500 nodes", "**no**"),
        ("1,000 clusters of 200 nodes, two processes", "yes"),
        ("ipamc --version", "**no**"),
    ]


def test_a_table_is_markdown_whose_columns_line_up() -> None:
    assert tables.table(("tool", "seconds"), [("helm", "0.5"), ("ipamc", "-1")]).splitlines() == [
        "| tool  | seconds |",
        "| ----- | ------: |",
        "| helm  |     0.5 |",
        "| ipamc |      -1 |",
    ]


def test_half_of_the_nodes_are_half_of_each_pool_and_size() -> None:
    count = 8 * inputs.ZONES
    chosen = Counter(
        (labels["topology.kubernetes.io/zone"], labels["size"])
        for number in scene.half(count)
        for labels in [running.labels_of(number, inputs.ZONES)]
    )
    assert len(chosen) == 3 * inputs.ZONES
    assert {size: number for (_, size), number in chosen.items()} == {"medium": 2, "large": 1, "small": 1}
    assert scene.half(6) == [0, 2, 4]


def test_the_runs_over_a_slim_inventory(tmp_path: Path) -> None:
    here = scene.Scene(tmp_path, "slim JSON", 30, ("again", "more"))
    for name in ("full", "again", "more"):
        here.run(name)
    assert here.touched == {"again": [], "more": ["ipam.lock", "rendered/ciliumnodes/000/ciliumnodes.yaml"]}
    assert (here.folder / "ipam.lock").read_text().count("\n") == 1 + 31
    here.set_up("full")
    assert (here.folder / "ipam.lock").read_text().count("\n") == 1 + 15


@pytest.mark.deep
def test_the_runs_over_a_full_dump(tmp_path: Path) -> None:
    here = scene.Scene(tmp_path, "full YAML", 30, scene.RUNS)
    assert "first" not in here.runs
    here.run("full")
    text = (here.folder / "ipam.lock").read_text()
    assert text.count("\n") == 1 + 31
    assert text.count('"quarantined"') == 1
    rendered = here.folder / "rendered" / "ciliumnodes"
    assert (
        sum(path.read_text().count("kind: CiliumNode") for path in rendered.rglob("ciliumnodes.yaml")) == 30
    )


def stand_ins(folder: Path) -> str:
    """Make programs that print what helm and cue would be measured with; return what `.ci/peers` would print."""
    lines = []
    for name, file in (("helm", "nodes.yaml"), ("cue", "nodes.json")):
        path = folder / name
        path.write_text(f"#!/bin/sh\ngrep -o maxPods {file} | sed 's/.*/kind: CiliumNode/'\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        lines.append(f"{name} v1 {path}")
    return "\n".join(lines)


RUNS = {
    "address_space.py": ("2", "3", "--runs", "1"),
    "allocator.py": ("50",),
    "bench.py": (
        *(
            "--runs",
            "0",
            "--only",
            "peers",
            "full",
            "growth",
            "fleets",
            "start",
            "--peers",
            "6",
            "--full",
            "6",
        ),
        *("--growth", "5", "--fleets", "2x3", "--date", "2026-11-22"),
    ),
    "compile.py": ("10", "--runs", "0", "--inventory", "slim JSON", "--run", "again", "more"),
    "dumps.py": ("6", "2", "--runs", "1"),
    "fleet.py": ("2x3", "--runs", "0"),
    "future.py": ("20", "--weeks", "3", "--runs", "1"),
    "lock.py": ("20",),
    "peers.py": ("6", "--runs", "0"),
    "plan.py": ("6", "--runs", "1", "--inventory", "slim JSON"),
    "report.py": ("6", "--runs", "1"),
    "rules.py": ("20", "--tests", "2", "--runs", "1"),
    "scaling.py": ("5", "10", "--runs", "1", "--inventory", "slim YAML"),
    "stages.py": ("--nodes", "6", "--runs", "1", "--inventory", "full JSON"),
    "which.py": ("2", "3", "--runs", "1"),
    "year.py": ("2x4", "--days", "2", "--changes", "1"),
}
SHOWN = {
    "address_space.py": "with    addressSpace",
    "bench.py": "## Goals",
    "compile.py": "ipam.lock, rendered/ciliumnodes/000/ciliumnodes.yaml",
    "dumps.py": "refresh",
    "future.py": "show bench --runway",
    "peers.py": "cue export (JSON)",
    "report.py": "seconds to open",
    "rules.py": "room for each zone",
    "scaling.py": "exponent of seconds",
    "stages.py": "| read ",
    "which.py": "which IP --at HEAD",
    "year.py": "2 days later",
}


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("script", [name for name in benchmarks.SCRIPTS if name != "growth.py"])
def test_every_program_runs(script: str, tmp_path: Path) -> None:
    if script == "report.py" and not (os.environ.get("CHROMIUM") or shutil.which("chromium")):
        pytest.skip("no chromium here: .ci/chromium looks for one")
    environment = os.environ | {"IPAMC_PEERS": stand_ins(tmp_path), "KUSTOMIZE_BUILD": ""}
    printed = benchmarks.run(script, *RUNS[script], environment=environment)
    assert SHOWN.get(script, "") in printed


@pytest.mark.deep(part=0)
def test_a_fleet_in_an_address_space_is_measured() -> None:
    printed = benchmarks.run("fleet.py", "--space", "2x3", "--runs", "0")
    assert "compile fabric --locked --check" in printed
    assert "which no-such-node" in printed


def test_a_page_of_results_names_no_machine_and_no_path(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    printed = benchmarks.run(
        "bench.py", "--only", "start", "--runs", "0", "--date", "2026-11-22", "--output", str(page)
    )
    text = page.read_text()
    assert sorted(text.split()) == sorted(printed.split())
    assert text.index("## Goals") < text.index("## Start")
    assert "2026-11-22" in text
    assert os.uname().nodename not in text
    assert str(Path.home()) not in text
    assert str(benchmarks.FOLDER.parents[1]) not in text


def test_growth_measures_a_cold_process() -> None:
    growth = benchmarks.module("growth")
    cost = growth.cost(growth.EMPTY, 1)
    assert cost.code == 1  # nothing is written yet
    assert 0 < cost.seconds < growth.TIMEOUT
