"""Scalars without quotes: what both YAML 1.1 and YAML 1.2 readers see, as the readers themselves see it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ipamc.read.hints import scalar
from ipamc.read.syntax.document import Ambiguous, quoted, readings, resolve

TEXTS = (
    "rack",
    "10.0.0.0/8",
    "10.0.0.1",
    "fd00::/64",
    "v1.18",
    "1.18.5",
    "node-1",
    "-",
    ".",
    "+",
    "1-2",
    "0x",
    "7c2b1e5a-0000",
    "a: b",
    "nul",
    "e3",
)
AGREED = {
    "9": 9,
    "0": 0,
    "+1": 1,
    "-12": -12,
    "007": 7,
    "0x10": 16,
    "1.5": 1.5,
    "1.": 1.0,
    ".5": 0.5,
    "-1.5": -1.5,
    "1.5e+3": 1500.0,
    ".inf": math.inf,
    "-.INF": -math.inf,
    "true": True,
    "False": False,
    "null": None,
    "~": None,
    "": None,
    "NULL": None,
}
AMBIGUOUS = (
    *("y", "Y", "yes", "No", "on", "OFF", "n", "=", "<<"),
    *("08", "010", "0o17", "0b11", "1_000", "0x1_0", "-0x10", "1:30", "1:30.5", "1e3", "1.5e3", "12e03"),
    *("2020-01-01", "2020-1-1T00:00:00Z", "2001-12-14 21:59:43.10 -5"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text(text: str) -> None:
    assert resolve(text) == text
    assert type(resolve(text)) is str


@pytest.mark.parametrize(("text", "value"), AGREED.items())
def test_what_both_agree_on_has_its_type(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_they_read_differently_is_marked_text(text: str) -> None:
    assert resolve(text) == text
    assert isinstance(resolve(text), Ambiguous)
    assert "YAML 1.1 readers and" in readings(text)


def yaml_11(text: str) -> Any:
    value = yaml.safe_load(f"v: {text}\n")["v"]
    return value if isinstance(value, str | int | float | None) else f"<{type(value).__name__}>"


def yaml_12(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(f"v: {text}\n")["v"]


@given(
    st.from_regex(r"[-+]?[0-9.][0-9_.:xobeE+-]{0,6}", fullmatch=True).filter(
        lambda text: not text.endswith(":") and not text.startswith("- ")
    )
)
def test_nothing_that_a_reader_takes_for_a_value_passes_as_text(text: str) -> None:
    try:
        old, new = yaml_11(text), yaml_12(text)
    except ValueError:  # PyYAML reads "1:" and "0b" as numbers and then stumbles
        return
    if type(resolve(text)) is str:
        assert old == text
    elif not isinstance(resolve(text), Ambiguous):
        assert new == pytest.approx(resolve(text), nan_ok=True)


@pytest.mark.parametrize("digits", [19, 400, 6000])
def test_integers_beyond_all_fields_are_none(digits: int) -> None:
    assert isinstance(resolve("9" * digits), float)


@pytest.mark.parametrize(
    ("text", "types", "better"),
    [
        ("yes", ["boolean"], "true"),
        ("OFF", ["boolean"], "false"),
        ("08", ["integer"], "8"),
        ("1_000", ["integer"], "1000"),
        ("0", ["integer"], "0"),
    ],
)
def test_what_was_meant(text: str, types: list[str], better: str) -> None:
    assert scalar(text, types) == better


def test_quoted_text_is_the_same_text_everywhere() -> None:
    for text in (*TEXTS, *AMBIGUOUS, *AGREED, 'a"b\\c', "ü"):
        assert yaml_11(quoted(text)) == yaml_12(quoted(text)) == text
