"""The families of a dual-stack node. A pool serves all of those that it has and the node lacks, or none."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.plan import Offer
from ipamc.place.allocate.free_space import FreePlace, Space

Families = tuple[int, ...]


def together(spaces: Iterable[tuple[Space, int]]) -> list[tuple[Space, FreePlace]] | None:
    """Return a place in each space for a block of this prefix length; None if one of them has no room."""
    places = []
    for space, prefix in spaces:
        place = space.find(prefix)
        if place is None:
            return None
        places.append((space, place))
    return places


def asked_of(offer: Offer, missing: Families) -> Families:
    """Return the missing families that a pool has; none for a pool that gives out only pins."""
    if offer.pool.disabled or offer.pool.unlisted:
        return ()
    sizes = offer.sizes
    if len(missing) == 1:  # nearly always: no new tuple is created
        return missing if missing[0] in sizes else ()
    return tuple([family for family in missing if family in sizes])


def less(families: Families, some: Families) -> Families:
    """Return the families without some."""
    return tuple([family for family in families if family not in some])


def has_no(families: Families) -> str:
    """Return why a pool gives none of these families, as a predicate."""
    return f"has no {' or '.join(f'IPv{family}' for family in families)}"
