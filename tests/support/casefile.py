"""Cases: inputs and what they must give, in files that read like a page of the manual.

A case is a txtar archive: a header that says what it shows, then files between `-- name --` lines. A file of several cases has a line `=== NAME ===`
above each: the files before the first of these lines are the cases' own, too, unless they have another one of that name. A case is called as its path,
`lock/first-compile`, `lock/settle/one-family` of a file of several.

    -- cluster.yaml --            inputs; any number, YAML or JSON
    -- ipam.lock --               the lock before
    -- rendered/PATH --           a file of the rendered tree before
    -- base/PATH --               an input, the lock or a rendered file as it was: what a plan compares with; empty, it was not there. What `base/` lacks was
                                  as it is now; where it has nothing of the rendered tree, that was what the base compiles to
    -- beside/tests.yaml --       tests that stand beside the cluster's folder
    -- templates/NAME --          a template in place of the project's own: what a bug of ours would do
    -- dump/NAME --               a dump of the running cluster: the case is what `ipamc resize` makes of it, or with want/audit what `ipamc audit` says
    -- want/resize --             the table of `ipamc resize --all`
    -- want/ipam.lock --          the lock after
    -- want/rendered/PATH --      a rendered file; only those listed are compared
    -- want/files --              the paths of all rendered files
    -- want/report --             the findings as a user reads them
    -- want/why --               what `ipamc why` says of the nodes that `#! why: NODE` lines name
    -- want/audit --              what `ipamc audit` says of the dump against what the case compiles to; what was applied last is `base/`, or the same
    -- want/plan.text --          the plan of the case against its base: also plan.markdown and plan.json
    -- want/findings --           findings that cannot be marked where they stand: `file:line:column: error[CODE]`

In YAML inputs a finding is expected on the line that it concerns: `cidrs: [10.0.8.0/24]  # ERROR: IPC0207`; the compiler does not see the marks. Lines
such as `#! today: 2026-11-21`, `#! locked`, `#! leave: NODE` and `#! rename: OLD=NEW` in the header set what a command line would; `#! rendered` says that
there is a rendered tree. `pytest tests/test_cases.py --update` rewrites expectations; review the diff.

A case that says `#! shows: CAPABILITY, …` (names of `ipamc.model.cilium.support`) is a row of the version table: it is compiled once for each Cilium minor, which
takes the place of `1.x` in its inputs. One file a row and not one a minor, because what a reader looks for is the minor in which something changes.

    -- want/minors --             a line a minor: how the row is known there (the weakest of its capabilities), whether it is refused, the findings
    -- want/1.14-1.17/FILE --     `files`, `ipam.lock` or `rendered/PATH` as it is in these minors; name a FILE once, and `--update` lists all its spans
    -- want/1.14/report --        the findings of that minor as a user reads them

Marks are those of any minor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.cli.which import explain
from ipamc.lock.consent import parse_consent
from ipamc.lock.file import load as load_lock
from ipamc.model.cilium.support import Basis, Capability
from ipamc.model.cilium.versions import basis, minors
from ipamc.model.cilium.versions import text as minor_text
from ipamc.model.cluster import Version
from ipamc.model.diagnostics import Diagnostic, Refused, Severity, Span, count
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.place.resize.decide import resizes
from ipamc.place.resize.resize_rules import checked_decisions
from ipamc.read.dump.read import read_dump
from ipamc.read.locate import locate
from ipamc.report import explanation, plan_json, plan_markdown, plan_text
from ipamc.report.findings import report
from ipamc.report.page import render_plan
from ipamc.report.resize import table as resize_table
from ipamc.review.audit import audit, refused
from ipamc.review.audit.context import Context
from ipamc.review.diff import ClusterBase, compare, read_base
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, PlanStatus
from ipamc.workspace.disk import assets
from ipamc.workspace.rendered import Manifests

ROOT = Path(__file__).parents[1] / "cases"
_CASE = re.compile(r"^=== (\S+) ===\n", re.MULTILINE)
_FILE = re.compile(r"^-- (\S+) --$", re.MULTILINE)
_MARK = re.compile(
    r"[ \t]*# ((?:ERROR|WARNING|NOTE): IPC\d{4}(?:, (?:ERROR|WARNING|NOTE): IPC\d{4})*)$", re.MULTILINE
)
_FLAG = re.compile(r"^#! (\w+)(?:: (.*))?$", re.MULTILINE)
_SPAN = re.compile(r"want/(1\.\d+)(?:-1\.\d+)?/(.+)")
_NO_INPUT = ("want/", "rendered/", "templates/", "base/", "dump/", "beside/")
FOLDER = "clusters/case"


class Case(Struct, frozen=True, dict=True):
    """One case as written."""

    header: str
    files: dict[str, str]
    findings: frozenset[str] = field(default_factory=frozenset)
    """`file:line: error[CODE]` for marks; with the column where it stands in want/findings."""

    @property
    def flags(self) -> dict[str, list[str]]:
        """Return the values of the header's `#!` lines by name, in order; "" where a flag has none."""
        found: dict[str, list[str]] = {}
        for name, value in _FLAG.findall(self.header):
            found.setdefault(name, []).append(value)
        return found

    @property
    def shows(self) -> tuple[Capability, ...]:
        """Return the capabilities that differ, or are, as the case shows; none where the case is of one minor alone."""
        return tuple(Capability[name] for names in self.flags.get("shows", []) for name in names.split(", "))

    @property
    def each(self) -> Mapping[Version, Case]:
        """Return the case of every minor, where it is a row of the version table; else nothing."""
        return {version: self._of(version) for version in minors()} if self.shows else {}

    def _of(self, version: Version) -> Case:
        return replace(
            self,
            files={
                name: text if name.startswith("want/") else text.replace("1.x", minor_text(version))
                for name, text in self.files.items()
            },
        )


