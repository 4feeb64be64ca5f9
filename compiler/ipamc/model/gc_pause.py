"""Pauses Python's garbage collector while many values are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the cyclic collector.
    A compile creates a million values and no cycles, and the search for cycles doubles the time of reading.
    Reference counts still free unused values. Calls may be nested: the outermost one ends the pause.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
