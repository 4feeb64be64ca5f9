"""The objects of rendered files, as an apply reads them."""

from __future__ import annotations

import pytest

from ipamc.workspace.rendered import documents
from ipamc.workspace.trouble import Trouble


def test_objects_are_read_in_order_without_empty_documents() -> None:
    one, two = ({"kind": "Secret", "metadata": {"name": name}} for name in ("a", "1e3"))
    text = "".join(f"---\nkind: Secret\nmetadata: {{name: '{name}'}}\n---\n" for name in ("a", "1e3"))
    assert documents("x", text) == [one, two]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "x: Expected `object`, got `array`"),
        ("a: [\n", "x: the file ends inside a value"),
        ("- " * 100_000, "x: more than 100 levels of nesting"),
        ("[" * 100_000, "x: more than 100 levels of nesting"),
    ],
)
def test_what_is_no_object_is_told_in_one_line(text: str, problem: str) -> None:
    """To compose nodes at such a depth ends the process with a segmentation fault."""
    with pytest.raises(Trouble) as trouble:
        documents("x", text)
    assert str(trouble.value) == problem
