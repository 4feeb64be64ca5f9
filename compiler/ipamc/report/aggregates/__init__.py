"""Aggregates in, text out: for people, for programs, and as prefix lists of routers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.review.aggregates import Group


class ClusterAggregates(Struct, frozen=True, kw_only=True):
    """The aggregates of one cluster."""

    name: str
    label: str
    """The key of the label by whose values they are grouped; "" for pools."""
    states: tuple[str, ...]
    """Of the lines that are covered."""
    groups: Sequence[Group]
    started: frozenset[Block] = frozenset()
    """Blocks that nodes started with, and may not have any more."""

    def name_of(self, group: Group) -> str:
        """Return what a group is called."""
        if group.name:
            return group.name
        return f"(without {self.label})" if self.label else "(outside every pool)"
