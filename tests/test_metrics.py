"""The alerts and the dashboard of docs/alerts and the table of docs/metrics.md name metrics that `ipamc show` prints, with their labels."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ipamc.cli import main

pytest.importorskip("ipamc.report.utilisation")

ROOT = Path(__file__).parent.parent
RULES = yaml.safe_load((ROOT / "docs/alerts/ipamc.rules.yaml").read_text())["groups"][0]["rules"]
BOARD = json.loads((ROOT / "docs/alerts/ipamc.dashboard.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
NAME = re.compile(r"\bipamc_\w+")
OF_CILIUM = {"cilium_ipam_multipool_used_ips", "cilium_ipam_multipool_available_ips"}
"""Metrics of cilium/cilium#48005, which no minor has yet."""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, set[str]]:
    """The labels of each metric."""
    monkeypatch.chdir(ROOT)
    assert main(["show", "zones", "--output", "prometheus"]) == 0
    found: dict[str, set[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found.setdefault(name, set()).update(re.findall(r"(\w+)=\"", rest))
    return found


def test_alerts_ask_for_metrics_that_there_are(printed: dict[str, set[str]]) -> None:
    for rule in RULES:
        names = NAME.findall(rule["expr"])
        assert names, rule["alert"]
        assert set(names) <= printed.keys(), rule["alert"]
        labels = set().union(*(printed[name] for name in names)) | {"file"}
        texts = [rule["expr"], *rule["annotations"].values()]
        assert set(re.findall(r"\$labels\.(\w+)|(?<=[{,])(\w+)(?==)", " ".join(texts))) <= {
            pair for label in labels for pair in ((label, ""), ("", label))
        }


def test_the_dashboard_asks_for_metrics_that_there_are_and_shows_each(printed: dict[str, set[str]]) -> None:
    shown: set[str] = set()
    variables = {each["name"] for each in BOARD["templating"]["list"]}
    for panel in PANELS:
        for target in panel["targets"]:
            expr, legend = target["expr"], target["legendFormat"]
            names = set(NAME.findall(expr))
            shown |= names
            assert names <= printed.keys(), panel["title"]
            assert set(re.findall(r"\bcilium_\w+", expr)) <= OF_CILIUM
            labels = set().union(*(printed[name] for name in names)) | {"pool"}
            used = set(re.findall(r"(\w+)(?==~?\")", expr)) | set(re.findall(r"{{(\w+)}}", legend))
            kept = re.findall(r"(?:by|on) \(([\w, ]+)\)", expr)
            assert used | {label for each in kept for label in each.split(", ")} <= labels, panel["title"]
            assert set(re.findall(r"\$([a-z]\w*)", expr)) <= variables
            assert [expr.count(mark) for mark in "([{"] == [expr.count(mark) for mark in ")]}"]
    assert shown == printed.keys()
    asked = [each["definition"] for each in BOARD["templating"]["list"] if each["type"] == "query"]
    for definition in asked:
        ((metric, label),) = re.findall(r"^label_values\((ipamc_\w+).*, (\w+)\)$", definition)
        assert label in printed[metric]


def test_panels_have_their_own_places_and_one_source() -> None:
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(x < 24 for x, _ in cells)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${source}"}


def test_the_page_has_every_metric_and_every_alert(printed: dict[str, set[str]]) -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    rows = dict(re.findall(r"^\| `(ipamc_\w+)` \| ([\w, ]+) \|", page, re.MULTILINE))
    assert {name: set(labels.split(", ")) for name, labels in rows.items()} == printed
    assert re.findall(r"^\| (Ipamc\w+) \|", page, re.MULTILINE) == [rule["alert"] for rule in RULES]
    assert all(f"*{panel['title']}*" in page for panel in PANELS)


def test_a_disabled_pool_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes no nodes by intent: without a sample of its room no alert is raised for it."""
    shutil.copytree(ROOT / "clusters" / "zones", tmp_path / "clusters" / "zones")
    pools = tmp_path / "clusters/zones/ippools.yaml"
    pools.write_text(pools.read_text().replace("\nspec:\n", "\nspec:\n  disabled: true\n"))
    monkeypatch.chdir(tmp_path)
    assert main(["show", "--output", "prometheus"]) == 0
    rooms = re.findall(r'^ipamc_pool_room_nodes\{.*pool="([\w-]+)"', capsys.readouterr().out, re.MULTILINE)
    assert rooms == ["beijing"]
