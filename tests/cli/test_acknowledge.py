"""What a cluster acknowledges, in every verb that finds something, and in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ipamc.cli import main
from tests.cli import test_audit
from tests.cli.test_audit import REF, commit, dump, git
from tests.review.audit.test_faults import drop, node_cidrs
from tests.review.audit.worlds import living
from tests.support import dumps
from tests.support.living import Living

repository = test_audit.repository

POOL = """
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: later}
spec: {nodeSelector: rack == "b", ipv4: {cidrs: [10.5.0.0/24], blockSize: 26}}
"""
LATER = {"code": "IPC0310", "reason": "the rack comes in <March>"}
FULL = {"code": "IPC0215", "reason": "no node is to come", "pools": ["default"]}


def write(*entries: dict[str, Any]) -> None:
    """Let the cluster acknowledge these, and nothing else."""
    path = Path("clusters/fleet/0000.json")
    document = json.loads(path.read_text())
    document["spec"]["acknowledge"] = list(entries)
    path.write_text(json.dumps(document))


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main(list(arguments))
    return code, *capfd.readouterr()


@pytest.fixture
def pool(repository: Path) -> Path:
    """Add a pool of which a compile warns that no node has its label, and acknowledge that."""
    (repository / "clusters/fleet/later.yaml").write_text(POOL)
    write(LATER, FULL)
    return repository


@pytest.mark.usefixtures("pool")
def test_people_read_how_many(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capfd, "compile")
    assert (code, said.split("\n")[0]) == (0, "2 findings acknowledged")
    assert "2 findings acknowledged" in run(capfd, "plan")[2]
    markdown = run(capfd, "plan", "--base", "HEAD", "--output", "markdown")[1]
    assert "2 findings acknowledged" in markdown
    assert "acknowledge IPC0310" in markdown
    assert "IPC0310 no node" not in markdown
    assert run(capfd, "plan", "--output", "markdown")[1].count("(2 findings acknowledged)") == 1
    assert "fleet: findings of IPC0215, IPC0310 are acknowledged" in run(capfd, "show")[2]


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("style", ["full", "concise", "json", "github", "gitlab"])
def test_a_format_leaves_it_out(style: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "IPC0310" not in run(capfd, "compile", "--format", style)[2]
    assert json.loads(run(capfd, "plan", "--output", "json")[1])["clusters"][0]["findings"] == []


@pytest.mark.usefixtures("pool")
def test_sarif_has_it_as_suppressed(capfd: pytest.CaptureFixture[str]) -> None:
    write(LATER, FULL, {"code": "IPC0416", "reason": "it is gone"})
    (ran,) = json.loads(run(capfd, "compile", "--format", "sarif")[2])["runs"]
    found = {each["ruleId"]: each["suppressions"] for each in ran["results"]}
    assert found == {
        "IPC0310": [{"kind": "external", "justification": LATER["reason"]}],
        "IPC0215": [{"kind": "external", "justification": FULL["reason"]}],
        "IPC0112": [],
    }


@pytest.mark.usefixtures("pool")
def test_sarif_without_any_is_as_ever(capfd: pytest.CaptureFixture[str]) -> None:
    write()
    (ran,) = json.loads(run(capfd, "compile", "--format", "sarif")[2])["runs"]
    assert ["suppressions" in each for each in ran["results"]] == [False, False]


@pytest.mark.usefixtures("pool")
def test_junit_has_it_as_skipped(capfd: pytest.CaptureFixture[str]) -> None:
    text = run(capfd, "compile", "--format", "junit")[2]
    skipped = ElementTree.fromstring(text).iter("skipped")  # noqa: S314 - it is our own text
    reasons = [f"acknowledged: {each['reason']}" for each in (FULL, LATER)]
    assert [each.get("message") for each in skipped] == reasons


@pytest.mark.usefixtures("pool")
def test_a_refused_compile_leaves_it_out_too(capfd: pytest.CaptureFixture[str]) -> None:
    path = Path("clusters/fleet/later.yaml")
    path.write_text(path.read_text().replace("10.5.0.0/24", "10.1.0.0/24"))
    code, _, said = run(capfd, "compile", "--format", "concise")
    assert code == 1
    assert "IPC0310" not in said


def lost(live: Living) -> None:
    drop(live, "Node d")


def unread(live: Living) -> None:
    for number, name in enumerate("bc"):
        node_cidrs(live, name, f"10.244.{number}.0/24")


def by_name(*names: str) -> str:
    return " || ".join(f'kubernetes.io/hostname == "{name}"' for name in names)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("fault", "entry", "hidden"),
    [
        (lost, {"code": "IPC0925"}, True),
        (lost, {"code": "IPC0925", "nodes": by_name("d")}, True),
        (lost, {"code": "IPC0925", "nodes": by_name("a", "b")}, False),
        (lost, {"code": "IPC0925", "pools": ["default"]}, True),
        (lost, {"code": "IPC0925", "pools": ["another"]}, False),
        (lost, {"code": "IPC0925", "pools": ["default"], "nodes": by_name("a")}, False),
        (lost, {"code": "IPC0924"}, False),
        (unread, {"code": "IPC0951", "nodes": by_name("b", "c", "d")}, True),
        (unread, {"code": "IPC0951", "nodes": by_name("b")}, False),  # one of two nodes is not enough
        (unread, {"code": "IPC0951", "pools": ["default"]}, True),
    ],
)
def test_an_audit(fault: Any, entry: dict[str, Any], hidden: bool, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001 - a column
    write({"reason": "known", **entry})
    assert main(["compile"]) == 0
    commit("acknowledged")
    git("update-ref", REF, "HEAD")
    live = living("cluster-pool")
    fault(live)
    code, out, err = run(capfd, "audit", "fleet", dump(live.text()))
    problems = 0 if hidden or fault is unread else 1
    assert (code, out) == (min(problems, 1), f"found {problems} problem{'s' * (problems != 1)}\n")
    assert ("1 finding acknowledged" in err) is hidden
    remote = ("--remote", str(Path.cwd()))
    assert run(capfd, "ci", "audit", "fleet", "dump.json", *remote)[0] == problems


@pytest.mark.usefixtures("repository")
def test_an_error_is_never_hidden(capfd: pytest.CaptureFixture[str]) -> None:
    write({"code": "IPC0941", "reason": "known"})
    assert main(["compile"]) == 0
    commit("acknowledged", applied=True)
    code, _, said = run(capfd, "audit", "fleet", dump(test_audit.edited()))
    assert code == 1
    assert "error[IPC0941]" in said


@pytest.mark.usefixtures("repository")
def test_a_refresh(capfd: pytest.CaptureFixture[str]) -> None:
    Path("clusters/fleet/0002.json").rename("clusters/fleet/nodes.yaml")
    live = living("cluster-pool")
    live.add(dumps.node("win", labels={"kubernetes.io/os": "windows"}))
    said = run(capfd, "import", "fleet", "--refresh", dump(live.text()))[2]
    assert "IPC0836" in said
    write({"code": "IPC0836", "reason": "Windows has no Cilium"})
    said = run(capfd, "import", "fleet", "--refresh", "dump.json")[2]
    assert "IPC0836" not in said
    assert "1 finding acknowledged" in said
