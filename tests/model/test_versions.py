"""The version table: that each cell says what was seen, that the compiler does as it says; and the arithmetic that rests on it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ipamc.catalogue import catalogue
from ipamc.model.cidr import parse_block
from ipamc.model.cilium.support import (
    APISERVER,
    APISERVER_TABLE,
    FIRST,
    LAST,
    READ_AT,
    TABLE,
    Basis,
    Capability,
    Row,
)
from ipamc.model.cilium.versions import (
    basis,
    can,
    minors,
    needed_addresses,
    pre_allocation,
    shown,
    since,
    text,
    until,
)
from ipamc.model.cluster import Version
from ipamc.model.diagnostics import Diagnostic
from ipamc.workspace.disk import assets
from tests.support import casefile

PACKAGE = Path(__file__).parents[2] / "compiler" / "ipamc"
SERVERS = Path(__file__).parents[1] / "e2e" / "servers"
MINORS = {minor for _, minor in minors()}
ROWS = [name for name in casefile.names() if casefile.load(name).shows]
DECIDED = {row.capability for row in TABLE if row.decides}
"""What the compiler rests on."""
ONLY_WHERE_RUN = {Capability.EDITED_RANGES, Capability.REMOVED_RANGES}
"""What the compiler does not rest on in a minor whose server was not run."""
AUDITED = {
    row.capability for row in TABLE if row.decides and not re.sub(r"IPC09\d\d|runbooks|, ", "", row.decides)
}
"""What an audit or a runbook alone rests on: tests/review shows it, and no compile."""
DIFFERENT = {row.capability for row in TABLE if (row.since, row.until) != (FIRST[1], LAST[1])}
"""What is not so in every minor."""


def test_every_capability_has_one_row_with_a_source() -> None:
    assert sorted(row.capability.name for row in TABLE) == sorted(each.name for each in Capability)
    assert all(row.source and row.modes for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.capability.name)
def test_a_row_is_about_minors_that_are_known(row: Row) -> None:
    assert READ_AT.keys() == MINORS
    assert {row.since, row.until} <= MINORS
    assert row.since <= row.until
    assert {*row.run, *row.inferred} <= MINORS
    assert not {*row.run} & {*row.inferred}


def test_a_minor_is_run_where_it_was_and_read_elsewhere() -> None:
    cells = {
        minor: (can((1, minor), Capability.DO_NOT_GC), basis((1, minor), Capability.DO_NOT_GC))
        for minor in (14, 17, 18)
    }
    assert cells == {14: (False, Basis.READ), 17: (False, Basis.RUN), 18: (True, Basis.RUN)}
    assert basis((1, 13), Capability.CRD_NATIVE_ONLY) is Basis.INFERRED


def test_what_was_run_is_what_the_servers_are() -> None:
    """Nothing is called run without a server in tests/e2e, or a chart of tests/e2e/test_helm.py, that shows it, of the release that is named."""
    charts = (SERVERS.parents[2] / ".ci/charts").read_text()
    for row in TABLE:
        for minor in row.run:
            if row.capability.name.startswith("HELM"):
                assert f"\n{READ_AT[minor]} " in charts
            else:
                assert f"github.com/cilium/cilium v{READ_AT[minor]}" in required(f"cilium-1.{minor}")
    assert f"k8s.io/kubernetes v{APISERVER}" in required("kubernetes")


def required(server: str) -> set[str]:
    """Read `module version` of everything that a server is built of."""
    lines = (SERVERS / server / "go.mod").read_text().splitlines()
    return {line.partition(" //")[0].removeprefix("require").strip() for line in lines}


def test_what_was_removed_has_a_last_minor() -> None:
    assert [can((1, minor), Capability.METALLB) for minor in (11, 16, 17)] == [True, True, False]
    assert (text(since(Capability.METALLB)), text(until(Capability.METALLB))) == ("1.11", "1.16")
    assert can(
        (2, 0), Capability.MULTI_POOL
    )  # it is refused as too new, and not as too old for multi-pool mode
    assert not can((2, 0), Capability.METALLB)


def test_codes_of_the_tables_are_in_the_catalogue() -> None:
    named = {code for each in (*TABLE, *APISERVER_TABLE) for code in re.findall(r"IPC\d{4}", each.decides)}
    assert named <= catalogue(assets("rules")).keys()


def asked() -> Iterator[str]:
    """Return the name of every capability that the code asks about."""
    for path in PACKAGE.rglob("*.py"):
        if path.name != "support.py" and "Capability." in (text := path.read_text()):
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "Capability"
                ):
                    yield node.attr


def test_the_code_asks_about_what_differs_and_decides() -> None:
    """A row that claims to decide something does; what decides nothing says so."""
    assert {Capability[name] for name in asked()} == DECIDED & DIFFERENT


def test_every_row_that_decides_has_a_case() -> None:
    assert {each for name in ROWS for each in casefile.load(name).shows} == DECIDED - AUDITED


@pytest.mark.parametrize("name", ROWS)
def test_outcomes_change_where_the_table_says(name: str) -> None:
    """From one minor to the next a case is refused for other reasons, or gives other files, if and only if a capability that it shows comes or goes."""
    case = casefile.load(name)
    outcomes = {
        version: _but_for_the_version(version, casefile.compiled(each)) for version, each in case.each.items()
    }
    changes = [text(later) for earlier, later in pairwise(minors()) if outcomes[earlier] != outcomes[later]]
    edges = [
        text(later)
        for earlier, later in pairwise(minors())
        if any(_counts(earlier, each) != _counts(later, each) for each in case.shows)
    ]
    assert changes == edges


def _counts(version: Version, capability: Capability) -> bool:
    """Tell whether a minor has a capability as the compiler sees it."""
    return (shown if capability in ONLY_WHERE_RUN else can)(version, capability)


def _but_for_the_version(version: Version, outcome: casefile.Outcome) -> tuple[list[str], dict[str, str]]:
    def message(finding: Diagnostic) -> str:
        return f"{finding.code} {finding.message}".replace(f"Cilium {text(version)}", "Cilium 1.x")

    return sorted(map(message, outcome.found)), {
        name: text for name, text in outcome.produced.items() if name != "report"
    }


def test_the_charts_of_a_minor_may_differ() -> None:
    """The chart of 1.11.5 has the value, that of 1.11.1 does not: what is rendered for 1.11 has to work with both."""
    (row,) = (row for row in TABLE if row.capability is Capability.HELM_ANNOTATE_NODE)
    assert not row.of((1, 11))
    assert "1.11.5" in row.capability.value
    assert "1.11.5" in row.source


@pytest.mark.parametrize(
    ("in_use", "ahead", "needed"),
    [
        (1, 16, 32),
        (15, 16, 32),
        (16, 16, 32),
        (17, 16, 48),
        (0, 8, 8),
        (240, 8, 248),
        (241, 8, 256),
        (5, 0, 5),
    ],
)
def test_needed_addresses_are_ciliums(in_use: int, ahead: int, needed: int) -> None:
    assert needed_addresses(in_use, ahead) == needed


@pytest.mark.parametrize(
    ("blocks", "default", "version", "number"),
    [
        ("10.0.0.0/24", True, 18, 8),
        ("10.0.0.0/27", True, 18, 8),  # 16 of 30
        ("10.0.0.0/28", True, 18, 7),  # 14 of 14
        ("10.0.0.0/29", True, 18, 3),  # 6 of 6
        ("10.0.0.0/30", True, 18, None),  # 4 of 2
        ("10.0.0.0/30 10.0.0.4/30", True, 18, 1),  # 4 of 4
        ("10.0.0.0/30", False, 18, 2),
        ("10.0.0.0/31", False, 17, 2),
        ("10.0.0.0/31", False, 16, None),
        ("10.0.0.0/24 fd00::/124", True, 18, 7),  # each family by itself
        ("10.0.0.0/24 fd00::/64", True, 18, 8),
        ("", False, 18, None),
    ],
)
def test_pre_allocation(blocks: str, default: bool, version: int, number: int | None) -> None:  # noqa: FBT001 - a table
    assert pre_allocation((1, version), map(parse_block, blocks.split()), default=default) == number
