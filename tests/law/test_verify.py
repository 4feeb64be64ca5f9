"""The checker alone: what compiles passes; what gives a node addresses of another one, or of none, is found."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ipamc.law
from ipamc.law.change import Gate
from ipamc.law.files import disk
from ipamc.law.verify import Finding, Lock, verify
from ipamc.lock.file import parse
from ipamc.model.diagnostics import Refused
from ipamc.pipeline import Compilation, compile_cluster
from tests.law.mutations import HARMFUL, HARMLESS, Change, Files, Tree
from tests.support import casefile

LAW = Path(ipamc.law.__file__).parent
TODAY = "2026-11-22"
SEED = int(os.environ.get("VERIFY_SEED", "47"))
"""Another seed makes other changes."""


@cache
def trees() -> dict[str, tuple[Files, Compilation]]:
    """Return every case that compiles, as files below `clusters/`, and its compilation."""
    found = {}
    for label in casefile.names():
        case = casefile.load(label)
        for minor, each in [*case.each.items()] or [((0, 0), case)]:
            inputs = casefile.inputs(each)
            try:
                result = compile_cluster(inputs)
            except Refused:
                continue
            name = result.plan.cluster.name
            files = {f"{name}/{Path(at).name}": text for at, text in inputs.sources.items()}
            files[f"{name}/ipam.lock"] = result.lock.encode()
            files |= {f"{name}/rendered/{at}": text.encode() for at, text in result.files.items()}
            found[f"{label} {minor}"] = files, result
    return found


def findings(base: Files, head: Files) -> list[str]:
    """Return the findings if a person allowed nothing that ends a quarantine, or follows Cilium's operator."""
    return [str(each) for each in verify("clusters", base, head, TODAY, [Gate.RELEASE, Gate.FOLLOW])[0]]


def mutants(change: Change, count: int) -> dict[str, list[str]]:
    """Return what is found in trees that a change has altered, by the name of the tree."""
    chance, found = random.Random(f"{SEED} {change.__name__}"), {}  # noqa: S311
    names = sorted(trees())
    chance.shuffle(names)
    for name in names:
        files, result = trees()[name]
        try:
            delta = change(Tree(files, result.plan.lock.lines, chance))
        except (IndexError, ValueError):  # the tree has no place for it
            continue
        head = {at: text for at, text in (files | delta).items() if text is not None}
        if head != files:
            found[f"{change.__name__} in {name}: {delta}"] = findings(files, head)
        if len(found) == count:
            break
    return found


def test_what_compiles_passes() -> None:
    faults = {name: found for name, (files, _) in trees().items() if (found := findings(files, files))}
    assert faults == {}


def test_the_examples_pass() -> None:
    """Of them two have an address space of others."""
    files = disk("clusters")
    assert findings(files, files) == []


def test_an_address_of_two_clusters_of_an_address_space_is_found() -> None:
    files = disk("clusters")
    theirs = files["fleet-eu/ipam.lock"].decode().splitlines()[1]
    mine = files["fleet-us/ipam.lock"].decode().splitlines()
    twice = json.loads(theirs) | {"node": "new-1"}
    mine.insert(1, json.dumps(twice, separators=(",", ":")))
    head = files | {"fleet-us/ipam.lock": "".join(f"{row}\n" for row in mine).encode()}
    assert f"error: {twice['block']} is in two clusters of fleet" in "\n".join(findings(files, head))


@pytest.mark.parametrize("change", HARMFUL, ids=lambda change: change.__name__)
def test_what_gives_a_node_foreign_addresses_is_found(change: Change) -> None:
    found = mutants(change, 30)
    assert len(found) >= 4
    assert [name for name, each in found.items() if not each] == []


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.__name__)
def test_another_change_is_not_found(change: Change) -> None:
    found = mutants(change, 30)
    assert len(found) >= 4
    assert {name: each for name, each in found.items() if each} == {}


