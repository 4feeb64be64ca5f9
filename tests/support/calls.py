"""The work of a function as a number that is the same on every machine: calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable


def counted(work: Callable[[], object]) -> int:
    """Do it, and count the calls of Python and C functions, and each resumption of a generator."""
    number = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number
