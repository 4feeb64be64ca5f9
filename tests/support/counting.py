"""How often a function is called: what a cost grows with, without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock, patch


@contextmanager
def counted(owner: Any, name: str) -> Iterator[Mock]:
    """Count the calls of a function or method, which works as before: `call_count` of what is given."""
    with patch.object(owner, name, autospec=True, side_effect=getattr(owner, name)) as calls:
        yield calls
