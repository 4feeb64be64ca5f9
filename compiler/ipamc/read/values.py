"""Shared by dialects: bases of structs; readers of names, labels, CIDRs, selectors, requests to a space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from operator import methodcaller
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from ipamc.model.cidr import Address, Block, CidrError, Range, network_of, parse_address, parse_block
from ipamc.model.diagnostics import At, Diagnostic, Findings, Place
from ipamc.model.limits import LONGEST_LABEL_VALUE
from ipamc.model.selector import calico_tokens, label_syntax
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import EVERY, Selector, parse_calico
from ipamc.model.space import Ask
from ipamc.read import rules
from ipamc.read.rules import wrong_shape
from ipamc.read.syntax.document import Keys

T = TypeVar("T")
D = TypeVar("D")


def given(value: T | UnsetType, otherwise: D) -> T | D:
    """Return the value of a field, or `otherwise` if the document does not have the field."""
    return otherwise if isinstance(value, UnsetType) else value


class Own(Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """A part of an ipamc kind. No field may be null. It prints without defaults."""


class AnyOf(Own):
    """A part of an ipamc kind that requires at least one of some fields."""

    any_of: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        if all(getattr(self, name) is UNSET for name in self.any_of):
            raise ValueError


class Foreign(Struct, rename="camel"):
    """The fields that ipamc reads of a foreign kind. They may be null, as the apiserver prunes nulls."""


class NativeFields(Foreign):
    """Fields of ipamc's own IPPool that no other dialect has. They are decoded only to be refused."""

    priority: Any = None
    overflow: Any = None
    blocks_per_node: Any = None
    block_sizes: Any = None
    reserved: Any = None
    pins: Any = None
    unlisted: Any = None
    usage: Any = None
    pod_selector: Any = None
    allow_first_ip: Any = field(name="allowFirstIP", default=None)
    allow_last_ip: Any = field(name="allowLastIP", default=None)
    skip_masquerade: Any = None


def native_fields(spec: NativeFields, *others: str) -> dict[str, Any]:
    """Return the fields of ipamc's own IPPool that a document sets, by their names there.
    `others` are the struct's names of fields that this dialect lacks besides those that every dialect lacks.
    """
    names = (*NativeFields.__struct_fields__, *others)
    encoded = dict(zip(type(spec).__struct_fields__, type(spec).__struct_encode_fields__, strict=True))
    return {encoded[name]: value for name in names if (value := getattr(spec, name)) is not None}


Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0, le=1_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000)]


class Metadata(Own):
    """`metadata` of an ipamc kind."""

    name: Text
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Reserved(Own):
    """A CIDR that is never given out, and why."""

    cidr: str
    reason: Annotated[str, Meta(min_length=1, max_length=256)] = ""


class ForeignMetadata(Foreign):
    """`metadata` of a foreign kind."""

    name: Text
    labels: dict[str, str | None] | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None


Lengths = Mapping[int, tuple[int, int]]
"""The shortest and the longest prefix length that a CIDR may have, by family."""
NO_LENGTHS: Lengths = MappingProxyType({})

_values_of = methodcaller("values")


class Values(Protocol):
    """Readers of values at `keys` below `at`: a compile reports bad ones, a dump has fewer checks."""

    def name(self, name: str, what: str, at: At, *keys: str) -> None:
        """Check a name."""

    def text(self, text: str | None) -> str:
        """Return a text; "" for None."""

    def labels(self, labels: Mapping[str, str | None] | None, at: At, *keys: str) -> dict[str, str]:
        """Return labels; a null value is "", as the apiserver stores it."""

    def blocks(self, texts: Iterable[str], at: At, *keys: str | int) -> tuple[Block, ...]:
        """Return CIDRs of either family in their order."""

    def addresses(self, texts: Iterable[tuple[str | None, Keys]], at: At) -> tuple[Address, ...]:
        """Return addresses in their order, each with its own keys; empty texts are skipped."""


