"""Rows of a plan on a terminal or in a file: long ones are folded, commands are not."""

from __future__ import annotations

import pytest

from ipamc.report.plan_text import aligned
from ipamc.report.terminal_text import width

LIMIT = 60
COMMAND = "kubectl get pods '--output=custom-columns=A:.a, B:.b; C:.c' --all-namespaces --field-selector=a,b"


def test_short_rows_are_in_columns() -> None:
    rows = [("a", "10.0.0.0/24"), ("rack-b", "")]
    assert list(aligned(rows, "~", LIMIT)) == ["~ a      10.0.0.0/24", "~ rack-b"]


def test_a_long_row_does_not_pull_the_others_apart() -> None:
    rows = [("a", "x"), ("name " * 20, "y"), ("b", "z")]
    first, *folded, last = aligned(rows, "~", LIMIT)
    assert (first, last) == ("~ a x", "~ b z")
    assert all(line.startswith("    ") for line in folded[1:])
    assert " ".join(line.strip() for line in folded) == f"~ {('name ' * 20)} y".replace("  ", " ")


@pytest.mark.parametrize(
    "text",
    [
        f"check that every node has its block, as it had before: {COMMAND}",
        f"first of all, {COMMAND}; it is as it was, and that is for a reason that is told here",
        f"漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 ({COMMAND})",
        "ipamc dump case --for refresh --write case.json && ipamc import case --refresh case.json, then merge that",
    ],
)
def test_a_command_is_never_broken(text: str) -> None:
    lines = list(aligned([("1.", text)], "!", LIMIT))
    assert len(lines) > 1
    command = COMMAND if COMMAND in text else text.partition(",")[0]
    assert any(command in line for line in lines)
    assert all(width(line) <= LIMIT for line in lines if command not in line)
    assert " ".join(line.strip() for line in lines) == f"! 1. {text}"


def test_without_a_limit_nothing_is_folded() -> None:
    assert len(list(aligned([("1.", "word " * 200)], "!"))) == 1
