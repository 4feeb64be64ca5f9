"""The work for a hostile input grows as the input does: calls of functions for n parts and for 4n, in process.

`make growth` measures processor time and memory, and larger inputs: it sees the time of C code as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.report.findings import NAMES, report
from ipamc.workspace.disk import assets
from tests.support import benchmarks
from tests.support.calls import counted

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