@cache
def names() -> tuple[str, ...]:
    """Return the names of all cases, sorted."""
    return tuple(sorted(_places()))


@cache
def _places() -> dict[str, tuple[Path, str]]:
    """Return the file of each case, and its name there; "" of the only case of a file."""
    found: dict[str, tuple[Path, str]] = {}
    for path in ROOT.rglob("*.txtar"):
        of_file = path.relative_to(ROOT).with_suffix("").as_posix()
        several = _CASE.findall(path.read_text(encoding="utf-8"))
        assert len(set(several)) == len(several), f"{path}: two cases of one name"
        found |= {f"{of_file}/{name}": (path, name) for name in several} or {of_file: (path, "")}
    return found


def load(name: str) -> Case:
    """Read a case, its expectations gathered from marks and from want/findings."""
    path, section = _places()[name]
    common, cases = _split(path.read_text(encoding="utf-8"))
    header, files = _archive(cases[section])
    files = {**_archive(common)[1], **files}
    findings = set(files.get("want/findings", "").splitlines())
    for file, text in files.items():
        if _markable(file):
            for number, line in enumerate(text.splitlines(), 1):
                if mark := _MARK.search(line):
                    findings |= {f"{file}:{number}: {_word(each)}" for each in mark.group(1).split(", ")}
    return Case(header, files, frozenset(findings))


