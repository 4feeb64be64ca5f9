"""The texts of admission policies: each node has one line, in the policy that is responsible for its name."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ipamc.read.rendered import Rendered
from ipamc.render.targets.admission import texts_of
from ipamc.review.live.objects import rows_of
from tests.support import fleet

ROWS = st.lists(st.from_regex(r"[a-z0-9]{1,12} 10\.\d\.\d\.\d/\d", fullmatch=True), unique=True).map(sorted)


@given(rows=ROWS, more=st.integers(0, 5_000))
def test_texts_have_all_rows_in_order_and_say_where_they_begin(rows: list[str], more: int) -> None:
    rows = sorted({*rows, *(f"worker-{number:05} 10.0.0.0/26" for number in range(more))})
    found = list(texts_of(rows))
    assert [row for text in found for row in text.lines.rows] == rows
    assert found[0].first == ""
    for text in found[1:]:
        assert text.first == text.lines.rows[0].partition(" ")[0]


def test_a_row_more_changes_one_text() -> None:
    rows = [f"worker-{number:05} 10.0.0.0/26" for number in range(0, 9_000, 3)]
    before = {text.lines.rows for text in texts_of(rows)}
    assert len(before) > 2
    for number in range(1, 9_000, 997):
        after = {text.lines.rows for text in texts_of(sorted([*rows, f"worker-{number:05} 10.0.0.0/26"]))}
        assert len(after - before) in {1, 2}  # 2: it begins a text of its own


def test_a_block_that_the_operator_chose_is_in_the_table_by_address_with_its_node() -> None:
    """Planned and pinned ones are kept for their node, also before it is listed."""
    cluster = fleet.cluster(mode="multi-pool", kubernetes={"version": "1.36"}, admission={"enforce": "deny"})
    pins = {"n2": ["10.0.0.128/26"], "later": ["10.0.3.0/26"]}
    pool = fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/22"], "blockSize": 26}, pins=pins)
    nodes: list[dict[str, object]] = [{"name": "n1"}, {"name": "n2"}, {"name": "n3", "planned": True}]
    texts = fleet.as_json([cluster, pool, fleet.inventory(nodes)])
    lock = """{"lock":1,"cluster":"fleet","mode":"multi-pool","shards":16}
{"block":"10.0.0.0/26","pool":"a","node":"n1"}
{"block":"10.0.0.64/26","pool":"a","node":"n3"}
{"block":"10.0.0.128/26","pool":"a","node":"n2"}
{"block":"10.0.0.192/26","pool":"a","node":"gone","quarantined":"2026-11-20"}
"""
    files = fleet.compiled(texts, lock).files
    tree = Rendered({path: text.encode() for path, text in files.items()})
    policy = tree.objects["ValidatingAdmissionPolicy ipamc-fleet-enforce-blocks-ciliumnodes-0"]
    assert rows_of(policy) == {
        "10.0.0.0/26": "given:n1",
        "10.0.0.64/26": "kept:n3",
        "10.0.0.128/26": "kept:n2",
        "10.0.3.0/26": "kept:later",
    }


def test_more_shards_make_more_policies_and_each_node_has_one() -> None:
    """The number of policies follows from the shards: those of before are rendered again, by the same names."""
    nodes = [{"name": f"n{number:03}"} for number in range(240)]
    policies = {}
    for shards in (16, 32, 64, 128):
        cluster = fleet.cluster(
            kubernetes={"version": "1.36"}, admission={"assign": True}, output={"shardSize": 10}
        )
        documents = [cluster, fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/16"], "blockSize": 26})]
        header = {"lock": 1, "cluster": "fleet", "mode": "cluster-pool", "shards": shards}
        lock = json.dumps(header, separators=(",", ":")) + "\n"
        files = fleet.compiled(fleet.as_json([*documents, fleet.inventory(nodes)]), lock).files
        tree = Rendered({path: text.encode() for path, text in files.items()})
        found = [each for each in tree.objects.values() if each["kind"] == "MutatingAdmissionPolicy"]
        rows = [name for each in found for name in rows_of(each)]
        assert sorted(rows) == sorted(each["name"] for each in nodes)
        policies[shards] = [each["metadata"]["name"] for each in found]
    assert [len(names) for names in policies.values()] == [1, 1, 2, 5]
    assert policies[128][:2] == policies[64]
