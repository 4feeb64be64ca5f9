"""`ipamc version`: what a report of a problem needs, the same in every run."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from ipamc import __version__
from ipamc.cli import main


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "version")
    assert found.startswith(f"ipamc           {__version__}\npython          CPython 3.")
    assert f"\nclick           {version('click')}\n" in found
    assert found.endswith("\ncilium          1.11 to 1.20\nlock            format 1\n")


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "version", "--json"))
    assert found["ipamc"] == __version__
    assert found["dependencies"]["msgspec"] == version("msgspec")
    assert {"click", "jinja2", "jsonschema", "jsonschema-rs", "msgspec", "pyyaml"} == set(
        found["dependencies"]
    )
    assert found["cilium"][-1] == "1.20"
    assert found["lock"] == 1
    assert shown(capsys, "version", "--output", "json") == shown(capsys, "version", "--json")


def test_the_short_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--version") == shown(capsys, "-V") == f"ipamc {__version__}\n"