def test_it_is_small_and_needs_nothing_of_ipamc() -> None:
    modules = {path: path.read_text() for path in sorted(LAW.glob("*.py"))}
    imported = {
        each
        for text in modules.values()
        for node in ast.walk(ast.parse(text))
        for each in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f".{node.module}" if node.level else node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert sum(len(text.splitlines()) for text in modules.values()) <= 700
    assert {each for each in imported if each.partition(".")[0] not in sys.stdlib_module_names} == {
        "yaml",
        ".change",
        ".verify",
    }


def committed(files: Files, folder: Path) -> Path:
    """Return a repository with a commit of files below `clusters/`."""
    for path, text in files.items():
        place = folder / "clusters" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "base"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def test_it_runs_from_a_copy_of_its_folder_without_ipamc(tmp_path: Path) -> None:
    files, _ = next(
        each
        for name, each in trees().items()
        if name.startswith("kubernetes/") and any("/nodes/" in at for at in each[0])
    )
    repository = committed(files, tmp_path / "repository")
    shutil.copytree(LAW, tmp_path / "checker", ignore=shutil.ignore_patterns("__pycache__"))

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", *options, str(tmp_path / "checker"), "--base", "HEAD"]
        environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": "1795305600"}
        return subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, check=False
        )

    before = run()
    assert (before.returncode, before.stdout, before.stderr) == (0, "", "")
    assert not re.search(r"\| +ipamc\b", run("-X", "importtime").stderr)
    nodes = next(path for path in repository.rglob("nodes.yaml") if "rendered" in path.parts)
    nodes.write_text(re.sub(r"(?m)^  podCIDR: .*$", "  podCIDR: 10.66.0.0/24", nodes.read_text(), count=1))
    after = run()
    assert after.returncode == 1
    assert "10.66.0.0/24" in after.stderr


NODES = "zones/rendered/ciliumnodes/000/"
KUSTOMIZATION, NEW = f"{NODES}kustomization.yaml", f"{NODES}new.yaml"
THEIRS = "apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata:\n  name: {}\nspec:\n  ipam:\n    podCIDRs:\n    - 100.162.224.32/27\n"
LISTED = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{kind: CiliumNode, metadata: {name: x}, spec: {ipam: {podCIDRs: [10.1.1.0/24]}}}]}]\n"
HOSTILE = {
    "a patch with escapes": (KUSTOMIZATION, "patches: [{target: {kind: CiliumNode, name: bj-001}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/ipam/podCIDRs/0\", \"value\": \"1\\u00300.1.1.0/24\"}]'}]\n"),
    "a patch of a file": (KUSTOMIZATION, "patches: [{target: {kind: CiliumNode, name: bj-001}, path: new.yaml}]\n"),
    "a replacement": (KUSTOMIZATION, "replacements: [{source: {kind: CiliumNode, name: bj-002}, targets: []}]\n"),
    "a suffix": (KUSTOMIZATION, "nameSuffix: x\n"),
    "a generator": (KUSTOMIZATION, "generators: [new.yaml]\n"),
    "a resource outside": (KUSTOMIZATION, "- ../../../extra\n"),
    "a resource on the web": (KUSTOMIZATION, "- https://example.com/x\n"),
    "a name with a line break": (f"{NODES}a\n.yaml", THEIRS.format("bj-099")),
    "a name without a suffix": (f"{NODES}extra", THEIRS.format("bj-099")),
    "a list of lists": (f"{NODES}helm-values.yaml", LISTED),
    "a folder without a lock": ("evil/rendered/new.yaml", THEIRS.format("bj-099")),
    "an escape in YAML": (NEW, THEIRS.format("bj-099").replace("- 100.162.224.32/27", '- "100.162.224\\x2e32/27"')),
    "JSON": (NEW, json.dumps({"kind": "CiliumNode", "metadata": {"name": "bj-099"}, "spec": {"ipam": {"pool": {"100.162.224.33": {}}}}})),
    "an alias": (NEW, "a: &a [10.1.1.1]\nb: *a\n"),
    "a tag": (NEW, "kind: ConfigMap\ndata: {a: !!binary MTAuMS4xLjEK}\n"),
    "a kind of another tool": (NEW, "kind: Namespace\nmetadata: {name: x, annotations: {ipam.cilium.io/ip-pool: bj-002}}\n"),
    "another Cluster": ("zones/more.yaml", "# ipamc/v1alpha1\nkind: Cluster\nmetadata: {name: zones}\n"),
    "no bystander": ("zones/rendered/cilium/component/kustomization.yaml", None),
    "a bystander in a comment": ("zones/rendered/cilium/helm-values.yaml", "operator: {extraArgs: []}  # --ipam=kubernetes\n"),
}  # fmt: skip
"""What kustomize, or Cilium, reads in another way than it looks: the path, and what is added to the file; None empties it."""


