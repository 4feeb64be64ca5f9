"""The laws of a compile of any input: an answer or a refusal, never another exception; and what must hold of either."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import yaml
from jsonschema_rs import Draft202012Validator
from msgspec.structs import replace
from ruamel.yaml import YAML

from ipamc.catalogue import catalogue
from ipamc.cli.which import explain
from ipamc.lock.file import dumps, parse
from ipamc.lock.lookup import of, over
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, Located, Refused, Severity, Span
from ipamc.model.lock import Consent, Line, State
from ipamc.pipeline import Compilation, Inputs, compile_cluster, load_cluster
from ipamc.read.locate import Texts
from ipamc.render.arrange import arrange
from ipamc.report import explanation, lock_lines, plan_json, plan_markdown, plan_text, show_text
from ipamc.report import utilisation as report_utilisation
from ipamc.report.findings import FORMATS, RuleText, report
from ipamc.report.show_text import Screen, ShowOptions
from ipamc.review import GATES
from ipamc.review.diff import Difference, UnreadableBase, compare, empty_base, read_base
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, refusals
from ipamc.review.explain_pools import explain_address
from ipamc.review.shown_pools import Choice, shown, started_with
from ipamc.workspace.disk import assets
from tests.fuzz.subjects import published

ACCEPTED, REFUSED = "accepted", "refused"
LATER = "2027-12-24"
"""Another day: that time goes by makes nothing stale."""
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAK = re.compile(r"\r\n|\n|\r")
_COMMAND = re.compile(r"::(?:error|warning|notice) [^\n]*::[^\n]*")


def examine(inputs: Inputs) -> str:
    """Compile, and assert every law; tell whether it was accepted or refused. Raises what is wrong."""
    done = _compiled(inputs)
    if isinstance(done, Refused):
        assert any(each.severity is Severity.ERROR for each in done.diagnostics), "refused without an error"
        findings_can_be_shown(inputs, done.diagnostics, ())
        it_answers(inputs)
        return REFUSED
    assert not any(each.severity is Severity.ERROR for each in done.diagnostics), "accepted with an error"
    findings_can_be_shown(inputs, done.diagnostics, done.files)
    the_lock_is_sound(done.lock)
    new_blocks_lie_in_their_pools(inputs, done)
    no_line_vanished(inputs, done)
    rendered_files_are_read_alike(done.files)
    objects_match_their_schemas(inputs, done)
    a_second_compile_changes_nothing(inputs, done)
    it_can_be_planned(inputs, done)
    it_answers(replace(inputs, lock=done.lock.encode(), consent=Consent()))
    return ACCEPTED


def _compiled(inputs: Inputs) -> Compilation | Refused:
    try:
        return compile_cluster(inputs)
    except Refused as refused:
        return refused


def findings_can_be_shown(inputs: Inputs, found: Iterable[Diagnostic], rendered: Iterable[str]) -> None:
    """A finding has a known code, and a place that exists; each format shows it, and is what its readers take."""
    findings = tuple(found)
    texts = {
        **inputs.sources,
        **{f"{inputs.folder}/rendered/{path}": text for path, text in inputs.published.items()},
        inputs.lock_path: inputs.lock or b"",
    }
    known = {*texts, inputs.folder, *(f"{inputs.folder}/rendered/{path}" for path in rendered)}
    for finding in findings:
        assert finding.code in catalogue(assets("rules")), finding
        assert finding.code != "IPC0601", f"a template wrote what its schema refuses: {finding.message}"
        assert isinstance(finding, Located), finding
        assert finding.message, finding
        for at in (finding.at, *(other.at for other in finding.also)):
            assert at.path in known or at.path.startswith(f"{inputs.folder}/rendered/"), at
            if at.path in texts and at.line:
                rows = _BREAK.split(texts[at.path].decode(errors="replace"))
                assert at.line <= len(rows), at
                assert 0 <= at.column <= len(rows[at.line - 1]) + 2, at
    for name, each in FORMATS.items():
        readable(name, report(findings, name, rules=_rules() if each.rules else {}), len(findings))


@cache
def _rules() -> Mapping[str, RuleText]:
    return {code: RuleText(entry.title, entry.body) for code, entry in catalogue(assets("rules")).items()}


def readable(name: str, text: str, number: int) -> None:
    """Assert that a report is what those take who read its format, and shows all findings that it should."""
    text.encode()  # no lone surrogate
    match name:
        case "json":
            assert len(json.loads(text)["findings"]) == number
        case "gitlab":
            records = json.loads(text)
            assert len({record["fingerprint"] for record in records}) == number
        case "sarif":
            assert len(json.loads(text)["runs"][0]["results"]) == number
        case "junit":
            assert sum(1 for _ in ET.fromstring(text).iter("testcase")) == max(number, 1)  # noqa: S314 - our own
        case _:
            assert not _UNPRINTABLE.search(text), repr(_UNPRINTABLE.findall(text))
            if name == "github":
                rest = [row for row in text.splitlines() if not _COMMAND.fullmatch(row)]
                assert all(row.startswith("and ") for row in rest), rest


def the_lock_is_sound(text: str) -> None:
    """A lock reads back to itself, and no address is in two lines."""
    lock, found = parse(text.encode(), "ipam.lock")
    assert lock is not None, found
    assert not found, found
    assert dumps(lock) == text
    for one, other in pairwise(sorted(line.block for line in lock.lines)):
        assert not one.overlaps(other), f"{one} overlaps {other}"


def _lines(text: bytes | None) -> tuple[Line, ...]:
    lock = parse(text, "ipam.lock")[0] if text else None
    return lock.lines if lock else ()


def new_blocks_lie_in_their_pools(inputs: Inputs, done: Compilation) -> None:
    """A block that no line had before lies in a range of its pool, and outside of all that is reserved or excluded; but where it is adopted."""
    cluster = done.plan.cluster
    pools = {pool.name: pool for pool in cluster.pools}
    kept = [each.block for each in cluster.excluded]
    kept += [each.block for pool in cluster.pools for each in pool.reserved]
    before = {line.block for line in _lines(inputs.lock)}
    shown = _shown(done)
    for line in done.plan.lock.lines:
        if line.block in before or any(each.overlaps(line.block) for each in shown):
            continue
        pool = pools[line.pool]
        assert line.node in {node.name for node in cluster.nodes}, line
        assert any(each.block.contains(line.block) for each in pool.families[line.block.family].ranges), line
        assert not any(each.overlaps(line.block) for each in kept), line


def _shown(done: Compilation) -> list[Block]:
    """Return what running nodes show: it is adopted wherever it is."""
    cluster = done.plan.cluster
    shown = [block for node in cluster.nodes for block in node.pod_cidrs]
    for node in cluster.cilium_nodes:
        shown += [*node.blocks, *(block for block, _ in node.allocated)]
        shown += node.addresses
    return shown


def no_line_vanished(inputs: Inputs, done: Compilation) -> None:
    """A line goes only where its addresses were given out again; that of a node which has it goes only where another block is shown in its place."""
    now = done.plan.lock.lines
    blocks = {line.block for line in now}
    shown = _shown(done)
    here = {node.name for node in done.plan.cluster.nodes}
    for line in _lines(inputs.lock):
        if line.block in blocks:
            continue
        above = [each for each in now if each.block.overlaps(line.block)]
        assert above, f"{line} vanished"
        if line.state is State.HELD and line.node in here and inputs.consent == Consent():
            assert any(each.overlaps(line.block) for each in shown), f"{line} was given to {above}"


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Any, ...]:
    """Read rendered YAML by two readers, for the same."""
    documents = list(yaml.load_all(text, yaml.CSafeLoader))
    assert documents == list(YAML(typ="safe", pure=True).load_all(text)), "readers of YAML 1.1 and 1.2 differ"
    return tuple(documents)


def rendered_files_are_read_alike(files: Mapping[str, str]) -> None:
    """Readers of YAML 1.1 and of YAML 1.2 take the same from every file."""
    for path, text in files.items():
        assert _read(text), path


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(assets("schemas")[name])


def objects_match_their_schemas(inputs: Inputs, done: Compilation) -> None:
    """Every object of every file is one that its schema knows: a compile looks at one object of each shape alone."""
    for file in arrange(done.plan, inputs.before):
        validator = _validator(f"{file.template.removesuffix('.yaml.j2')}.emitted.json")
        for document in _read(done.files[file.path]):
            wrong = next(validator.iter_errors(document), None)
            assert wrong is None, f"{file.path}: {wrong}"


def a_second_compile_changes_nothing(inputs: Inputs, done: Compilation) -> None:
    """What a compile wrote is not stale: not on another day either, with what it rendered beside it."""
    again = replace(
        inputs,
        lock=done.lock.encode(),
        rendered=True,
        published=published(done.files),
        locked=True,
        consent=Consent(leave=inputs.consent.leave, no_pods=inputs.consent.no_pods),
        today=LATER,
    )
    second = _compiled(again)
    if isinstance(second, Refused):
        raise AssertionError(f"the second compile is refused: {report(second.diagnostics, 'concise')}")  # noqa: TRY004 - a law, not a type
    assert second.lock == done.lock, "the second compile writes another lock"
    assert second.files == done.files, "the second compile renders other files"


def it_can_be_planned(inputs: Inputs, done: Compilation) -> None:
    """A plan against what is there, and of a new cluster, is written in every format."""
    try:
        bases = [read_base(inputs, inputs.published), empty_base(inputs.name, done.plan.lock.mode)]
    except UnreadableBase as problem:
        raise AssertionError(f"what was compiled cannot be a base: {problem}") from None
    for base in bases:
        a_plan_can_be_shown(compare(base, done, inputs.today, assets("templates/runbooks")), done)


def a_plan_can_be_shown(difference: Difference, done: Compilation) -> None:
    """A plan is written in every format, as those take it who read the format."""
    cluster = ClusterReport(name=done.plan.cluster.name, difference=difference, findings=done.diagnostics)
    plan = PlanReport(base="main", clusters=(cluster,))
    list(refusals(plan, GATES))
    found = json.loads(plan_json.render(plan))
    wrong = next(_validator("plan.output.json").iter_errors(found), None)
    assert wrong is None, f"plan as JSON: {wrong}"
    for text in (plan_markdown.render(plan), plan_text.render(plan)):
        text.encode()
        assert not _UNPRINTABLE.search(text), repr(_UNPRINTABLE.findall(text))


def it_answers(inputs: Inputs) -> None:
    """`show`, `which` and `why` answer, or refuse."""
    try:
        shown = list(_answers(inputs))
    except Refused:
        return
    for text in shown:
        text.encode()
        assert not _UNPRINTABLE.search(text), repr(_UNPRINTABLE.findall(text))


def _answers(inputs: Inputs) -> Iterator[str]:
    questions = [Block(4, 0x0A000000, 8), Block(6, 0xFD << 120, 8), Block(4, 0x0A000007, 32)]
    names = [*dict.fromkeys(line.node for line in _lines(inputs.lock))][:2]
    if inputs.lock is not None:
        found = [each for block in questions for each in over(inputs.lock, inputs.lock_path, block)]
        found += [each for name in names for each in of(inputs.lock, inputs.lock_path, name)]
        yield lock_lines.table(
            [lock_lines.LockAnswer(cluster="case", line=each.line, at=Span("x")) for each in found], 80
        )
    cluster, lock = load_cluster(inputs)
    seen = shown(
        cluster, lock, Choice(), inputs.today or LATER, lines=True, started=started_with(cluster, lock)
    )
    for options in (ShowOptions(blocks=True), ShowOptions(sort="room", ranges=True, every=True)):
        yield show_text.render([seen], options, Screen(width=40, blocks=True, cuts=True))
    yield report_utilisation.prometheus([seen])
    yield json.dumps(report_utilisation.record(seen))
    for block in questions:
        unheld = explain_address(cluster, lock, block)
        texts = Texts(inputs.sources, [each.at for each in unheld])
        answers = [
            lock_lines.InputAnswer(cluster="case", unheld=each, at=texts.span(each.at)) for each in unheld
        ]
        yield from (lock_lines.table(answers, columns) for columns in (40, 200))
        yield json.dumps(lock_lines.records(answers))
    for name in (*names, *(node.name for node in cluster.nodes[:2])):
        if explained := explain(inputs, name, inputs.today):
            yield explanation.text(*explained)
            yield json.dumps(explanation.record(*explained))
