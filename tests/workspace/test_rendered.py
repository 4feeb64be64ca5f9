"""The objects of rendered files, as an apply reads them."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.rendered import Manifests


def documents(text: str) -> list[dict[str, Any]]:
    return Manifests({"x": text.encode()}, "rendered").documents("x")


def test_objects_are_read_in_order_without_empty_documents() -> None:
    one, two = ({"kind": "Secret", "metadata": {"name": name}} for name in ("a", "1e3"))
    text = "".join(f"---\nkind: Secret\nmetadata: {{name: '{name}'}}\n---\n" for name in ("a", "1e3"))
    assert documents(text) == [one, two]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "rendered/x: Expected `object`, got `array`"),
        ("a: [\n", "rendered/x: the file ends inside a value"),
        ("- " * 100_000, "rendered/x: more than 100 levels of nesting"),
        ("[" * 100_000, "rendered/x: more than 100 levels of nesting"),
    ],
)
def test_what_is_no_object_is_told_in_one_line(text: str, problem: str) -> None:
    """To compose nodes at such a depth ends the process with a segmentation fault."""
    with pytest.raises(EnvironmentFailure) as failure:
        documents(text)
    assert str(failure.value) == problem