class Reading(Struct):
    """The state of reading a folder: findings so far, and a cache of valid texts, which are checked once."""

    found: Findings = field(default_factory=Findings)
    keys: set[str] = field(default_factory=set)
    """Valid label keys."""
    values: set[str] = field(default_factory=set)
    """Valid label values."""
    unknown: set[tuple[str, str]] = field(default_factory=set)
    """Files and their unknown kinds, each of which is reported once."""
    names: int = 0
    """The number of names from patterns of an inventory so far."""
    complete: bool = True
    """False if an unreadable document may have been the Cluster."""

    def name(self, name: str, what: str, at: At, *keys: str) -> None:
        """Report a name that the apiserver would refuse; `keys` is the path from `at` to it."""
        if problem := label_syntax.subdomain_problem(name):
            self.found.append(rules.bad_name(_down(at, keys), f"the name of a {what}", name, problem))

    def sound(self, names: Collection[str], labels: Collection[Mapping[str, str]]) -> bool:
        """Return whether the names of many nodes, and all their labels, are valid; report nothing.
        Each distinct key and value is checked once: one at a time, 100,000 nodes took four times as long. If
        one is not valid, `name` and `labels` report which.
        """
        if not label_syntax.are_subdomains(names):
            return False
        keys = set().union(*labels) - self.keys
        values = set(chain.from_iterable(map(_values_of, labels))) - self.values
        # Nearly every name is also a host name label, and a name of this length is a valid value.
        short = max(map(len, names), default=0) <= LONGEST_LABEL_VALUE
        others = values.difference(names) if short else values
        if not (all(map(label_syntax.is_label_key, keys)) and all(map(label_syntax.is_label_value, others))):
            return False
        self.keys |= keys
        self.values |= values
        return True

    def text(self, text: str | None) -> str:
        """Return a text; "" for None."""
        return text or ""

    def labels(self, labels: Mapping[str, str | None] | None, at: At, *keys: str) -> dict[str, str]:
        """Return labels, and report invalid ones. A null value is "", as the apiserver stores it."""
        result = {key: text or "" for key, text in labels.items()} if labels else {}
        if not self.keys.issuperset(result):
            for key in result:
                if key not in self.keys and (problem := label_syntax.label_key_problem(key)):
                    place = replace(_down(at, (*keys, key)), key=True)
                    self.found.append(rules.bad_label(place, "label key", key, problem))
                else:
                    self.keys.add(key)
        if not self.values.issuperset(result.values()):
            for key, text in result.items():
                if text not in self.values and (problem := label_syntax.label_value_problem(text)):
                    self.found.append(rules.bad_label(_down(at, (*keys, key)), "label value", text, problem))
                else:
                    self.values.add(text)
        return result

    def block(
        self,
        text: str,
        at: At,
        *keys: str | int,
        family: int = 0,
        pods: bool = True,
        lengths: Lengths = NO_LENGTHS,
    ) -> Block | None:
        """Return a CIDR, or None and report it. `family` 0: both; `pods`: for pods; `lengths`: the usual."""
        try:
            block = parse_block(text, pods=pods)
        except CidrError as problem:
            better = problem.better
            if problem.rule == "no length" and (address := parse_address(text))[0] in lengths:
                better = str(network_of(*address, *lengths[address[0]]))
            self.found.append(rules.refused_cidr(_down(at, keys), problem, better))
            return None
        if family and block.family != family:
            self.found.append(rules.wrong_family(_down(at, keys), text, family))
            return None
        if block.family == 6 and str(block) != text:  # IPv4 has only one spelling
            self.found.append(rules.not_canonical(_down(at, keys), text, str(block)))
        return block

    def addresses(self, texts: Iterable[tuple[str | None, Keys]], at: At) -> tuple[Address, ...]:
        """Return addresses; an invalid one is reported."""
        result = []
        for text, keys in texts:
            try:
                result += [parse_address(text)] if text else []
            except CidrError as problem:
                self.found.append(rules.not_cidr(_down(at, keys), problem.reason, problem.better))
        return tuple(result)

    def blocks(self, texts: Iterable[str], at: At, *keys: str | int) -> tuple[Block, ...]:
        """Return CIDRs of either family, including ones that pods cannot use; an invalid one is reported."""
        result = []
        for index, text in enumerate(texts):
            try:
                block = parse_block(text, pods=False)
            except CidrError:
                block = None
            if block is None or block.family == 6:  # only a few blocks have findings
                block = self.block(text, at, *keys, index, pods=False)
            if block is not None:
                result.append(block)
        return tuple(result)

    def ranges(
        self,
        texts: Iterable[str],
        at: Place,
        *,
        family: int = 0,
        pods: bool = True,
        lengths: Lengths = NO_LENGTHS,
    ) -> tuple[Range, ...]:
        """Return CIDRs with places, in the order of the file; an invalid one is reported and omitted."""
        found = (
            (self.block(text, at / index, family=family, pods=pods, lengths=lengths), at / index)
            for index, text in enumerate(texts)
        )
        return tuple(Range(block, place) for block, place in found if block is not None)

    def reserved(self, entries: Iterable[str | Reserved], at: Place) -> tuple[Range, ...]:
        """Return reserved CIDRs with their reasons, as written; an invalid one is reported and omitted."""
        found = []
        for index, entry in enumerate(entries):
            place = at / index
            text, place, reason = (
                (entry, place, "") if isinstance(entry, str) else (entry.cidr, place / "cidr", entry.reason)
            )
            if block := self.block(text, place):
                found.append(Range(block, place, reason))
        return tuple(found)

    def calico(self, text: str, at: Place) -> Selector:
        """Return a Calico selector; report an invalid one and return `EVERY`."""
        try:
            return parse_calico(text)
        except SelectorError as problem:
            if better := calico_tokens.from_kubectl(text):
                problem.help = f"write {better}"
                if better == f"has({text})":
                    problem.help += f", or {{matchLabels: {{kubernetes.io/hostname: {text}}}}} for one node"
            return self.bad_selector(problem, at)

    def selector(self, parse: Callable[[Any], Selector], fields: Any, at: Place) -> Selector:
        """Parse a selector object with `parse`; report an invalid one and return `EVERY`."""
        try:
            return parse(fields)
        except SelectorError as problem:
            return self.bad_selector(problem, at)

    def bad_selector(self, problem: SelectorError, at: Place) -> Selector:
        """Report an invalid selector and return any selector: the compile ends after this stage."""
        keys = (*at.keys, *problem.keys)
        place = Place(at.path, at.document, keys, key=problem.at_key, offset=problem.offset)
        self.found.append(rules.selector_syntax(place, problem.message, problem.help))
        return EVERY


