"""A guess at a name that was meant: never one that names another thing."""

from __future__ import annotations

import pytest

from ipamc.model.wording import nearest_name

KNOWN = ("w-a-01", "w-b-01", "rack-a", "rack-b", "n3", "worker-2", "default")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("w-a-1", "w-a-01"),
        ("w-a01", "w-a-01"),
        ("W-A-01", "w-a-01"),
        ("w-c-01", ""),
        ("w-a-02", ""),
        ("rak-b", "rack-b"),
        ("rack-c", ""),
        ("nn3", "n3"),
        ("wrker-2", "worker-2"),
        ("worker-7", ""),
        ("defualt", "default"),
    ],
)
def test_a_name_with_another_number_or_single_letter_is_not_meant(word: str, meant: str) -> None:
    assert nearest_name(word, KNOWN) == meant
