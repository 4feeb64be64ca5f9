"""An inventory that is decoded at once is the one that is read in the usual way; what needs a finding is not decoded at once."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.read.kinds.inventory import RawInventory
from ipamc.read.read import plain_inventory
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.json_stream import json_documents

HEAD = '"apiVersion":"ipamc/v1alpha1","kind":"NodeInventory"'
TEXTS = st.text(st.sampled_from('ab"\\/é\N{PILE OF POO}\x7f\n\t'), max_size=4)
NODES = st.fixed_dictionaries(
    {"name": TEXTS},
    optional={
        "labels": st.dictionaries(TEXTS, TEXTS | st.none(), max_size=3),
        "uid": TEXTS,
        "podCIDRs": st.lists(TEXTS, max_size=2),
        "maxPods": st.sampled_from([-1, 0, 14, 1_000_001, 14.0, 1e3, True, None]),
        "planned": st.booleans(),
        "extra": st.none(),
    },
)


def twice(text: str, chance: random.Random) -> str:
    """Repeat a pair of some object of a JSON text, or leave it."""
    value = json.loads(text, object_pairs_hook=list)
    pairs = [each for each in _objects(value) if each]
    if pairs:
        some = chance.choice(pairs)
        some.insert(0, chance.choice(some))
    return _printed(value)


def _objects(value: object) -> list[list[tuple[str, object]]]:
    found = []
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            found.append(value)
        for each in value:
            found += _objects(each[1] if isinstance(each, tuple) else each)
    return found


def _printed(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{json.dumps(key)}: {_printed(each)}" for key, each in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_printed, value)) + "]"
    return json.dumps(value)


def usual(data: bytes) -> RawInventory | None:
    try:
        (document,) = json_documents("nodes.json", data)
        return msgspec.convert(document.value, RawInventory)
    except (Unreadable, msgspec.ValidationError):
        return None


@given(
    nodes=st.lists(NODES, max_size=4),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 4]),
    repeat=st.booleans(),
    chance=st.randoms(use_true_random=False),
)
def test_at_once_is_as_usual_or_not_at_all(
    *,
    nodes: list[dict[str, object]],
    ascii_only: bool,
    indent: int | None,
    repeat: bool,
    chance: random.Random,
) -> None:
    document = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": nodes}
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    data = (twice(text, chance) if repeat else text).encode()
    found = plain_inventory("a.json", data)
    assert found is None or found == usual(data)
    if repeat:
        assert found is None


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        ('{%s,"nodes":[]}', True),
        ('  {%s, "nodes": [{"name": "n1", "labels": {"rack": "r1"}, "maxPods": 14}]}\n', True),
        ('{%s,"nodes":[{"labels":{"rack":"r1"},"name":"n1"}]}', True),
        ('{%s,"nodes":[{"name":"n1","name":"n1"}]}', False),
        ('{%s,"nodes":[{"name":"n1","labels":{"a":"1","a":"1"}}]}', False),
        ('{%s,"nodes":[],"nodes":[]}', False),
        ('{%s,"nodes":[{"name":"n1","planned":false}]}', False),
        ('{%s,"nodes":[{"name":"\\u0061"}]}', False),
        ('{%s,"nodes":[{"name":"n1","rack":"r1"}]}', False),
        ('{%s,"nodes":[]} x', False),
        ('[{%s,"nodes":[]}]', False),
    ],
)  # fmt: skip
def test_what_is_decoded_at_once(text: str, at_once: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (plain_inventory("a.json", (text % HEAD).encode()) is not None) is at_once
