"""Case files: inputs and what they must give, in one file that reads like a page of the manual.

A case is a txtar archive: a header that says what it shows, then files between `-- name --` lines.

    -- cluster.yaml --            inputs; any number, YAML or JSON
    -- ipam.lock --               the lock before
    -- rendered/PATH --           a file of the rendered tree before
    -- want/ipam.lock --          the lock after
    -- want/rendered/PATH --      a rendered file; only those listed are compared
    -- want/files --              the paths of all rendered files
    -- want/report --             the findings as a user reads them
    -- want/findings --           findings that cannot be marked where they stand: `file:line:column: error[CODE]`

In YAML inputs a finding is expected on the line that it concerns: `cidrs: [10.0.8.0/24]  # ERROR: IPC0207`; the compiler does not see the marks. Lines
such as `#! today: 2026-11-21`, `#! locked`, `#! leave: NODE` and `#! rename: OLD=NEW` in the header set what a command line would; `#! rendered` says that
there is a rendered tree. `pytest tests/test_cases.py --update` rewrites expectations; review the diff.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipamc.diagnostics import Diagnostic, Refused, Span
from ipamc.disk import assets
from ipamc.model import Consent
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.report import report

ROOT = Path(__file__).parent / "cases"
_FILE = re.compile(r"^-- (\S+) --$", re.MULTILINE)
_MARK = re.compile(r"[ \t]*# ((?:ERROR|WARNING|NOTE): IPC\d{4}(?:, (?:ERROR|WARNING|NOTE): IPC\d{4})*)$", re.MULTILINE)
_FLAG = re.compile(r"^#! (\w+)(?:: (.*))?$", re.MULTILINE)
_NO_INPUT = ("want/", "rendered/")
FOLDER = "clusters/case"


@dataclass(frozen=True)
class Case:
    """One case as written."""

    header: str
    files: dict[str, str]
    findings: frozenset[str] = field(default_factory=frozenset)
    """`file:line: error[CODE]` for marks; with the column where it stands in want/findings."""

    @property
    def flags(self) -> dict[str, list[str]]:
        """Give the values of the header's `#!` lines by name, in order; "" where a flag has none."""
        found: dict[str, list[str]] = {}
        for name, value in _FLAG.findall(self.header):
            found.setdefault(name, []).append(value)
        return found

    @property
    def wanted(self) -> dict[str, str]:
        """Give the expectations that are files, by name."""
        return {name: text for name, text in self.files.items() if name.startswith("want/") and name != "want/findings"}


def load(path: Path) -> Case:
    """Read a case file, its expectations gathered from marks and from want/findings."""
    header, *rest = _FILE.split(path.read_text(encoding="utf-8"))
    files = {name: text.removeprefix("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)}
    findings = set(files.get("want/findings", "").splitlines())
    for name, text in files.items():
        if _markable(name):
            for number, line in enumerate(text.splitlines(), 1):
                if mark := _MARK.search(line):
                    findings |= {f"{name}:{number}: {_word(each)}" for each in mark.group(1).split(", ")}
    return Case(header, files, frozenset(findings))


def _markable(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and not name.startswith(_NO_INPUT)


def _unmarked(name: str, text: str) -> str:
    return _MARK.sub("", text) if _markable(name) else text


def _word(mark: str) -> str:
    severity, code = mark.split(": ")
    return f"{severity.lower()}[{code}]"


def inputs(case: Case) -> Inputs:
    """Give what the case hands to the compiler."""
    flags = case.flags
    published = {name.removeprefix("rendered/"): text for name, text in case.files.items() if name.startswith("rendered/")}
    sources = {name: _unmarked(name, text) for name, text in case.files.items() if not name.startswith(_NO_INPUT) and name != "ipam.lock"}
    return Inputs(
        name="case",
        folder=FOLDER,
        sources={f"{FOLDER}/{name}": text.encode() for name, text in sorted(sources.items())},
        lock_path=f"{FOLDER}/ipam.lock",
        lock=case.files["ipam.lock"].encode() if "ipam.lock" in case.files else None,
        rendered="rendered" in flags or bool(published),
        published={path: text.encode() for path, text in published.items()},
        schemas=assets("schemas"),
        templates=assets("templates"),
        consent=_consent(flags),
        today=flags.get("today", ["2026-11-21"])[0],
        locked="locked" in flags,
    )


def run(case: Case) -> Case:
    """Compile the case; give it as it would have to be written."""
    produced: dict[str, str] = {}
    try:
        compilation = compile_cluster(inputs(case))
        found = compilation.diagnostics
        produced = {f"want/rendered/{path}": text for path, text in compilation.files.items()}
        produced["want/ipam.lock"] = compilation.lock
        produced["want/files"] = "".join(f"{path}\n" for path in sorted(compilation.files))
    except Refused as refused:
        found = refused.diagnostics
    produced["want/report"] = report(found, "full")
    return _rewrite(case, found, produced)


def _consent(flags: dict[str, list[str]]) -> Consent:
    return Consent(
        leave=frozenset(flags.get("leave", [])),
        renumber=tuple(flags.get("renumber", [])),
        settle=frozenset(flags.get("settle", [])),
        release=frozenset(flags.get("release", [])),
        rename=tuple((old, new) for old, _, new in (each.partition("=") for each in flags.get("rename", []))),
        reshard="reshard" in flags,
        mode="mode" in flags,
    )


def _rewrite(case: Case, found: tuple[Diagnostic, ...], produced: dict[str, str]) -> Case:
    marks: dict[tuple[str, int], list[str]] = {}
    unmarked: list[str] = []
    files = {name: _unmarked(name, text) for name, text in case.files.items()}
    written = set(case.files.get("want/findings", "").splitlines())
    for each in found:
        assert isinstance(each.at, Span), each
        name = each.at.path.removeprefix(f"{FOLDER}/")
        word = f"{each.severity.name.lower()}[{each.code}]"
        full = f"{name}:{each.at.line}:{each.at.column}: {word}"
        if _markable(name) and each.at.line and files[name] and full not in written:
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
    for name in case.wanted:
        files[name] = produced.get(name, "")
    return replace(case, files=files)


def text(case: Case) -> str:
    """Write a case as a file."""
    return case.header + "".join(f"-- {name} --\n{body}" for name, body in case.files.items())
