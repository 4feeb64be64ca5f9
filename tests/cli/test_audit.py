"""`ipamc audit` as a user runs it: a repository with a cluster, the ref of what was applied, a dump."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipamc.cli import main
from tests.review.audit.test_faults import FREE, pod_cidrs
from tests.review.audit.worlds import documents, inventory, living
from tests.support import dumps

DATES = {"GIT_AUTHOR_DATE": "2026-11-20T10:00:00Z", "GIT_COMMITTER_DATE": "2026-11-20T10:00:00Z"}
REF = "refs/ipamc/applied/fleet"


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compile and commit the cluster of `living("cluster-pool")`; nothing says what was applied."""
    monkeypatch.chdir(tmp_path)
    for name, value in DATES.items():
        monkeypatch.setenv(name, value)
    git("init", "-q", "-b", "main")
    folder = tmp_path / "clusters" / "fleet"
    folder.mkdir(parents=True)
    for number, document in enumerate(documents("cluster-pool")):
        (folder / f"{number:04}.json").write_text(json.dumps(document))
    assert main(["compile"]) == 0
    commit("compiled")
    return tmp_path


def commit(message: str, *, applied: bool = False) -> None:
    git("add", "-A")
    git("commit", "-q", "-m", message)
    if applied:
        git("update-ref", REF, "HEAD")


def dump(text: str | None = None) -> str:
    Path("dump.json").write_text(living("cluster-pool").text() if text is None else text)
    return "dump.json"


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    code = main(["audit", "fleet", *arguments])
    out, err = capfd.readouterr()
    return code, err + out


def edited() -> str:
    live = living("cluster-pool")
    pod_cidrs(live, "a", FREE)
    return live.text()


@pytest.mark.usefixtures("repository")
def test_a_cluster_as_it_was_applied(capfd: pytest.CaptureFixture[str]) -> None:
    git("update-ref", REF, "HEAD")
    assert run(capfd, dump()) == (0, "found 0 problems\n")


@pytest.mark.usefixtures("repository")
def test_both_places_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    git("update-ref", REF, "HEAD")
    code, said = run(capfd, dump(edited()))
    assert code == 1
    assert (
        "error[IPC0941]: edited by hand: spec.ipam.podCIDRs of 1 CiliumNode: a (10.1.9.0/26 instead of 10.1.0.0/26)"
        in said
    )
    assert "--> dump.json:" in said
    assert "::: clusters/fleet/rendered/ciliumnodes/000/ciliumnodes.yaml:1:1: CiliumNode a in git" in said
    assert said.endswith("\n1 error; for details: ipamc explain IPC0941\nfound 1 problem\n")


@pytest.mark.usefixtures("repository")
def test_a_text_that_is_no_cidr_is_shown_beside_the_blocks(capfd: pytest.CaptureFixture[str]) -> None:
    git("update-ref", REF, "HEAD")
    live = living("cluster-pool")
    pod_cidrs(live, "a", "10.1.0.0/26", "nonsense")
    code, said = run(capfd, dump(live.text()))
    assert code == 1
    assert "a (10.1.0.0/26 nonsense instead of 10.1.0.0/26)" in said


@pytest.mark.usefixtures("repository")
def test_without_the_ref_pending_and_edited_are_one(capfd: pytest.CaptureFixture[str]) -> None:
    code, said = run(capfd, dump(edited()))
    assert code == 1
    assert "note[IPC0903]: refs/ipamc/applied/fleet is missing" in said
    assert "warning[IPC0942]" in said
    assert said.endswith("found 1 problem\n")
    code, said = run(capfd, dump(edited()), "--applied", "HEAD")
    assert "error[IPC0941]" in said


@pytest.mark.parametrize("ref", [REF, "refs/remotes/origin/ipamc/applied/fleet"])
def test_what_git_has_since_the_last_apply_is_pending(
    repository: Path, capfd: pytest.CaptureFixture[str], ref: str
) -> None:
    git("update-ref", ref, "HEAD")
    (repository / "clusters/fleet/0002.json").write_text(json.dumps(inventory(*"abcd", "e")))
    text = (repository / "clusters/fleet/0001.json").read_text()
    (repository / "clusters/fleet/0001.json").write_text(text.replace("10.1.0.0/24", "10.1.0.0/23"))
    assert main(["compile"]) == 0
    live = living("cluster-pool")
    live.add(dumps.node("e"))
    code, said = run(capfd, dump(live.text()))
    assert code == 0
    assert "note[IPC0940]: pending: 1 CiliumNode not applied yet: CiliumNode e" in said
    assert said.endswith("found 0 problems\n")