def _down(at: At, keys: Keys) -> Place:
    """Return the place of a part. Called only for findings: nearly all of 100,000 nodes have none."""
    assert isinstance(at, Place)  # noqa: S101 - a folder's files have places, not spans
    return Place(at.path, at.document, (*at.keys, *keys)) if keys else at


def range_lengths(family: int, size: int) -> Lengths:
    """Return the lengths of ranges for blocks of a size; Cilium reads no more than 2^16 blocks of IPv6."""
    return {family: (max(size - 16, 0) if family == 6 else 0, size)}


Prefix4 = Annotated[int, Meta(ge=1, le=32)]
Prefix6 = Annotated[int, Meta(ge=1, le=128)]


class _Family(AnyOf, kw_only=True):
    any_of = ("cidrs", "from_")
    cidrs: Annotated[list[str], Meta(min_length=1)] | UnsetType = UNSET
    from_: Text | UnsetType = field(name="from", default=UNSET)
    ranges: Annotated[int, Meta(ge=1, le=1024)] | UnsetType = UNSET
    follows: str = ""


class Family4(_Family, kw_only=True):
    """IPv4."""

    prefix_length: Prefix4 | UnsetType = UNSET
    block_size: Prefix4


class Family6(_Family, kw_only=True):
    """IPv6."""

    prefix_length: Prefix6 | UnsetType = UNSET
    block_size: Prefix6


def read_ask(part: Family4 | Family6, at: Place, reading: Reading) -> Ask | None:
    """Return a pool's request to an address space; None if it has CIDRs. Report conflicting fields."""
    reading.found.extend(_odd_ask(part, at))
    if isinstance(part.from_, UnsetType):
        return None
    prefix, ranges = given(part.prefix_length, 0), given(part.ranges, 1)
    return Ask(space=part.from_, prefix=prefix, ranges=ranges, at=at / "from")


def _odd_ask(part: Family4 | Family6, at: Place) -> Iterator[Diagnostic]:
    """Yield findings about conflicting fields: `cidrs` and a request to a space."""
    if isinstance(part.from_, UnsetType):
        for name, value in (("ranges", part.ranges), ("prefixLength", part.prefix_length)):
            if not isinstance(value, UnsetType):
                way_out = "add from with the name of an address space, or remove it"
                yield wrong_shape(
                    at / name, f"{name} is only for a pool that requests from an address space", way_out
                )
        return
    if not isinstance(part.cidrs, UnsetType):
        problem = "a pool cannot have both cidrs and from, which requests ranges from an address space"
        yield wrong_shape(at / "cidrs", problem, "write one of the two")
    if part.follows:
        problem = "follows needs cidrs: the n-th address of the network gets the n-th block of cidrs"
        yield wrong_shape(at / "follows", problem, "write cidrs instead of from")
    if given(part.prefix_length, 0) > part.block_size:
        problem = f"a range of /{part.prefix_length} has no block of /{part.block_size}"
        way_out = f"write prefixLength: {part.block_size} or less"
        yield wrong_shape(at / "prefixLength", problem, way_out)
