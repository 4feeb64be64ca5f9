"""`ipamc show` as metrics and as CSV, read back by others' parsers."""

from __future__ import annotations

import csv
import io
from itertools import groupby

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line
from ipamc.report.utilisation import blocks_csv, pools_csv, prometheus, record
from tests.support.shown import lab, part, pool

HOSTILE = 'a"b\\c\nd{e}'


def test_metrics_are_read_as_they_were_meant() -> None:
    families = {each.name: each for each in text_string_to_metric_families(prometheus([lab()]))}
    assert {family.type for family in families.values()} == {"gauge"}
    assert all(family.documentation for family in families.values())
    found = {
        (sample.labels["family"], sample.labels["state"]): sample.value
        for sample in families["ipamc_pool_addresses"].samples
    }
    assert found["IPv4", "held"] == 64
    assert found["IPv4", "quarantined"] == 32
    assert found["IPv6", "held"] == 1 << 64
    assert sum(value for (family, _), value in found.items() if family == "IPv4") == 384
    assert [sample.value for sample in families["ipamc_pool_room_nodes"].samples] == [9]
    assert next(sample.value for sample in families["ipamc_pool_used_ratio"].samples) == 0.25
    assert {sample.labels["state"]: sample.value for sample in families["ipamc_cluster_lines"].samples} == {
        "held": 2,
        "pending": 1,
        "quarantined": 1,
        "released": 0,
    }


def test_the_samples_of_a_metric_stand_together_and_have_no_time() -> None:
    text = prometheus([lab(), lab(name="other")])
    names = [
        line.split(" ")[2] if line.startswith("#") else line.partition("{")[0] for line in text.splitlines()
    ]
    assert len([name for name, _ in groupby(names)]) == len(set(names))
    assert all(len(line.split()) == 2 for line in text.splitlines() if not line.startswith("#"))
    samples = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples))


def test_labels_are_escaped() -> None:
    text = prometheus([lab(pools=(pool(HOSTILE, part(27, "10.0.0.0/24")),), name="x=1")])
    (family, *_) = text_string_to_metric_families(text)
    assert {sample.labels["pool"] for sample in family.samples} == {HOSTILE}
    assert {sample.labels["cluster"] for sample in family.samples} == {"x=1"}


def test_a_disabled_pool_has_no_room_that_could_be_none() -> None:
    text = prometheus([lab(pools=(pool("off", part(27, "10.0.0.0/24"), disabled=True),))])
    assert "ipamc_pool_addresses" in text
    assert "ipamc_pool_room_nodes" not in text


def test_no_clusters_are_no_metrics() -> None:
    assert prometheus([]) == ""


def read(text: str) -> list[dict[str, str]]:
    assert text.count("\n") == text.count("\r\n")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_the_numbers_of_json() -> None:
    rows = read(pools_csv([lab()]))
    assert [row["family"] for row in rows] == ["IPv4", "IPv6"]
    for row, written in zip(rows, record(lab())["pools"], strict=True):
        assert (row["cluster"], row["pool"], int(row["room_nodes"])) == ("lab", "rack-a", written["room"])
        for part_of, name in (
            ("addresses", "held"),
            ("addresses", "total"),
            ("blocks", "free"),
            ("blocks", "held"),
        ):
            assert int(row[f"{part_of}_{name}"]) == written[part_of][name]
    assert (rows[0]["comes_free_day"], rows[0]["comes_free_blocks"]) == ("2026-11-28", "1")
    assert (rows[1]["comes_free_day"], rows[1]["comes_free_blocks"]) == ("", "0")


def test_csv_of_blocks() -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    rows = read(blocks_csv([lab(stray, lines=True)]))
    assert [(row["pool"], row["range"], row["block"], row["node"], row["state"]) for row in rows] == [
        ("rack-a", "10.0.0.0/24", "10.0.0.0/27", "n1", "held"),
        ("rack-a", "10.0.0.0/24", "10.0.0.32/27", "n2", "quarantined"),
        ("rack-a", "10.0.2.0/25", "10.0.2.0/27", "n1", "pending"),
        ("rack-a", "fd00::/48", "fd00::/64", "n1", "held"),
        ("", "", "172.16.0.0/27", "n9", "held"),
    ]
    assert rows[1]["free_on"] == "2026-11-28"


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", 'a,"b"\n=c', "\uff1d1", "a;=1+1"]
)
def test_no_cell_is_a_formula(name: str) -> None:
    (row,) = read(pools_csv([lab(pools=(pool(name, part(27, "10.0.0.0/24")),), of=())]))
    assert row["pool"][0] not in "=+-@\t\r"
    assert row["pool"].isprintable()
    assert not set(row["pool"]) & {";"}
    assert row["pool"][0] not in "\uff0b\uff0d\uff1d\uff20"
