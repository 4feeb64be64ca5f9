"""`ipamc show --what-if`: what a compile would make of other nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import REFUSED
from ipamc.cli.findings import Problems
from ipamc.cli.terminal import progress, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipamc.review.what_if import WhatIf
    from ipamc.workspace.source import Source


def tell_what_if(source: Source, changes: Sequence[str], output: str, style: str) -> int:
    """Print what a compile would make of changes of the nodes of one cluster; return the exit code.

    That is 0 where every node has its blocks, and 1 where a compile would refuse.
    """
    from ipamc.report import what_if as report
    from ipamc.review.node_changes import ChangeError, parse_change
    from ipamc.review.what_if import what_if

    if len(source.folders) != 1:
        raise click.UsageError("--what-if asks about the nodes of one cluster: name it")
    problems = Problems()
    answers: list[WhatIf] = []
    misfits: list[ChangeError] = []
    with progress("compiling in thought"), problems.of(source.folders[0]):
        try:
            wanted = [parse_change(text) for text in changes]
            answers.append(what_if(source.inputs(source.folders[0]), wanted, source.day()))
        except ChangeError as problem:
            misfits.append(problem)
    if misfits:
        raise click.UsageError(f"--what-if {misfits[0]}")
    for answer in answers:
        if output == "json":
            record = {"version": report.VERSION, **source.record(), **report.record(answer)}
            show_json(json.dumps(record, indent=2))
        else:
            show(report.text(answer))
    code = problems.conclude(style, answered=bool(answers))
    return code if all(answer.fits for answer in answers) else REFUSED
