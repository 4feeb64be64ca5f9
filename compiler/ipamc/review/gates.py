"""The changes that can fail a plan."""

from __future__ import annotations

GATES = ("renumber", "release", "leave", "capacity")
"""The values of `--fail-on`."""
