"""`plan --output svg`: what changes is lit, on the map before and on the map after."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ipamc.lock.file import parse
from ipamc.model.cluster import Mode
from ipamc.model.limits import MAP_ROWS
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.report import plan_svg
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, picture
from tests.support.builders import plan, pool
from tests.support.calls import counted
from tests.support.examples import everything

EMPTY = Lock(cluster="built", mode=Mode.CLUSTER_POOL, shards=1)


def drawn(made: Plan, before: Lock = EMPTY) -> str:
    """Draw what leads from a lock to a plan."""
    found = picture(made, before, "ipam.lock", "2026-11-22")
    return plan_svg.render(PlanReport(base="main", clusters=(ClusterReport(name="lab", picture=found),)))


def titles(text: str, sort: str) -> list[str]:
    """Return what the boxes of a sort say."""
    ElementTree.fromstring(text)  # noqa: S314 - ours, and it must be sound
    return re.findall(rf'<g><title>([^<]*)</title><rect class="[^"]*{sort}"', text)


def test_a_node_joins_and_another_moves() -> None:
    pools = [pool("p", "10.0.0.0/22")]
    before = plan("cluster-pool", pools, {"a": "10.0.0.0/26", "b": "10.0.0.64/26"}).lock
    after = plan("cluster-pool", pools, {"a": "10.0.0.0/26", "b": "10.0.1.0/26", "c": "10.0.2.0/26"})
    text = drawn(after, before)
    assert titles(text, "held new") == [
        "10.0.0.64/26 of b: held",  # before
        "10.0.1.0/26 of b: held",
        "10.0.2.0/26 of c: held",
    ]
    assert titles(text, "gone") == ["10.0.0.64/26 of b: no longer in the lock"]
    assert titles(text, "held same") == ["10.0.0.0/26 of a: held"] * 2


def test_nothing_changes() -> None:
    made = plan("cluster-pool", [pool("p", "10.0.0.0/22")], {"a": "10.0.0.0/26"})
    assert titles(drawn(made, made.lock), "held") == []


def test_rows_without_a_change_are_left_out() -> None:
    held = {f"n{number}": f"10.0.{number}.0/26" for number in range(64)}
    before = plan("cluster-pool", [pool("p", "10.0.0.0/16")], held).lock
    after = plan("cluster-pool", [pool("p", "10.0.0.0/16")], held | {"x": "10.0.9.64/26"})
    text = drawn(after, before)
    assert re.findall(r">(10\.0\.\d+\.0/\d+)<", text) == ["10.0.8.0/21"]
    assert len(titles(text, "held same")) == 16  # 8 of the row, twice


def test_a_large_plan_is_cut_and_says_so() -> None:
    held = {f"n{number}": f"10.{number // 32}.{number % 32 * 8}.0/26" for number in range(200)}
    text = drawn(plan("cluster-pool", [pool("p", "10.0.0.0/12")], held))
    assert len(titles(text, "held new")) == MAP_ROWS
    assert "and 80 more rows with changes (see the text of the plan)" in text.replace("'", "&apos;")


def test_the_work_grows_as_the_changes_do() -> None:
    """Ranges as many as changes: each range finds its own."""

    def work(number: int) -> int:
        ranges = [f"10.{each // 256}.{each % 256}.0/24" for each in range(number)]
        held = {f"n{each}": f"10.{each // 256}.{each % 256}.0/26" for each in range(number)}
        made = plan("cluster-pool", [pool("p", *ranges)], held)
        found = picture(made, EMPTY, "ipam.lock", "2026-11-22")
        report = PlanReport(base="x", clusters=(ClusterReport(name="x", picture=found),))
        return counted(lambda: plan_svg.render(report))

    assert work(1600) < 4 * 1.3 * work(400) + 20_000


def test_names_are_text() -> None:
    made = plan("cluster-pool", [pool("p", "10.0.0.0/22")], {"a": "10.0.0.0/26"})
    found = picture(made, EMPTY, "ipam.lock", "2026-11-22")
    bad = '"><script>x</script>&\u202e'
    text = plan_svg.render(PlanReport(base=bad, clusters=(ClusterReport(name=bad, picture=found),)))
    tree = ElementTree.fromstring(text)  # noqa: S314 - ours, and it must be sound
    assert not [part for part in tree.iter() if part.tag.endswith("script")]
    assert "\\u202e" in text


@pytest.mark.parametrize("start", range(8))
def test_every_case_is_drawn(start: int) -> None:
    compiled = list(everything().items())[start::8]
    assert compiled
    for name, found in compiled:
        lock = found.plan.lock
        text = drawn(found.plan, Lock(cluster=lock.cluster, mode=lock.mode, shards=lock.shards))
        ranges = [
            part.block
            for pool in found.plan.scheme.pools
            for family in pool.families.values()
            for part in family.ranges
        ]
        inside = {str(line.block) for line in lock.lines if any(map(line.block.overlaps, ranges))}
        if "more row" not in text:
            assert {title.split(" ")[0] for title in titles(text, "new")} == inside, name


def test_a_base_that_another_version_wrote_is_drawn() -> None:
    text = b'{"lock":1,"cluster":"built","mode":"cluster-pool","shards":1}\n'
    lock, found = parse(text + b'{"block":"10.0.0.0/26","node":"old","released":true}\n', "ipam.lock")
    assert lock is not None
    assert not found
    made = plan("cluster-pool", [pool("p", "10.0.0.0/22")], {"a": "10.0.0.0/26"})
    assert titles(drawn(made, lock), "released new") == ["10.0.0.0/26 of old: released"]
