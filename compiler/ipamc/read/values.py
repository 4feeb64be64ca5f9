"""What all dialects share: names, labels, CIDRs and selectors, turned into the model or into findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from operator import methodcaller
from types import MappingProxyType
from typing import Protocol, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.model.cidr import Address, Block, CidrError, network_of, parse_address, parse_block
from ipamc.model.cluster import Range
from ipamc.model.diagnostics import At, Diagnostic, Findings, Place
from ipamc.model.selector.calico_tokens import from_kubectl
from ipamc.model.selector.error import SelectorError
from ipamc.model.selector.label_syntax import (
    LONGEST_VALUE,
    are_label_keys,
    are_label_values,
    are_subdomains,
    label_key_problem,
    label_value_problem,
    subdomain_problem,
)
from ipamc.model.selector.selector import EVERY, Selector, parse_calico
from ipamc.read import rules
from ipamc.read.syntax.document import Keys

Lengths = Mapping[int, tuple[int, int]]
"""The shortest and the longest prefix that a CIDR may have, by family."""
NO_LENGTHS: Lengths = MappingProxyType({})

_values_of = methodcaller("values")


class Values(Protocol):
    """What the reader of a kind asks for values: a compile reports each mistake at its place, a dump leaves it out.

    `keys` lead from `at` to the value.
    """

    def name(self, name: str, what: str, at: At, *keys: str) -> None:
        """Look at a name."""

    def text(self, text: str | None) -> str:
        """Return a text; "" for None."""

    def labels(self, labels: Mapping[str, str | None] | None, at: At, *keys: str) -> dict[str, str]:
        """Return labels; a null value is "", as the apiserver stores it."""

    def blocks(self, texts: Iterable[str], at: At, *keys: str | int) -> tuple[Block, ...]:
        """Return CIDRs of either family in their order."""

    def addresses(self, texts: Iterable[tuple[str | None, Keys]], at: At) -> tuple[Address, ...]:
        """Return addresses in their order, each written at its own keys; empty texts are none."""


class Reading(Struct):
    """The state of reading a folder: findings so far, and valid texts, so that each is checked once."""

    found: Findings = field(default_factory=Findings)
    keys: set[str] = field(default_factory=set)
    """Valid label keys."""
    values: set[str] = field(default_factory=set)
    """Valid label values."""
    complete: bool = True
    """False if an unreadable document may have been the Cluster."""

    def name(self, name: str, what: str, at: At, *keys: str) -> None:
        """Report a name that the apiserver would refuse; `keys` lead from `at` to it."""
        if problem := subdomain_problem(name):
            self.found.append(rules.bad_name(_down(at, keys), f"the name of a {what}", name, problem))

    def sound(self, names: Collection[str], labels: Collection[Mapping[str, str]]) -> bool:
        """Tell whether the names of many nodes are valid, and all their labels; report nothing.

        Each distinct key and value is checked once: a key and a value at a time, 100,000 nodes took four times
        as long. Where one is not valid, `name` and `labels` report which.
        """
        if not are_subdomains(names):
            return False
        keys = set().union(*labels) - self.keys
        values = set(chain.from_iterable(map(_values_of, labels))) - self.values
        # Nearly every name is a host name too, and a name of this length is a valid value.
        others = values.difference(names) if max(map(len, names), default=0) <= LONGEST_VALUE else values
        if not (are_label_keys(keys) and are_label_values(others)):
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
                self._key(key, at, keys)
        if not self.values.issuperset(result.values()):
            for key, text in result.items():
                self._value(text, at, (*keys, key))
        return result

    def _key(self, key: str, at: At, keys: Keys) -> None:
        if key in self.keys:
            return
        if problem := label_key_problem(key):
            place = replace(_down(at, (*keys, key)), key=True)
            self.found.append(rules.bad_label(place, "label key", key, problem))
        else:
            self.keys.add(key)

    def _value(self, value: str, at: At, keys: Keys) -> None:
        if value in self.values:
            return
        if problem := label_value_problem(value):
            self.found.append(rules.bad_label(_down(at, keys), "label value", value, problem))
        else:
            self.values.add(value)

    def block(
        self,
        text: str,
        at: At,
        *keys: str | int,
        family: int = 0,
        pods: bool = True,
        lengths: Lengths = NO_LENGTHS,
    ) -> Block | None:
        """Return a CIDR, or None and report what is wrong.

        `family` 0 accepts both; `pods`: its addresses are for pods; `lengths`: what it may have been meant to be.
        """
        try:
            block = parse_block(text, pods=pods)
        except CidrError as problem:
            better = _with_length(text, lengths) if problem.rule == "no length" else ""
            self.found.append(_refused_cidr(_down(at, keys), problem, better or problem.better))
            return None
        if family and block.family != family:
            self.found.append(rules.wrong_family(_down(at, keys), text, family))
            return None
        if block.family == 6 and str(block) != text:  # IPv4 has one spelling only
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
        """Return CIDRs of either family, also such as pods cannot use; an invalid one is reported."""
        result = []
        for index, text in enumerate(texts):
            try:
                block = parse_block(text, pods=False)
            except CidrError:
                block = None
            if block is None or block.family == 6:  # few blocks need the way with findings
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
        """Return CIDRs with places, in the order of the file; an invalid one is reported and left out."""
        found = (
            (self.block(text, at / index, family=family, pods=pods, lengths=lengths), at / index)
            for index, text in enumerate(texts)
        )
        return tuple(Range(block, place) for block, place in found if block is not None)

    def calico(self, text: str, at: Place) -> Selector:
        """Return a Calico selector; report an invalid one and return `EVERY`."""
        try:
            return parse_calico(text)
        except SelectorError as problem:
            if better := from_kubectl(text):
                problem.help = f"write {better}"
                if better == f"has({text})":
                    problem.help += f", or {{matchLabels: {{kubernetes.io/hostname: {text}}}}} for one node"
            return self.bad_selector(problem, at)

    def bad_selector(self, problem: SelectorError, at: Place) -> Selector:
        """Report an invalid selector and return any selector: the compile ends after this stage."""
        place = Place(
            at.path, at.document, (*at.keys, *problem.keys), key=problem.at_key, offset=problem.offset
        )
        self.found.append(rules.selector_syntax(place, problem.message, problem.help))
        return EVERY


def _down(at: At, keys: Keys) -> Place:
    """Return the place of a part. Called for findings only: nearly all of 100,000 nodes have none."""
    assert isinstance(at, Place)  # noqa: S101 - a folder's files have places, not spans
    return Place(at.path, at.document, (*at.keys, *keys)) if keys else at


def range_lengths(family: int, size: int) -> Lengths:
    """Return the lengths that a range for blocks of a size may have; Cilium reads no more than 2^16 blocks of IPv6."""
    return {family: (max(size - 16, 0) if family == 6 else 0, size)}


def _with_length(text: str, lengths: Lengths) -> str:
    """Return an address with the length that was probably meant; "" where nothing is known of that."""
    family, number = parse_address(text)
    return str(network_of(family, number, *lengths[family])) if family in lengths else ""


def _refused_cidr(at: Place, problem: CidrError, better: str) -> Diagnostic:
    match problem.rule:
        case "host bits":
            return rules.host_bits(at, problem.reason, better)
        case "mapped":
            return rules.mapped(at, problem.reason, better)
        case "syntax" | "no length":
            return rules.not_cidr(at, problem.reason, better)
        case "not for pods":
            return rules.not_for_pods(at, problem.reason)
        case _:
            assert_never(problem.rule)
