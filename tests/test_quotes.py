"""What a finding quotes is what stands in the file at that line, in every case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from ipamc.model.diagnostics import Diagnostic, Refused, Span
from ipamc.pipeline import Inputs, compile_cluster
from tests.support import casefile


def findings(inputs: Inputs) -> tuple[Diagnostic, ...]:
    try:
        return compile_cluster(inputs).diagnostics
    except Refused as refused:
        return refused.diagnostics


def files(inputs: Inputs) -> Mapping[str, bytes]:
    """Return every file that a finding may be about, by path as findings spell it."""
    published = {f"{inputs.folder}/rendered/{path}": text for path, text in inputs.published.items()}
    return {**inputs.sources, **published, inputs.lock_path: inputs.lock or b""}


def quotes(inputs: Inputs) -> Iterator[Span]:
    for finding in findings(inputs):
        for at in (finding.at, *(related.at for related in finding.also)):
            assert isinstance(at, Span), finding
            if at.line:
                yield at


@pytest.mark.deep
@pytest.mark.parametrize("name", casefile.names())
def test_a_finding_quotes_what_is_written_there(name: str) -> None:
    case = casefile.load(name)
    for each in case.each.values() or (case,):
        inputs = casefile.inputs(each)
        written = files(inputs)
        for quote in quotes(inputs):
            if quote.path in written:  # else it is a file that the compiler renders
                rows = written[quote.path].decode(errors="replace").split("\n")
                assert quote.source == rows[quote.line - 1].rstrip("\r"), quote
