"""`ipamc test`, and what documents of kind Tests do to other verbs: they refuse a compile, and disturb no question."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from ipamc.cli import main
from ipamc.workspace import disk

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: misc}
spec:
  ipv4: {cidrs: [10.X.3.0/24], blockSize: 26}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-7}
spec:
  ipv4: {cidrs: [10.X.7.0/24], blockSize: 26}
  nodeSelector: rack == "r7"
"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
- {name: a-1, labels: {rack: r6}}
- {name: r7-1, labels: {rack: r7}}
"""
HEAD = "apiVersion: ipamc/v1alpha1\nkind: Tests\n"
GOOD = f"""{HEAD}tests:
- name: rack 7 only out of its own
  because: its switches announce nothing else
  blocks: {{nodeSelector: rack == "r7", within: [10.1.7.0/24]}}
- name: room for a node
  room: {{nodes: 1, pool: rack-7}}
"""
BAD = f"""{GOOD}- name: room for 90 nodes
  room: {{nodes: 90, pool: rack-7}}
- name: room for 91 nodes
  warn: true
  room: {{nodes: 91, pool: rack-7}}
- name: rack 9
  allowEmpty: true
  blocks: {{nodeSelector: rack == "r9", within: [10.1.9.0/24]}}
"""
SCHEMA = json.loads(disk.assets("schemas")["test.output.json"])


def git(*arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True, capture_output=True
    )


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a repository with two compiled clusters, of which blue has tests, as the working directory."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795305600")
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("blue", "red"), 1):
        write(f"clusters/{name}/cluster.yaml", CLUSTER.replace("NAME", name))
        write(f"clusters/{name}/pools.yaml", POOLS.replace("X", str(number)))
        write(f"clusters/{name}/nodes.yaml", NODES)
    write("clusters/blue/tests.yaml", GOOD)
    assert main(["compile"]) == 0
    git("init", "-qb", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    capsys.readouterr()
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return code, *capsys.readouterr()


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code, out, _ = run(capsys, "test", "--output", "json", *arguments)
    found = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return code, found["clusters"]


def test_each_test_is_shown_and_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in Path("clusters").rglob("*") if path.is_file()}
    passed = """\
blue: 2 tests, 2 passed
  passed   rack 7 only out of its own (1 node)
  passed   room for a node (1 pool)
red: no tests: write a document of kind Tests beside the Cluster (ipamc schema Tests)
"""
    assert run(capsys, "test") == (0, passed, "")
    write("clusters/blue/tests.yaml", BAD)
    code, out, said = run(capsys, "test", "blue", "--format", "concise")
    assert (code, out.splitlines()[1:]) == (
        1,
        [
            "  passed   rack 7 only out of its own (1 node)",
            "  passed   room for a node (1 pool)",
            "  failed   room for 90 nodes (1 pool)",
            "  warned   room for 91 nodes (1 pool)",
            "  skipped  rack 9 (applies to no node here)",
        ],
    )
    assert said.startswith(
        'clusters/blue/tests.yaml:10:17: error[IPC1003] test "room for 90 nodes": room for only 3 of 90'
    )
    write("clusters/blue/tests.yaml", GOOD)
    assert before == {path: path.read_bytes() for path in Path("clusters").rglob("*") if path.is_file()}