def save(name: str, case: Case) -> None:
    """Write a case into its file, without what is common to all cases of the file."""
    path, section = _places()[name]
    common, cases = _split(path.read_text(encoding="utf-8"))
    known = _archive(common)[1]
    cases[section] = text(
        replace(case, files={file: body for file, body in case.files.items() if known.get(file) != body})
    )
    heads = ((f"=== {each} ===\n" if each else "", body) for each, body in cases.items())
    path.write_text(common + "".join(chain(*heads)), encoding="utf-8")


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Return what is common to the cases of a file, and the text of each by its name there."""
    common, *several = _CASE.split(text)
    return (common, dict(zip(several[::2], several[1::2], strict=True))) if several else ("", {"": text})


def _archive(text: str) -> tuple[str, dict[str, str]]:
    """Return the header and the files of a text."""
    header, *rest = _FILE.split(text)
    return header, {name: text.removeprefix("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)}


def _markable(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and not name.startswith(_NO_INPUT)


def _unmarked(name: str, text: str) -> str:
    return _MARK.sub("", text) if _markable(name) else text


def _word(mark: str) -> str:
    severity, code = mark.split(": ")
    return f"{severity.lower()}[{code}]"


def inputs(case: Case) -> Inputs:
    """Return what the case hands to the compiler."""
    flags = case.flags
    published = _below("rendered/", case)
    sources = {
        name: _unmarked(name, text)
        for name, text in case.files.items()
        if not name.startswith(_NO_INPUT) and name != "ipam.lock"
    }
    return Inputs(
        name="case",
        folder=FOLDER,
        sources={f"{FOLDER}/{name}": text.encode() for name, text in sorted(sources.items())},
        shared={f"clusters/{name}": text.encode() for name, text in _below("beside/", case).items()},
        lock_path=f"{FOLDER}/ipam.lock",
        lock=case.files["ipam.lock"].encode() if "ipam.lock" in case.files else None,
        rendered="rendered" in flags or bool(published),
        published={path: text.encode() for path, text in published.items()},
        schemas=assets("schemas"),
        templates={**assets("templates"), **_below("templates/", case)},
        consent=_consent(flags),
        today=flags.get("today", ["2026-11-21"])[0],
        locked="locked" in flags,
    )


def _below(folder: str, case: Case) -> dict[str, str]:
    return {name.removeprefix(folder): text for name, text in case.files.items() if name.startswith(folder)}


class Outcome(NamedTuple):
    """What the compiler makes of a case."""

    found: tuple[Diagnostic, ...]
    produced: dict[str, str]
    """By the names that expectations have, without `want/`; the files only where nothing is refused."""


def compiled(case: Case) -> Outcome:
    """Compile the case of one minor."""
    produced: dict[str, str] = {}
    compilation = None
    dumps = {} if "want/audit" in case.files else _below("dump/", case)
    found: tuple[Diagnostic, ...] = ()
    try:
        compilation, said = _resized(case, dumps, produced) if dumps else (compile_cluster(inputs(case)), ())
        found = (*said, *compilation.diagnostics)
        produced |= {f"rendered/{path}": text for path, text in compilation.files.items()}
        produced["ipam.lock"] = compilation.lock
        produced["files"] = "".join(f"{path}\n" for path in sorted(compilation.files))
    except Refused as refused:
        found = refused.diagnostics
    produced["report"] = report(found, "full")
    if nodes := case.flags.get("why"):
        produced["why"] = "\n".join(_why(case, node) for node in nodes)
    if any(name.startswith("want/plan.") for name in case.files):
        produced |= plans(case, compilation, found)
    if "want/audit" in case.files and compilation:
        produced["audit"] = audited(case, compilation)
    return Outcome(found, produced)


def _resized(
    case: Case, dumps: Mapping[str, str], produced: dict[str, str]
) -> tuple[Compilation, tuple[Diagnostic, ...]]:
    """Look at the use in a dump, and compile; every case shows that a second look changes nothing."""
    given = inputs(case)
    pieces = [(f"dump/{name}", [text.encode()]) for name, text in dumps.items()]
    dump, warnings = read_dump(pieces, nodes=False)
    try:
        looked, found = checked_decisions(compile_cluster(given).plan, dump, given.today)
    except Refused as refused:
        raise Refused(locate((*warnings, *refused.diagnostics), given.sources)) from None
    produced["resize"] = resize_table(looked.rows, every=True)
    done = compile_cluster(replace(given, consent=replace(given.consent, resize=resizes(looked.rows))))
    later = replace(given, lock=done.lock.encode(), consent=Consent())
    again, _ = checked_decisions(compile_cluster(later).plan, dump, given.today)
    settled = compile_cluster(replace(later, consent=Consent(resize=resizes(again.rows))))
    assert (settled.lock, settled.files) == (done.lock, done.files), "a second look changes something"
    return done, locate((*warnings, *found), given.sources)


def audited(case: Case, compilation: Compilation) -> str:
    """Write what an audit says of the case's dump."""
    files = _below("dump/", case)
    dump, found = read_dump([(f"dump/{name}", [text.encode()]) for name, text in files.items()])
    git = {path: text.encode() for path, text in compilation.files.items()}
    then = before(case).rendered.texts if any(name.startswith("base/") for name in case.files) else git
    cluster = compilation.plan.cluster
    lock, _ = load_lock(compilation.lock.encode(), f"{FOLDER}/ipam.lock", cluster, Consent(), rendered=True)
    scene = Context(
        cluster=cluster,
        lock=lock,
        dump=dump,
        git=Manifests(git, f"{FOLDER}/rendered"),
        applied=Manifests(then, f"applied:{FOLDER}/rendered", "applied"),
    )
    return report(locate([*found, *(refused(scene, "", "") or audit(scene))], inputs(case).sources), "full")


def _why(case: Case, node: str) -> str:
    given = inputs(case)
    found = explain(given, node, given.today)
    return explanation.text(*found) if found else f"{node} is not known\n"


def plans(case: Case, head: Compilation | None, found: tuple[Diagnostic, ...]) -> dict[str, str]:
    """Write the plan of a case in every format; `head` is None where the compile was refused."""
    errors = sum(each.severity is Severity.ERROR for each in found)
    said = "" if head else f"{count(errors, 'error')}, and so there is nothing to compare"
    cluster = ClusterReport(
        name="case",
        status=PlanStatus.PLANNED if head else PlanStatus.REFUSED,
        said=said,
        difference=compare(before(case), head, inputs(case).today, assets("templates/runbooks"))
        if head
        else None,
        findings=found,
    )
    plan_report = PlanReport(base="main", clusters=(cluster,))
    return {
        "plan.text": plan_text.render(plan_report),
        "plan.markdown": plan_markdown.render(plan_report),
        "plan.json": plan_json.render(plan_report),
        "plan.html": render_plan(plan_report, assets("templates/page"), inputs(case).today),
    }


