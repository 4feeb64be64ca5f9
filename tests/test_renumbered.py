"""Renumbered means one thing: compile, lock and plan count the same nodes."""

from __future__ import annotations

import re

import pytest

from ipamc.cli import runner
from ipamc.lock.file import parse
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Lock
from ipamc.pipeline import compile_cluster
from ipamc.review.diff import ClusterBase, compare
from ipamc.workspace.disk import assets
from tests.support import casefile


@pytest.mark.deep
@pytest.mark.parametrize("name", casefile.names())
def test_compile_lock_and_plan_agree(name: str) -> None:
    """Compile and lock print one summary; the plan against the same lock has the same number, and names as many nodes."""
    case = casefile.load(name)
    for each in case.each.values() or (case,):
        inputs = casefile.inputs(each)
        try:
            compilation = compile_cluster(inputs)
        except Refused:
            continue
        base = parse(inputs.lock, inputs.lock_path)[0] if inputs.lock else None
        side = ClusterBase(
            lock=base or Lock(cluster="case", mode=compilation.plan.cluster.mode, shards=0),
            cluster=None,
            new=base is None,
        )
        lines = compare(side, compilation, inputs.today, assets("templates/runbooks")).lines
        match = re.search(r"([\d,]+) renumbered", runner.placed(compilation.plan, inputs.today))
        assert match
        assert int(match.group(1).replace(",", "")) == lines.counts.renumbered
        assert lines.counts.renumbered == len({move.node for move in (*lines.pending, *lines.completed)})