def test_a_test_that_only_warns_lets_the_run_pass(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/blue/tests.yaml", f"{HEAD}tests:\n- warn: true\n  room: {{nodes: 90, pool: rack-7}}\n")
    assert run(capsys, "test")[0] == run(capsys, "compile")[0] == 0


def test_junit_has_a_case_for_each_test(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/blue/tests.yaml", BAD)
    assert (
        run(
            capsys,
            "test",
            "--report",
            "junit=out.xml",
            "--report",
            "sarif=out.sarif",
            "--report",
            "gitlab=out.json",
            "--report",
            "github=out.txt",
        )[0]
        == 1
    )
    top = ET.parse("out.xml").getroot()  # noqa: S314 - our own
    assert top.attrib == {"name": "ipamc", "tests": "5", "failures": "1", "errors": "0"}
    assert [
        (case.attrib["classname"], case.attrib["name"], case.attrib["line"], [child.tag for child in case])
        for case in top.iter("testcase")
    ] == [
        ("blue", "rack 7 only out of its own", "4", []),
        ("blue", "room for a node", "7", []),
        ("blue", "room for 90 nodes", "9", ["failure"]),
        ("blue", "room for 91 nodes", "11", ["system-out"]),
        ("blue", "rack 9", "14", ["skipped"]),
    ]
    results = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    assert [(result["ruleId"], result["level"]) for result in results] == [
        ("IPC1003", "error"),
        ("IPC1003", "warning"),
    ]
    assert [each["location"]["lines"]["begin"] for each in json.loads(Path("out.json").read_text())] == [
        10,
        13,
    ]
    assert Path("out.txt").read_text().startswith("::error file=clusters/blue/tests.yaml,line=10")


def test_json_keeps_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/blue/tests.yaml", BAD)
    write("clusters/red/pools.yaml", "no: pools")
    code, (blue, red) = records(capsys)
    assert (code, red["tests"], blue["tests"][0]["because"]) == (
        1,
        None,
        "its switches announce nothing else",
    )
    assert [(test["status"], test["line"], len(test["findings"])) for test in blue["tests"]] == [
        ("passed", 4, 0), ("passed", 7, 0), ("failed", 9, 1), ("warned", 11, 1), ("skipped", 14, 0)
    ]  # fmt: skip
    assert set(SCHEMA["$defs"]["test"]["properties"]["status"]["enum"]) == {
        "passed",
        "failed",
        "warned",
        "skipped",
    }


def test_a_refused_cluster_is_not_tested(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/red/pools.yaml", "no: pools")
    code, out, said = run(capsys, "test")
    assert (code, out.count("\n")) == (1, 3)
    assert "red: not tested: 1 error" in said


def test_a_test_that_fails_refuses_compile_lock_and_plan(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/blue/tests.yaml", BAD)
    write("clusters/blue/nodes.yaml", f"{NODES}- {{name: a-2}}\n")
    for verb in (["compile"], ["compile", "--check"], ["lock"], ["plan"], ["plan", "--base", "HEAD"]):
        code, _, said = run(capsys, *verb)
        assert (code, 'error[IPC1003]: test "room for 90 nodes"' in said) == (1, True), verb
    assert "a-2" not in Path("clusters/blue/ipam.lock").read_text()
    write("clusters/blue/tests.yaml", GOOD)
    assert run(capsys, "compile")[0] == 0


@pytest.mark.parametrize("text", [BAD, f"{HEAD}tests: 7\n", f"{HEAD}tests:\n- rules: none\n"])
def test_questions_do_not_mind_tests(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither one that fails nor one that is no test changes an answer, or keeps anybody from it."""
    questions = (
        ["show", "--show-blocks"],
        ["which", "10.1.7.1"],
        ["which", "10.1.7.77"],
        ["why", "r7-1"],
        ["why", "r7-9"],
        ["runbook", "blue"],
        ["audit", "blue", "dump.json"],
        ["show", "--at", "HEAD"],
    )
    write(
        "dump.json",
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "r7-1", "uid": "u"}}],
            }
        ),
    )
    wanted = [run(capsys, *question) for question in questions]
    write("clusters/blue/tests.yaml", text)
    write("clusters/tests.yaml", text)
    assert [run(capsys, *question) for question in questions] == wanted
    assert run(capsys, "compile")[0] == 1


def test_a_renumber_in_two_steps_with_a_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    """The history of a rack that gets its own prefix: rule, ticket, renumber, settle; then the node is re-created."""
    write("clusters/blue/nodes.yaml", NODES.replace("a-1, labels: {rack: r6}", "a-1, labels: {rack: r7}"))
    rules = (
        GOOD + '- name: no renumber without a ticket\n  renumber: {ticket: "NET-[0-9]*", agreed: [AGREED]}\n'
    )
    write("clusters/blue/tests.yaml", rules.replace("AGREED", ""))
    code, _, said = run(capsys, "compile")
    assert code == 1
    assert "error[IPC1001]" in said
    assert "move all of them in one run: ipamc lock blue --renumber a-1" in said
    code, _, said = run(capsys, "lock", "blue", "--renumber", "a-1")
    assert (code, "add to agreed first: {node: a-1, ticket: …}" in said) == (1, True)
    write("clusters/blue/tests.yaml", rules.replace("AGREED", "{node: a-1, ticket: NET-123}"))
    code, _, said = run(capsys, "lock", "blue", "--renumber", "a-1")
    assert (code, "warning[IPC1009]" in said) == (0, True)
    assert run(capsys, "compile")[0] == 0
    assert run(capsys, "plan", "blue", "--base", "HEAD")[0] == 0
    code, _, said = run(capsys, "lock", "blue", "--settle", "a-1")
    assert (code, "IPC10" in said) == (0, False)
    # It leaves and comes back: the new block is its own.
    write("clusters/blue/nodes.yaml", NODES.replace("- {name: a-1, labels: {rack: r6}}\n", ""))
    assert run(capsys, "compile", "blue")[0] == 0
    write("clusters/blue/nodes.yaml", NODES.replace("a-1, labels: {rack: r6}", "a-1, labels: {rack: r7}"))
    assert run(capsys, "compile", "blue")[0] == 0
    assert (
        '{"block":"10.1.7.64/26","pool":"rack-7","node":"a-1"}' in Path("clusters/blue/ipam.lock").read_text()
    )
    # The quarantine of the old block is over: the entry has to go, and nothing is refused.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1803081600")
        code, _, said = run(capsys, "compile", "--check", "blue")
    assert (code, "warning[IPC1010]" in said) == (0, True)


def test_a_renumber_that_was_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    """A pending block that breaks a rule which came later is cancelled, and the rule holds."""
    write("clusters/blue/nodes.yaml", NODES.replace("a-1, labels: {rack: r6}", "a-1, labels: {rack: r7}"))
    write("clusters/blue/tests.yaml", f"{HEAD}tests:\n- nothingIn: [192.168.0.0/16]\n")
    assert run(capsys, "lock", "blue", "--renumber", "a-1")[0] == 0
    write(
        "clusters/blue/tests.yaml",
        f"{HEAD}tests:\n- blocks: {{nodeSelector: rack == 'r7', within: [10.1.3.0/24, 10.1.7.0/26]}}\n",
    )
    code, _, said = run(capsys, "compile", "blue")
    assert (code, "cancel the move: ipamc lock blue --release a-1" in said) == (1, True)
    assert run(capsys, "lock", "blue", "--release", "a-1")[0] == 0
    assert run(capsys, "compile", "blue")[0] == 0


def test_tests_beside_the_clusters_hold_for_their_address_space(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("blue", "red"):
        write(f"clusters/{name}/cluster.yaml", f"{CLUSTER.replace('NAME', name)}  addressSpace: fabric\n")
    write(
        "clusters/tests.yaml",
        f'{HEAD}addressSpace: fabric\ntests:\n- name: office\n  nothingIn: [10.2.0.0/16]\n- name: rack 7\n  blocks: {{nodeSelector: rack == "r7", ipv4: 26}}\n',
    )
    code, (blue, red) = records(capsys)
    assert code == 1
    assert [(test["name"], test["status"]) for test in blue["tests"][2:]] == [
        ("office", "passed"),
        ("rack 7", "passed"),
    ]
    assert [(test["name"], test["status"], test["file"]) for test in red["tests"]] == [
        ("office", "failed", "clusters/tests.yaml"), ("rack 7", "passed", "clusters/tests.yaml")
    ]  # fmt: skip
    assert run(capsys, "compile", "blue")[0] == 0
    assert run(capsys, "compile", "red")[0] == 1
    # Where the working directory is inside of clusters/, they are found, too.
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir("clusters/red")
        code, _, said = run(capsys, "compile", ".")
        assert (code, "../tests.yaml" in said) == (1, True)


def test_a_test_of_no_cluster_fails_where_all_are_tested(capsys: pytest.CaptureFixture[str]) -> None:
    """A test beside the clusters may be about nothing in one of them, and not in all: then it is misspelt."""
    some = '- name: rack 9\n  blocks: {nodeSelector: rack == "r9", ipv4: 26}\n'
    write(
        "clusters/tests.yaml",
        f"{HEAD}tests:\n{some}---\n{HEAD}addressSpace: fabrik\ntests:\n- nothingIn: [10.200.0.0/16]\n",
    )
    assert run(capsys, "compile")[0] == 0
    assert run(capsys, "test", "blue")[0] == 0
    code, out, said = run(capsys, "test", "--format", "concise")
    assert (code, out.count("failed   nothing in 10.200.0.0/16")) == (1, 1)
    assert out.count("failed   rack 9") == 1
    assert 'no node matches rack == "r9"' in said
    assert "no cluster belongs to address space 'fabrik'" in said


@pytest.mark.parametrize("make", ["link", "pipe", "pools"])
def test_what_stands_beside_the_clusters_is_hostile(make: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("clusters/tests.yaml")
    if make == "link":
        write("elsewhere", "password: hunter2\n")
        path.symlink_to("../elsewhere")
    elif make == "pipe":
        os.mkfifo(path)
    else:
        write(str(path), POOLS)
    code, _, said = run(capsys, "compile", "blue")
    assert (code, "hunter2" in said, "clusters/tests.yaml" in said) == (1, False, True)
    assert run(capsys, "show", "blue")[0] == 0


def test_a_cluster_may_be_called_as_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("clusters/tests.yaml/cluster.yaml", CLUSTER.replace("NAME", "tests.yaml"))
    write("clusters/tests.yaml/pools.yaml", POOLS.replace("X", "9"))
    assert run(capsys, "compile")[0] == 0


def test_tests_beside_the_clusters_concern_all_of_them_in_a_pipeline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("clusters/tests.yaml", f"{HEAD}tests:\n- nothingIn: [10.200.0.0/16]\n")
    git("checkout", "-qb", "branch")
    git("add", "-A")
    git("commit", "-qm", "rule")
    matrix = ("ci", "matrix", "--output", "names", "--base", "main")
    assert run(capsys, *matrix)[1] == "blue\nred\n"
    assert run(capsys, *matrix, "--stage", "apply")[1] == ""


def test_import_leaves_tests_alone(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"u-{name}", "labels": {"rack": rack}},
        }
        for name, rack in (("a-1", "r6"), ("r7-1", "r7"), ("r7-2", "r7"))
    ]
    write("dump.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    code, _, said = run(capsys, "import", "blue", "dump.json", "--refresh")
    assert (code, Path("clusters/blue/tests.yaml").read_text()) == (0, GOOD), said
    assert run(capsys, "compile", "blue")[0] == 0
    assert run(capsys, "test", "blue")[0] == 0
