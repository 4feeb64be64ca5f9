"""`ipamc/v1alpha1 Tests`: assertions about the plan of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from ipamc.model import assertion
from ipamc.model.cidr import Range
from ipamc.model.diagnostics import Place, count
from ipamc.model.limits import LARGEST_CLUSTER, MOST_TESTS
from ipamc.model.selector.label_syntax import label_key_problem
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import cut, listing
from ipamc.read import rules
from ipamc.read.kinds.nodes import IgnoredMetadata
from ipamc.read.kinds.pools import RawSelector, by_family, read_selector
from ipamc.read.values import AnyOf, Own, Prefix4, Prefix6, Reading, Text, given

Cidrs = Annotated[list[str], Meta(min_length=1, max_length=MOST_TESTS)]


class _Blocks(AnyOf):
    any_of = ("within", "outside", "ipv4", "ipv6")
    node_selector: str | RawSelector
    within: Cidrs | UnsetType = UNSET
    outside: Cidrs | UnsetType = UNSET
    ipv4: Prefix4 | UnsetType = UNSET
    ipv6: Prefix6 | UnsetType = UNSET


class _NodeHas(Own):
    name: Text
    has: Cidrs


class _Room(AnyOf):
    any_of = ("pool", "like", "node_selector", "each")
    nodes: Annotated[int, Meta(ge=1, le=LARGEST_CLUSTER)]
    pool: Text | UnsetType = UNSET
    like: dict[str, str] | UnsetType = UNSET
    node_selector: str | RawSelector | UnsetType = UNSET
    each: Text | UnsetType = UNSET


class _Apart(AnyOf):
    any_of = ("ipv4", "ipv6")
    node_selectors: (
        Annotated[list[str | RawSelector], Meta(min_length=2, max_length=MOST_TESTS)] | UnsetType
    ) = UNSET
    each: Text | UnsetType = UNSET
    ipv4: Prefix4 | UnsetType = UNSET
    ipv6: Prefix6 | UnsetType = UNSET


Ticket = Annotated[str, Meta(min_length=1, max_length=256)]


class _Agreed(Own):
    node: Text
    ticket: Ticket


class _Renumber(Own):
    ticket: Ticket
    agreed: list[_Agreed] = field(default_factory=list)


class _Test(AnyOf):
    any_of = ("blocks", "node", "room", "apart", "nothing_in", "renumber")
    name: Text | UnsetType = UNSET
    because: str = ""
    warn: bool = False
    allow_empty: bool = False
    blocks: _Blocks | UnsetType = UNSET
    node: _NodeHas | UnsetType = UNSET
    room: _Room | UnsetType = UNSET
    apart: _Apart | UnsetType = UNSET
    nothing_in: Cidrs | UnsetType = UNSET
    renumber: _Renumber | UnsetType = UNSET


class RawTests(Own):
    """The document."""

    api_version: str
    kind: str
    tests: Annotated[list[_Test], Meta(min_length=1, max_length=MOST_TESTS)]
    address_space: Text | UnsetType = UNSET
    metadata: IgnoredMetadata | UnsetType = UNSET


def read_tests(raw: RawTests, at: Place, reading: Reading) -> Iterator[assertion.Assertion]:
    """Yield the assertions, in the order of the document."""
    space = given(raw.address_space, "")
    for index, test in enumerate(raw.tests):
        here = at / "tests" / index
        given_kinds = (name for name in test.any_of if getattr(test, name) is not UNSET)
        present = ["nothingIn" if name == "nothing_in" else name for name in given_kinds]
        if len(present) > 1:
            problem = f"a test makes one assertion, but has {' and '.join(present)}"
            reading.found.append(rules.wrong_shape(here / present[1], problem, "write one test for each"))
            continue
        asserts = _asserted(test, here, reading)
        if asserts is not None:
            yield assertion.Assertion(
                name=_description(asserts) if isinstance(test.name, UnsetType) else test.name,
                because=test.because,
                at=here,
                asserts=asserts,
                warn=test.warn,
                allow_empty=test.allow_empty,
                space=space,
            )


def _asserted(test: _Test, at: Place, reading: Reading) -> assertion.Asserted | None:
    if not isinstance(raw := test.blocks, UnsetType):
        here = at / "blocks"
        return assertion.BlocksOf(
            selector=read_selector(raw.node_selector, here / "nodeSelector", reading),
            within=_cidrs(raw.within, here / "within", reading),
            outside=_cidrs(raw.outside, here / "outside", reading),
            sizes=by_family(raw.ipv4, raw.ipv6),
        )
    if not isinstance(test.node, UnsetType):
        reading.name(test.node.name, "node", at, "node", "name")
        return assertion.NodeHas(node=test.node.name, has=reading.ranges(test.node.has, at / "node" / "has"))
    if not isinstance(test.room, UnsetType):
        return _room(test.room, at / "room", reading)
    if not isinstance(test.apart, UnsetType):
        return _apart(test.apart, at / "apart", reading)
    if not isinstance(test.nothing_in, UnsetType):
        return assertion.NothingIn(ranges=_cidrs(test.nothing_in, at / "nothingIn", reading))
    if isinstance(test.renumber, UnsetType):
        return None
    agreed = []
    for index, entry in enumerate(test.renumber.agreed):
        here = at / "renumber" / "agreed" / index
        reading.name(entry.node, "node", here, "node")
        agreed.append(assertion.Agreed(node=entry.node, ticket=entry.ticket, at=here))
    return assertion.Renumber(ticket=test.renumber.ticket, agreed=tuple(agreed))


def _room(raw: _Room, at: Place, reading: Reading) -> assertion.Room | None:
    present = [name for name in ("pool", "like") if getattr(raw, name) is not UNSET]
    if not (raw.node_selector is UNSET and raw.each is UNSET):
        present.append("each" if raw.node_selector is UNSET else "nodeSelector")
    if len(present) > 1:
        problem = f"room has {' and '.join(present)}, but takes only one of them"
        reading.found.append(rules.wrong_shape(at / present[1], problem, f"keep {listing(present)}"))
        return None
    each = _label(raw.each, at / "each", reading)
    return assertion.Room(
        nodes=raw.nodes,
        pool=given(raw.pool, ""),
        like=None if isinstance(raw.like, UnsetType) else reading.labels(raw.like, at, "like"),
        selector=None
        if isinstance(raw.node_selector, UnsetType)
        else read_selector(raw.node_selector, at / "nodeSelector", reading),
        each=each,
    )


def _apart(raw: _Apart, at: Place, reading: Reading) -> assertion.Apart | None:
    if (raw.node_selectors is UNSET) == (raw.each is UNSET):
        has = "neither nodeSelectors nor each" if raw.each is UNSET else "both nodeSelectors and each"
        fix = "write nodeSelectors for two or more groups of nodes, or each for one label"
        reading.found.append(rules.wrong_shape(at / "each", f"apart has {has}", fix))
        return None
    selectors: tuple[Selector, ...] = ()
    if not isinstance(raw.node_selectors, UnsetType):
        here = at / "nodeSelectors"
        selectors = tuple(
            read_selector(each, here / index, reading) for index, each in enumerate(raw.node_selectors)
        )
    each = _label(raw.each, at / "each", reading)
    return assertion.Apart(selectors=selectors, each=each, prefixes=by_family(raw.ipv4, raw.ipv6))


def _cidrs(raw: list[str] | UnsetType, at: Place, reading: Reading) -> tuple[Range, ...]:
    return () if isinstance(raw, UnsetType) else reading.ranges(raw, at, pods=False)


def _label(key: str | UnsetType, at: Place, reading: Reading) -> str:
    if isinstance(key, UnsetType):
        return ""
    if problem := label_key_problem(key):
        reading.found.append(rules.bad_label(at, "label key", key, problem))
    return key


def _description(asserts: assertion.Asserted) -> str:
    """Return a description of the assertion of a test without a name."""
    match asserts:
        case assertion.BlocksOf():
            return f"blocks of {cut(asserts.selector.canonical)}"
        case assertion.NodeHas():
            return f"node {asserts.node} has {_ranges(asserts.has)}"
        case assertion.Room():
            return f"room for {count(asserts.nodes, 'more node')}{_of_room(asserts)}"
        case assertion.Apart():
            lengths = " and ".join(f"/{prefix}" for _, prefix in sorted(asserts.prefixes.items()))
            some = " and ".join(cut(selector.canonical) for selector in asserts.selectors[:3])
            return f"no {lengths} shared by {f'the values of {asserts.each}' if asserts.each else some}"
        case assertion.NothingIn():
            return f"nothing in {_ranges(asserts.ranges)}"
        case assertion.Renumber():
            return f"no renumber without a ticket {cut(asserts.ticket)}"


def _of_room(room: assertion.Room) -> str:
    if room.pool:
        return f" in pool {cut(room.pool)}"
    if room.like is not None:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(room.like.items())[:6])
        return f" with {labels or 'no labels'}"
    of = f" like those of {cut(room.selector.canonical)}" if room.selector else ""
    return f"{of} for each {room.each}" if room.each else of


def _ranges(ranges: tuple[Range, ...]) -> str:
    more = f" and {len(ranges) - 5} more" if len(ranges) > 5 else ""
    return ", ".join(str(found.block) for found in ranges[:5]) + more