@pytest.mark.parametrize("name", HOSTILE)
def test_what_hides_is_found(name: str) -> None:
    files = disk("clusters")
    path, text = HOSTILE[name]
    more = b"" if path.endswith("helm-values.yaml") or text is None else files.get(path, b"")
    head = files | {path: more + (text or "").encode()}
    if name.endswith("bystander"):
        head[path] = re.sub(rb"(?s)\n- patch.*", b"\n", files[path])
    assert findings(files, head) != []


def test_two_clusters_exchange_their_names() -> None:
    """The memory of `zones` is in the folder `zones`, whatever a lock says of itself."""
    files = disk("clusters")
    copy = {
        path.replace("zones/", "zz/", 1): text for path, text in files.items() if path.startswith("zones/")
    }
    renamed = {
        path: re.sub(rb'(name: |"cluster":")zones', rb"\1aa", files[path])
        for path in ("zones/cluster.yaml", "zones/ipam.lock")
    }
    assert findings(files, files | copy | renamed) != []


@pytest.mark.parametrize("many", [40, 4000])
def test_lines_that_look_alike_take_no_time(many: int) -> None:
    """A block of a pool whose name is a number is not as it is mostly rendered; 18 of them took 8 s."""
    files = disk("clusters")
    text = THEIRS.format("bj-002") + "    - 100.162.224.32/27\n" * many + '    x: "y"\n'
    assert findings(files, files | {NEW: text.encode()}) == []


ROW = '{"block":"10.1.0.0/26","pool":"a","node":"n1"}\n'
HEAD = '{"lock":1,"cluster":"case","mode":"cluster-pool","shards":1}\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD.replace("1,", "2,", 1) + ROW,
        HEAD.replace('"shards":1', '"shards":3') + ROW,
        HEAD.replace("}", ',"more":1}') + ROW,
        HEAD + ROW.rstrip(),
        HEAD + ROW + "\n",
        HEAD + ROW.replace("}", ',"more":1}'),
        HEAD + ROW.replace(',"node"', ', "node"'),
        HEAD + ROW.replace("10.1.0.0/26", "10.1.0.1/26"),
        HEAD + ROW.replace("10.1.0.0/26", "010.1.0.0/26"),
        HEAD + ROW.replace("}", ',"quarantined":"2026-02-30"}'),
        HEAD + ROW.replace("}", ',"quarantined":"2026-11-20","released":true}'),
        HEAD + ROW.replace("}", ',"moved":true}'),
        HEAD + ROW.replace("10.1.0.0/26", "fd00:0::/64"),
        HEAD + ROW + ROW.replace("n1", "n2"),
        HEAD + ROW.replace("10.1.0.0/26", "10.1.0.0/24") + ROW.replace("10.1.0.0/26", "10.1.0.64/26"),
        HEAD + ROW.replace("10.1", "10.2") + ROW,
    ],
)
def test_a_lock_is_read_as_strictly_as_the_compiler_reads_it(text: str) -> None:
    with pytest.raises(Finding):
        Lock("ipam.lock", text)
    lock, found = parse(text.encode(), "ipam.lock")
    assert lock is None or found


@given(st.sampled_from([HEAD + ROW]), st.integers(0, len(HEAD + ROW) - 1), st.sampled_from(' ,"{}0:x/.é\n'))
def test_no_lock_that_the_compiler_refuses_is_read(text: str, at: int, character: str) -> None:
    changed = text[:at] + character + text[at + 1 :]
    lock, found = parse(changed.encode(), "ipam.lock")
    if lock is None or found:
        with pytest.raises(Finding):
            Lock("ipam.lock", changed)
    elif lock.cluster == "case":  # any other name is refused beside the Cluster
        assert len(Lock("ipam.lock", changed).lines) == len(lock.lines)