def test_formats_and_reports(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    git("update-ref", REF, "HEAD")
    path = dump(edited())
    code, said = run(capfd, path, "--format", "json", "--report", "sarif=a.sarif", "--report", "junit=a.xml")
    assert code == 1
    document: Any = json.loads(said)  # beside a document, the number is not printed
    assert [finding["code"] for finding in document["findings"]] == ["IPC0941"]
    assert "IPC0941" in (repository / "a.sarif").read_text()
    assert "IPC0941" in (repository / "a.xml").read_text()
    for style in ("concise", "github", "gitlab", "sarif", "junit"):
        code, said = run(capfd, path, "--format", style)
        assert (code, "IPC0941" in said) == (1, True)


@pytest.mark.usefixtures("repository")
def test_stdin_and_several_files(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    git("update-ref", REF, "HEAD")
    objects = [*living("cluster-pool").objects.values()]
    Path("nodes.json").write_text(dumps.kubectl(*(item for item in objects if item["kind"] == "Node")))
    rest = dumps.kubectl(*(item for item in objects if item["kind"] != "Node"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rest.encode())))
    assert run(capfd, "nodes.json", "-") == (0, "found 0 problems\n")


def test_a_dump_that_is_older_than_what_was_applied(
    repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-23T10:00:00Z")
    (repository / "readme").write_text("later")
    commit("later", applied=True)
    code, said = run(capfd, dump())
    assert code == 1
    assert "error[IPC0902]: the dump is from 2026-11-22T12:00:00Z" in said


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "IPC0801"),
        ("{", "IPC0801"),
        (dumps.kubectl(), "IPC0806"),
        (dumps.kubectl(dumps.node("x")), "IPC0901"),
        (living("cluster-pool").text()[:-40], "IPC0801"),
    ],
)
def test_a_dump_that_is_none(capfd: pytest.CaptureFixture[str], text: str, words: str) -> None:
    code, said = run(capfd, dump(text))
    assert (code, words in said) == (1, True)
    assert "found" not in said.splitlines()[-1]


def test_what_is_not_there(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "fleet"]) == 64
    assert main(["audit", "nobody", dump()]) == 64
    code, said = run(capfd, "no.json")
    assert (code, "no.json" in said) == (1, True)
    code, said = run(capfd, dump(), "--applied", "nothing")
    assert (code, "git does not know revision 'nothing'" in said) == (1, True)
    (repository / "clusters/fleet/ipam.lock").unlink()
    code, said = run(capfd, dump())
    assert code == 1
    assert "ipamc compile" in said


HOSTILE: list[Any] = [None, 0, -1, "", "x" * 300, [], {}, [{}], {"a": None}, True, "\x1b[31m", "10.0.0.0/99"]


@pytest.mark.deep
@pytest.mark.usefixtures("repository")
def test_whatever_is_in_a_dump_there_is_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """Each value of a dump in turn, in place of what it was."""
    git("update-ref", REF, "HEAD")
    live = living("cluster-pool")
    objects = [
        live["Node a"],
        live["CiliumNode a"],
        live["ConfigMap kube-system cilium-config"],
        live["Deployment kube-system cilium-operator"],
        live["Pod kube-system cilium-a"],
        live["CiliumEndpoint default web-a"],
    ]
    number = 0
    for item in objects:
        for parent, key in list(places(item)):
            kept = parent[key]
            parent[key] = HOSTILE[number % len(HOSTILE)]
            number += 1
            code, said = run(capfd, dump(live.text()))
            parent[key] = kept
            assert code in {0, 1}, said
            assert "Traceback" not in said
    assert number > 60


def places(value: Any) -> Any:
    """Yield (container, key) of every value inside a value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield value, key
        yield from places(inner)


def test_tables_of_routers_are_read_from_files_and_from_stdin(
    repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("update-ref", REF, "HEAD")
    blocks = [f"10.1.0.{64 * number}/26 via 192.168.0.{number + 1} dev eth0" for number in range(4)]
    (repository / "leaf").write_text("\n".join(blocks))
    code, said = run(capfd, dump(), "--routes", "leaf")
    assert (code, said) == (0, "found 0 problems\n")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(blocks[0].encode())))
    code, said = run(capfd, dump(), "--routes", "leaf", "--routes", "-")
    assert code == 1
    assert "no route to 10.1.0.64/26 of node b; 3 of 4 blocks" in said
    assert "--> <stdin>" in said

    for twice in (["leaf", "leaf"], ["dump.json"]):
        code, said = run(capfd, dump(), *(word for path in twice for word in ("--routes", path)))
        assert (code, "name each file once" in said) == (1, True)
    code, said = run(capfd, dump(), "--routes", "none")
    assert (code, "none: no such file" in said) == (1, True)
