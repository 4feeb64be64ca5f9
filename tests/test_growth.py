"""The work for a hostile input grows as the input does: calls of functions for n parts and for 4n, in process.

`make growth` measures processor time and memory, and larger inputs: it sees the time of C code as well.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.report.findings import NAMES, report
from ipamc.workspace import git_run
from ipamc.workspace.disk import assets
from ipamc.workspace.spaces import of_space
from tests.support import benchmarks
from tests.support.calls import counted
from tests.support.in_process import ipamc

PARTS = 64
FREE = 20_000
"""Calls that need no ratio: what is done once, such as the first use of a schema."""
LIMIT = 1.3

Files = Mapping[str, str | bytes]
SCHEMAS, TEMPLATES = assets("schemas"), assets("templates")


FRAME = benchmarks.module("growth")
SHAPES: dict[str, Callable[[int], Files]] = {
    name: shape
    for path in sorted((benchmarks.FOLDER / "shapes").glob("*.py"))
    for name, shape in benchmarks.module(f"shapes.{path.stem}").shapes().items()
}


def findings(files: Files) -> tuple[Diagnostic, ...]:
    """Compile a cluster of these files; return what was found, refused or not."""
    texts = {"cluster.yaml": FRAME.CLUSTER, **files}
    data = {
        name: text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        for name, text in texts.items()
    }
    lock = data.pop("ipam.lock", None)
    rendered = {name: data.pop(name) for name in [*data] if name.startswith("rendered/")}
    inputs = Inputs(
        name="bench",
        folder="clusters/bench",
        sources=data,
        lock_path="clusters/bench/ipam.lock",
        lock=lock,
        published={name.removeprefix("rendered/"): text for name, text in rendered.items()},
        schemas=SCHEMAS,
        templates=TEMPLATES,
        today="2026-11-21",
    )
    try:
        return compile_cluster(inputs).diagnostics
    except Refused as refused:
        return refused.diagnostics


def grows_no_faster(work: Callable[[int], object]) -> bool:
    """Tell whether four times the parts are four times the work, within LIMIT."""
    work(2)  # what the first use of a library costs
    small, large = (counted(partial(work, parts)) for parts in (PARTS, 4 * PARTS))
    return large < 4 * LIMIT * small + FREE


@pytest.mark.deep
@pytest.mark.parametrize("name", SHAPES)
def test_the_work_of_a_compile_grows_as_its_input_does(name: str) -> None:
    assert grows_no_faster(lambda parts: findings(SHAPES[name](parts)))


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("style", NAMES)
@pytest.mark.parametrize("name", ["YAML: wrong nodes", "JSON: bad labels", "lock: lines twice"])
def test_the_work_of_a_report_grows_as_its_findings_do(name: str, style: str) -> None:
    found = findings(SHAPES[name](4 * PARTS))
    assert len(found) > 3 * PARTS
    assert grows_no_faster(lambda parts: report(found[:parts], style))


@pytest.mark.parametrize("verb", ["compile", "plan", "test", "show", "which 10.0.0.1", "why a", "report"])
@pytest.mark.parametrize("new", [True, False])
def test_the_work_of_a_fleet_grows_as_its_folders_do(tmp_path: Path, verb: str, *, new: bool) -> None:
    """Folders with a file of one byte, in HEAD or not: none looks at all others, and none asks git."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), (*identity, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, env=environment, check=True)

    def work(folders: int) -> None:
        for number in range(folders):
            (tmp_path / f"clusters/c{number}").mkdir(parents=True, exist_ok=True)
            (tmp_path / f"clusters/c{number}/a.yaml").write_text("#")
        ipamc(*verb.split(), *(["--jobs", "1"] if verb in {"compile", "plan", "test"} else []),
              cwd=tmp_path, environment=environment)  # fmt: skip

    work(PARTS)
    for more in [] if new else [["add", "."], [*identity, "commit", "-q", "-m", "second"]]:
        subprocess.run(["git", *more], cwd=tmp_path, env=environment, check=True)
    with mock.patch.object(git_run, "_start", wraps=git_run._start) as asked:  # noqa: SLF001 - each process
        work(PARTS)
    assert len(asked.mock_calls) < PARTS / 4
    assert grows_no_faster(work)


def test_a_kind_is_looked_for_in_a_document_and_not_in_the_rest_of_its_line() -> None:
    """An inventory on one line, as `jq -c` writes it, has thousands of kinds: 4 MB take milliseconds."""
    line = b'{"kind":"NodeInventory","nodes":[' + b",".join([b'{"kind":"Node","name":"a"}'] * 160_000) + b"]}"
    assert not of_space(None, {"nodes.json": line})
    for text in (
        b"kind: AddressSpace",
        b'{"kind": "AddressSpace"}',
        b"kind: &a 'AddressSpace'",
        b"'kind' : AddressSpace",
    ):
        assert of_space(None, {"space.yaml": text})
    for text in (
        b"kind: Cluster # AddressSpace",
        b"kind: Cluster\nname: AddressSpace",
        b'{"kind":"Node","name":"AddressSpace"}',
    ):
        assert not of_space(None, {"cluster.yaml": text})
