"""`ipamc runbook`: what is under way, told from a real repository, and what a user may ask for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipamc.cli import main
from ipamc.cli.runbook import CHANGES
from ipamc.review.runbook.request import PLANNERS
from ipamc.workspace import disk

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "SOURCE_DATE_EPOCH": "1795219200", "NO_COLOR": "1"}
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: default}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
- {name: n1, uid: u1, labels: {topology.kubernetes.io/zone: a}}
- {name: n2, uid: u2, labels: {topology.kubernetes.io/zone: b}}
- {name: n3, uid: u3, labels: {topology.kubernetes.io/zone: b}}
"""


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def commit(message: str) -> None:
    git("add", "-A")
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "-m", message)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cluster of three nodes, compiled and committed."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "clusters" / "lab"
    folder.mkdir(parents=True)
    for file, text in (("cluster.yaml", CLUSTER), ("ippools.yaml", POOLS), ("nodes.yaml", NODES)):
        (folder / file).write_text(text)
    git("init", "-q", "-b", "main")
    assert main(["compile"]) == 0
    commit("one")
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def asked(capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> list[dict[str, Any]]:
    """Return the runbooks that are printed."""
    capsys.readouterr()
    assert main(["runbook", "lab", "--output", "json", *options]) == code
    return list(json.loads(capsys.readouterr().out)["runbooks"])


def nodes(runbook: dict[str, Any]) -> list[list[str]]:
    return [wave["nodes"] for wave in runbook["phases"][0]["waves"]]


@pytest.mark.usefixtures("lab")
def test_nothing_is_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys) == []
    assert main(["runbook", "lab"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        "no change is under way that needs more than an apply, compared with the lock and the rendered files on the disk\n"
        "  --base REV compares with another state; --change prints the steps of a new change: renumber, mode"
    ) in said.err


@pytest.mark.usefixtures("lab")
def test_pending_lines_are_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", "lab", "--renumber", "n1", "--renumber", "n2", "--renumber", "n3"]) == 0
    assert main(["compile", "lab"]) == 0
    commit("reserve")
    (found,) = asked(capsys, "--by", "zone")
    assert (found["change"], nodes(found)) == ("renumber", [["n1"], ["n2", "n3"]])
    assert [phase["title"] for phase in found["phases"]] == [
        "Move the nodes, wave by wave",
        "Bring the inventory up to date",
    ]
    assert "node n1 moves from 10.0.0.0/27 to 10.0.0.96/27" in found["about"]


@pytest.mark.usefixtures("lab")
def test_a_settled_renumber_is_under_way_until_it_was_applied(capsys: pytest.CaptureFixture[str]) -> None:
    """What was applied last is the base, where git knows it; --base names another one."""
    assert main(["lock", "lab", "--renumber", "n1"]) == 0
    assert main(["lock", "lab", "--settle", "n1"]) == 0
    assert main(["compile", "lab"]) == 0
    commit("settled")
    assert asked(capsys) == []  # the disk is as it is compiled
    (found,) = asked(capsys, "--base", "HEAD~1")
    assert (found["change"], nodes(found)) == ("renumber", [["n1"]])
    assert found["phases"][0]["title"] == "Move the nodes that are already settled"
    git("update-ref", "refs/ipamc/applied/lab", "HEAD~1")
    assert asked(capsys) == [found]
    git("update-ref", "refs/ipamc/applied/lab", "HEAD")
    assert asked(capsys) == []


def test_another_mode_is_under_way_before_and_after_its_consent(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(lab / "cluster.yaml", "mode: cluster-pool", "mode: multi-pool, pinning: none")
    (found,) = asked(capsys)
    assert (found["change"], found["title"]) == ("mode", "lab: cluster-pool to multi-pool")
    assert main(["lock", "lab", "--mode"]) == 0
    assert main(["compile", "lab"]) == 0
    commit("mode")
    assert asked(capsys) == []
    assert asked(capsys, "--base", "HEAD~1") == [found]
    keys = [step["key"] for step in found["phases"][0]["waves"][0]["steps"]]
    assert keys == ["apply", "seeds", "shown", "flags", "agents", "audit"]
    (flags,) = found["phases"][0]["waves"][0]["steps"][3]["commands"]
    assert "--set-json=operator.extraArgs=[]" in flags, "reused values would keep --ipam=kubernetes"


def test_the_plan_says_the_same_steps(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One source: the sentences of a plan are the titles, commands and reasons of the runbook's steps."""
    edit(lab / "cluster.yaml", "mode: cluster-pool", "mode: kubernetes")
    assert main(["lock", "lab", "--mode"]) == 0
    (found,) = asked(capsys, "--base", "HEAD")
    assert main(["plan", "lab", "--base", "HEAD", "--output", "json"]) == 0
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    titles = [
        step["title"].lower() for step in found["phases"][0]["waves"][0]["steps"] if step["key"] != "audit"
    ]
    said = [step.lower() for step in cluster["steps"][1:]]
    assert [title for title, step in zip(titles, said, strict=True) if title not in step] == []


def test_a_family_is_under_way_before_and_after_the_compile(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(lab / "cluster.yaml", "ipam:", "ipFamilies: [IPv4, IPv6]\n  ipam:")
    edit(
        lab / "ippools.yaml",
        "blockSize: 27}",
        "blockSize: 27}\n  ipv6: {cidrs: ['fd00::/116'], blockSize: 122}",
    )
    assert [each["change"] for each in asked(capsys)] == ["dual-stack"]
    assert main(["compile", "lab"]) == 0
    assert [each["change"] for each in asked(capsys)] == []
    assert [each["change"] for each in asked(capsys, "--base", "HEAD")] == ["dual-stack"]
    assert main(["runbook", "lab", "--change", "dual-stack"]) == 64
    assert (
        "lab already has both families; to print the steps of a rollout: ipamc runbook lab --base REV"
        in capsys.readouterr().err
    )


def test_a_family_a_minor_and_a_rename_are_under_way(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(lab / "cluster.yaml", '"1.18"', '"1.20"')
    edit(lab / "cluster.yaml", "ipam:", "ipFamilies: [IPv4, IPv6]\n  ipam:")
    edit(
        lab / "ippools.yaml",
        "blockSize: 27}",
        "blockSize: 27}\n  ipv6: {cidrs: ['fd00::/116'], blockSize: 122}",
    )
    edit(lab / "nodes.yaml", "name: n3, uid: u3", "name: n4, uid: u4")
    assert main(["lock", "lab", "--rename", "n3=n4"]) == 0
    found = asked(capsys, "--base", "HEAD")
    assert [each["change"] for each in found] == ["upgrade", "dual-stack", "replace-node"]
    assert [phase["title"] for phase in found[0]["phases"]] == ["1.18 to 1.19", "1.19 to 1.20"]
    assert found[2]["title"] == "Replace n3 of lab by n4"


def test_it_writes_nothing(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in sorted(lab.rglob("*")) if path.is_file()}
    for options in (["--change", "renumber", "--node", "n1"], ["--change", "restore-git"], []):
        asked(capsys, *options)
    assert {path: path.read_bytes() for path in sorted(lab.rglob("*")) if path.is_file()} == before


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--node", "n1"], "need --change"),
        (["--change", "mode", "--base", "HEAD"], "omit one"),
        (["--change", "renumber", "--node", "n9"], "does not contain n9"),
        (["--change", "move"], "'move' is not a value of --change: did you mean mode?"),
        (["--wave-size", "0"], "0 is not a value of --wave-size: use 1 to 100000\n"),
    ],
)
def test_a_wrong_request_is_a_usage_error(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runbook", "lab", *options]) == 64
    assert said in capsys.readouterr().err


def test_a_refused_input_is_a_finding(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(lab / "ippools.yaml", "10.0.0.0/24", "10.0.0.1/24")
    assert main(["runbook", "lab"]) == 1
    assert "error[IPC0201]" in capsys.readouterr().err


def test_a_change_without_room_is_a_finding_with_its_place(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(lab / "ippools.yaml", "10.0.0.0/24", "10.0.0.0/25")
    assert main(["runbook", "lab", "--change", "renumber", "--pool", "default"]) == 1
    assert "clusters/lab/" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--change", "mode", "--to", "multi-pool"), "IPC0522"),
        (("--change", "new-range", "--pool", "default", "--to", "10.1.0.0/24"), "IPC0207"),
    ],
)
def test_what_a_compile_would_refuse_in_the_end_is_refused_before_the_first_step(
    lab: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: str
) -> None:
    edit(lab / "cluster.yaml", 'version: "1.18"', 'version: "1.16", routingMode: tunnel')
    other = POOLS.replace("default", "other").replace("10.0.0.0/24", "10.1.0.0/24")
    (lab / "ippools.yaml").write_text(f"{POOLS}---\n{other}")
    assert main(["compile", "lab"]) == 0
    capsys.readouterr()
    assert main(["runbook", "lab", *options]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"error[{code}]" in said.err


def test_every_change_that_may_be_asked_for_has_a_planner() -> None:
    schema = json.loads(disk.assets("schemas")["runbook.output.json"])
    assert tuple(PLANNERS) == CHANGES
    known = schema["$defs"]["runbook"]["properties"]["change"]["enum"]
    assert set(known) == {*CHANGES, "settings"}


FURTHER = POOLS.replace("default", "further").replace("10.0", "10.1") + "  priority: -1\n"


def check_of(book: dict[str, Any]) -> dict[str, str]:
    """Return the check of the step that looks at the blocks of nodes."""
    steps = [step for phase in book["phases"] for wave in phase["waves"] for step in wave["steps"]]
    (check,) = [step["check"] for step in steps if step["key"] == "shown"]
    return dict(check)


def test_nodes_get_blocks_of_a_further_pool_with_another_mode(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "further.yaml").write_text(FURTHER)
    assert main(["compile"]) == 0
    commit("further")
    (before,) = asked(capsys, "--change", "mode", "--to", "multi-pool")
    edit(lab / "cluster.yaml", "mode: cluster-pool", "mode: multi-pool")
    assert main(["lock", "lab", "--mode"]) == main(["compile"]) == 0
    (begun,) = asked(capsys, "--base", "HEAD")
    both = [
        f"n{number} 10.0.0.{first}/27 10.0.0.{first}/27,10.1.0.{first}/27"
        for number, first in ((1, 0), (2, 32), (3, 64))
    ]
    assert check_of(before) == check_of(begun)
    assert check_of(begun)["expect"].splitlines() == both


OF_POOL = "BLOCKS:.spec.ipam.pools.allocated[?(@.pool=="


@pytest.mark.parametrize(
    ("pinning", "nodes", "column"),
    [
        ("node", ["n1"], f'{OF_POOL}"default.n1")].cidrs[*]'),
        ("node", ["n1", "n2"], f"{OF_POOL}'default.$node')].cidrs[*]"),
        ("pool", ["n1", "n2"], f'{OF_POOL}"default")].cidrs[0]'),
        ("none", ["n1"], f'{OF_POOL}"default")].cidrs[0]'),
    ],
)
def test_a_drained_node_shows_no_certain_block_of_a_further_pool(
    lab: Path, capsys: pytest.CaptureFixture[str], pinning: str, nodes: list[str], column: str
) -> None:
    """Its agent asks for addresses of that pool only while pods need them."""
    git("rm", "-rq", "clusters/lab/ipam.lock", "clusters/lab/rendered")
    edit(lab / "cluster.yaml", "mode: cluster-pool", f"mode: multi-pool, pinning: {pinning}")
    (lab / "further.yaml").write_text(FURTHER)
    assert main(["compile"]) == 0
    commit("further")
    options = [word for node in nodes for word in ("--node", node)]
    (book,) = asked(capsys, "--change", "replace-node", *options)
    check, shown = check_of(book), ["n1 10.0.0.0/27", "n2 10.0.0.32/27"]
    assert column in check["command"]
    assert check["expect"].splitlines() == shown[: len(nodes)]