def before(case: Case) -> ClusterBase:
    """Return the base of a case: what `base/` has in place of what is there now."""
    was = _below("base/", case)
    files = {
        **{
            name: text
            for name, text in case.files.items()
            if not name.startswith(("want/", "rendered/", "base/"))
        },
        **was,
    }
    then = inputs(replace(case, header="", files={name: text for name, text in files.items() if text}))
    rendered = {
        path.removeprefix("rendered/"): text.encode()
        for path, text in was.items()
        if path.startswith("rendered/")
    }
    return read_base(
        then, rendered or {path: text.encode() for path, text in compile_cluster(then).files.items()}
    )


def run(case: Case) -> Case:
    """Compile the case, for each minor if it is a row of the version table; give it as it would have to be written."""
    if not case.shows:
        found, produced = compiled(case)
        marked = _marked(case, found)
        return replace(
            marked,
            files={
                name: produced.get(_wanted(name), "") if _wanted(name) else text
                for name, text in marked.files.items()
            },
        )
    outcomes = {version: compiled(each) for version, each in case.each.items()}
    marked = _marked(case, tuple(each for outcome in outcomes.values() for each in outcome.found))
    files: dict[str, str] = {}
    for name, text in marked.files.items():
        if name == "want/minors":
            files[name] = "".join(_row(case, version, outcome) for version, outcome in outcomes.items())
        elif match := _SPAN.fullmatch(name):
            minor, wanted = match.groups()
            files |= _spans(wanted, outcomes, minor)
        elif not _wanted(name):
            files[name] = text
    return replace(marked, files=files)


def _wanted(name: str) -> str:
    """Return the name of what is expected, or "" of an input and of the findings, which marks take care of."""
    return name.removeprefix("want/") if name.startswith("want/") and name != "want/findings" else ""


def _row(case: Case, version: Version, outcome: Outcome) -> str:
    """Write a line of want/minors."""
    weakest = max((basis(version, capability) for capability in case.shows), key=list(Basis).index)
    codes = sorted({_short(each) for each in outcome.found})
    refused = any(each.severity is Severity.ERROR for each in outcome.found)
    return (
        f"{minor_text(version)}  {weakest:<8}  {'refused' if refused else 'accepted':<8}  {', '.join(codes)}".rstrip()
        + "\n"
    )


def _spans(name: str, outcomes: Mapping[Version, Outcome], minor: str) -> Iterator[tuple[str, str]]:
    """Return the expectations of one file, a span of minors that agree each; of a report that of one minor alone."""
    texts = [(minor_text(version), outcome.produced.get(name, "")) for version, outcome in outcomes.items()]
    if name == "report":
        return ((f"want/{each}/report", text) for each, text in texts if each == minor)
    spans = [([each for each, _ in span], text) for text, span in groupby(texts, key=lambda each: each[1])]
    return (
        (f"want/{'-'.join(dict.fromkeys((span[0], span[-1])))}/{name}", text) for span, text in spans if text
    )


def _consent(flags: dict[str, list[str]]) -> Consent:
    return parse_consent(
        leave=flags.get("leave", []),
        no_pods=flags.get("no_pods", []),
        adopt=flags.get("adopt", []),
        renumber=flags.get("renumber", []),
        settle=flags.get("settle", []),
        release=flags.get("release", []),
        rename=[(old, new) for old, _, new in (each.partition("=") for each in flags.get("rename", []))],
        reshard="reshard" in flags,
        mode="mode" in flags,
    )


def _marked(case: Case, found: tuple[Diagnostic, ...]) -> Case:
    """Return the case with its findings marked where they stand, or listed in want/findings."""
    marks: dict[tuple[str, int], list[str]] = {}
    unmarked: list[str] = []
    files = {name: _unmarked(name, text) for name, text in case.files.items()}
    written = set(case.files.get("want/findings", "").splitlines())
    for each in found:
        assert isinstance(each.at, Span), each
        name = each.at.path.removeprefix(f"{FOLDER}/")
        full = f"{name}:{each.at.line}:{each.at.column}: {_short(each)}"
        if _markable(name) and each.at.line and files.get(name) and full not in written:
            mark = f"{each.severity.name}: {each.code}"
            if mark not in marks.setdefault((name, each.at.line), []):
                marks[name, each.at.line].append(mark)
        else:
            unmarked.append(full)
    for (name, number), each_mark in marks.items():
        lines = files[name].split("\n")
        lines[number - 1] += f"  # {', '.join(each_mark)}"
        files[name] = "\n".join(lines)
    files.pop("want/findings", None)
    if unmarked:
        files["want/findings"] = "".join(f"{line}\n" for line in sorted(set(unmarked)))
    return replace(case, files=files)


def _short(finding: Diagnostic) -> str:
    return f"{finding.severity.word}[{finding.code}]"


def text(case: Case) -> str:
    """Write a case as a file."""
    return case.header + "".join(f"-- {name} --\n{body}" for name, body in case.files.items())
