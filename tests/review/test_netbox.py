"""Laws of the export: whatever NetBox has, an import makes it what the clusters have, and a second one changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import Block
from ipamc.read.csv_table import read_table
from ipamc.report.prefixes import netbox_table
from ipamc.review.netbox import (
    COLUMNS,
    STATUSES,
    ExportedPrefix,
    NetBoxImport,
    later_import,
    read_export,
)
from tests.support.netbox import NetBox, Seen

BLOCKS = [
    *(Block(4, 0x0A000000 + (number << 8), prefix) for number in (0, 4, 8) for prefix in (22, 24, 32)),
    Block(6, 0xFD00 << 112, 64),
]

prefixes = st.builds(
    ExportedPrefix,
    block=st.sampled_from(BLOCKS),
    kind=st.sampled_from(["range", "held", "pending", "quarantined", "pinned", "reserved"]),
    cluster=st.sampled_from(["blue", "red"]),
    pool=st.sampled_from(["", "a"]),
    words=st.sampled_from(["held by n1", "held by n2", "x" * 300]),
)
plans = st.lists(prefixes, unique_by=lambda prefix: prefix.block, max_size=8)
others = st.lists(
    st.tuples(
        st.sampled_from(BLOCKS),
        st.sampled_from(["", "pods"]),
        st.sampled_from(["container", "active"]),
        st.sampled_from(["", 'router, "old"', "ipamc green/a: held by n7", "ipamc blue/a: held by n1"]),
    ),
    max_size=6,
)


def imported(netbox: NetBox, changes: NetBoxImport, columns: dict[str, str], *, ids: bool) -> None:
    netbox.bulk_import(netbox_table(changes, columns, ids=ids))


def changes_of(netbox: NetBox, plan: list[ExportedPrefix], columns: dict[str, str]) -> NetBoxImport:
    there = read_export(read_table("netbox.csv", netbox.export().encode(), COLUMNS))
    return later_import(plan, there, ["blue", "red"], STATUSES, columns)


def is_ours(each: Seen) -> bool:
    return each.description.startswith(("ipamc blue/", "ipamc red/"))


@given(others, plans, plans, st.sampled_from(["", "pods"]))
def test_netbox_follows_git_and_keeps_what_is_not_ours(
    before: list[tuple[Block, str, str, str]],
    first: list[ExportedPrefix],
    second: list[ExportedPrefix],
    vrf: str,
) -> None:
    netbox = NetBox(unique=False)
    for number, (block, place, status, description) in enumerate(before, 1):
        netbox.prefixes[number] = {
            "prefix": str(block),
            "vrf": place,
            "status": status,
            "description": description,
        }
    foreign = [each for each in netbox.seen() if not is_ours(each) or each.vrf != vrf]
    columns = {"vrf": vrf} if vrf else {}
    for plan in (first, second):
        changes = changes_of(netbox, plan, columns)
        assert len(changes.rows) == changes.created + changes.updated + changes.gone
        imported(netbox, changes, columns, ids=True)
        assert [each for each in netbox.seen() if not is_ours(each) or each.vrf != vrf] == foreign
        taken = {each.prefix for each in foreign if each.vrf == vrf}
        wanted = {
            (str(row.block), vrf, row.status, row.description)
            for row in later_import(plan, (), (), STATUSES, {}).rows
            if str(row.block) not in taken or str(row.block) in {each.prefix for each in live(netbox, vrf)}
        }
        assert {
            (each.prefix, each.vrf, each.status, each.description) for each in live(netbox, vrf)
        } == wanted
        again = changes_of(netbox, plan, columns)
        assert again.rows == ()
        assert again.foreign == changes.foreign


def live(netbox: NetBox, vrf: str) -> list[Seen]:
    """Return what is ours in a VRF and not gone."""
    return [
        each
        for each in netbox.seen()
        if is_ours(each) and each.vrf == vrf and not each.description.endswith(": gone")
    ]


@given(plans)
def test_the_first_import_is_a_later_one_into_an_empty_netbox(plan: list[ExportedPrefix]) -> None:
    empty, other = NetBox(), NetBox()
    imported(empty, later_import(plan, (), (), STATUSES, {}), {}, ids=False)
    imported(other, changes_of(other, plan, {}), {}, ids=True)
    assert empty.seen() == other.seen()
