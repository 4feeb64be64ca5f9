"""The objects of rendered files, as an apply reads them."""

from __future__ import annotations

import pytest

from ipamc.workspace.rendered import documents
from ipamc.workspace.trouble import Trouble


def test_objects_are_read_in_order_without_empty_documents() -> None:
    assert documents("---\n---\na: '1e3'\n---\nb: [1, true]\n") == [{"a": "1e3"}, {"b": [1, True]}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "['a'] is not an object"),
        ("a: [\n", "not YAML: did not find expected node content"),
        ("- " * 100_000, "not YAML: more than 100 levels of nesting"),
        ("[" * 100_000, "not YAML: more than 100 levels of nesting"),
    ],
)
def test_what_is_no_object_is_told_in_one_line(text: str, problem: str) -> None:
    """To compose nodes at such a depth ends the process with a segmentation fault."""
    with pytest.raises(Trouble) as trouble:
        documents(text)
    assert str(trouble.value) == problem
