"""Recognizes files that are no documents: kubectl's output for people, its errors, a page, a merge conflict.

A parser would stop somewhere inside, and name what it misses there. These texts are recognized by their
beginnings, at no cost; conflict markers are searched for, some 0.08 s for 100 MB.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ipamc.model.diagnostics import Diagnostic, Place, Span
from ipamc.model.wording import typed
from ipamc.read import rules
from ipamc.read.syntax.encoding import BOM, Lines

_HEAD = 4096
"""The bytes in which such a text is recognized."""
_MARKS = (b"<<<<<<<", b">>>>>>>")
"""A file with a conflict contains one of these, unless some of its marks were removed."""
_MARK = re.compile(rb"^(?:<{7} |>{7} |\|{7} |={7}\r?$)", re.MULTILINE)
"""Lines that git writes into a file with a conflict. At the start of a line they are in no YAML or JSON."""

_YAML = re.compile(rb"\s*(#|---\s|(apiVersion|kind|items|metadata|nodes):\s)").match


class Other(NamedTuple):
    """The description of a text that is no document."""

    problem: str
    first: str = ""
    """What to do before the file is written again; ends with a colon."""
    way_out: str = ""
    """What to do instead of writing the file again with kubectl."""

    def help(self, command: str) -> str:
        """Return the help of the finding; `command` writes the file again."""
        return self.way_out or f"{self.first or 'run '}{command}"


_TABLE = "this is a table that kubectl prints for people"
_ERROR = Other("this is an error of kubectl, in the place of its objects", first="mend it first, then run: ")
_BESIDE = Other(
    "this is a message of kubectl, beside its objects", first="write the objects alone, without 2>&1 or &>: "
)
_DOCUMENTS = (b"apiVersion:", b"kind:", b"#", b"---", b"{")
"""None of the patterns of others begins so."""
_OTHERS = (
    (rb"(NAMESPACE +)?NAME +[A-Z]", Other(_TABLE)),
    (rb"[a-z0-9][a-z0-9.-]* +(Not)?Ready\S* +\S+ +\d+[smhdy]\S* +v1\.", Other(_TABLE)),
    (
        rb"[a-z]+(\.[a-z0-9.]+)?/[a-z0-9][a-z0-9.-]*\s*(\n|$)",
        Other("these are names alone, as kubectl -o name prints them"),
    ),
    (
        rb"Name: +\S+[^\n]*\n(Namespace|Roles|Labels|Annotations): ",
        Other("this is what kubectl describe prints for people"),
    ),
    (
        (
            rb"([Ee]rror: |Error from server|The connection to the server |Unable to connect to the server|"
            rb"No resources found|You must be logged in|Unauthorized\b|(ba|z)?sh: )"
        ),
        _ERROR,
    ),
    (rb"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ [^\n]*\n\s*\S", _BESIDE),
    (rb"Warning: [^\n]*\n\s*\S", _BESIDE),
    (rb"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ |Warning: ", _ERROR),
    (rb"(?i)<(!DOCTYPE html|html)\b", Other("this is a web page, and no answer of the apiserver")),
    (
        rb"```",
        Other(
            "this is a fence of Markdown around a document", way_out="delete the lines that begin with ```"
        ),
    ),
    (
        rb"version https://git-lfs\.github\.com/spec/",
        Other("this is a pointer of Git LFS: the file itself was not fetched", way_out="run git lfs pull"),
    ),
)


def recognised(head: bytes) -> Other | None:
    """Return the description of a file with this beginning if it is certainly no document; else None."""
    start = head[:_HEAD].removeprefix(BOM).lstrip()
    if start.startswith(_DOCUMENTS):
        return None
    return next((other for pattern, other in _OTHERS if re.match(pattern, start)), None)


def other_text(path: str, data: bytes) -> Diagnostic | None:
    """Return the finding for an input that is no document; None for all others, valid or not."""
    is_json = path.endswith(".json")
    rule = rules.json_syntax if is_json else rules.yaml_syntax
    if other := recognised(data):
        return rule(first_line(path, data), other.problem, way_out=other.help(kubectl(path)))
    if is_json and _YAML(data[:_HEAD].removeprefix(BOM)):
        way_out = f"mv {typed(path)} {typed(path.removesuffix('.json') + '.yaml')}"
        problem = "this is YAML, in a file whose name ends in .json"
        return rule(first_line(path, data), problem, way_out=way_out)
    return conflict_marker(path, data) if any(mark in data for mark in _MARKS) else None


def conflict_marker(path: str, data: bytes) -> Diagnostic | None:
    """Return the finding for the first line that git wrote into a conflicting input; None without one."""
    found = _MARK.search(data)
    if found is None:
        return None
    rule = rules.json_syntax if path.endswith(".json") else rules.yaml_syntax
    at = _line(path, data, found.start())
    way_out = (
        "keep one side, or both where they add to each other, and delete the lines with <<<<<<<, ======= and "
        f">>>>>>>; then run: git add {typed(path)}"
    )
    return rule(at, f"line {at.line} is a conflict marker of git", way_out=way_out)


def first_line(path: str, data: bytes) -> Span:
    """Return the first line of a file that is not empty."""
    return _line(path, head := data[:_HEAD], len(head) - len(head.removeprefix(BOM).lstrip()))


def _line(path: str, data: bytes, start: int) -> Span:
    text = data.removeprefix(BOM).decode(errors="replace")
    first = len(data[:start].removeprefix(BOM).decode(errors="replace"))
    return Lines(path, text).span(first, first + len(text[first:].partition("\n")[0].rstrip()))


def kubectl(path: str) -> str:
    """Return the command that writes Nodes into an input, in the format of its name."""
    kind = "json" if path.endswith(".json") else "yaml"
    return f"kubectl get nodes,ciliumnodes -o {kind} > {typed(path)}"


def cut_off(at: Place, items: int) -> Diagnostic:
    """Return the finding for a List without a kind after its items, where kubectl prints it."""
    number = f"after item {items:,}" if items else "before the first item"
    problem = f"the file ends inside items, {number}: it was cut off"
    return rules.yaml_syntax(at, problem, way_out=f"write it again, whole: {kubectl(at.path)}")
