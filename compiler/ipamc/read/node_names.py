"""Patterns for the names of many nodes, `worker-{001..400}`: braces as bash expands them.

`{A..B}` is a range of numbers, A not above B. With a leading zero in A or B, all have the digits of the
longer one. With two letters it is the letters between them. `{a,b}` is each of some texts. Braces may follow
one another, and must not be nested; a range has no step.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import product

from msgspec import Struct

from ipamc.model.limits import MOST_NAMES_COUNTED

_BRACE = re.compile(r"[{}]")
_NUMBERS = re.compile(r"(\d{1,9})\.\.(\d{1,9})", re.ASCII).fullmatch
_LETTERS = re.compile(r"([a-z])\.\.([a-z])").fullmatch
_OF_ANSIBLE = re.compile(r"\[(\w+)[:-](\w+)\]")


def of_ansible(text: str) -> str:
    """Return a text with ranges of Ansible, such as [01:10], as ours: {01..10}."""
    return _OF_ANSIBLE.sub(r"{\1..\2}", text)


class PatternError(Exception):
    """A text is no valid pattern; `offset` is that of the first wrong character."""

    def __init__(self, problem: str, offset: int, better: str) -> None:
        super().__init__(problem)
        self.problem, self.offset, self.better = problem, offset, better


class Numbers(Struct, frozen=True):
    """`{first..last}`, with leading zeros up to `width` digits."""

    first: int
    last: int
    width: int

    @property
    def size(self) -> int:
        """The number of its texts."""
        return self.last - self.first + 1

    @property
    def longest(self) -> int:
        """The length of its longest text in characters."""
        return max(self.width, len(str(self.last)))

    def texts(self) -> Iterator[str]:
        """Yield its texts in their order."""
        return (f"{number:0{self.width}}" for number in range(self.first, self.last + 1))


class Choice(Struct, frozen=True):
    """`{a,b}`, a range of letters, or a text outside of braces as a choice of one."""

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of its texts."""
        return len(self.words)

    @property
    def longest(self) -> int:
        """The length of its longest text in characters."""
        return max(map(len, self.words))

    def texts(self) -> Iterator[str]:
        """Yield its texts in their order."""
        return iter(self.words)


Part = Numbers | Choice


def parse(text: str) -> tuple[Part, ...]:
    """Parse a pattern into its parts, from left to right. Raises PatternError. Linear; expands nothing."""
    parts: list[Part] = []
    at = 0
    while brace := _BRACE.search(text, at):
        start = brace.start()
        end = _BRACE.search(text, start + 1)
        if brace[0] == "}":
            raise PatternError("} has no { before it", start, "remove it, or write the {")
        if end is None:
            raise PatternError("{ has no } after it", start, "write a range such as {001..400}")
        if end[0] == "{":
            raise PatternError("nested braces are not supported", end.start(), "write one entry for each")
        parts += [Choice((text[at:start],))] if start > at else []
        parts.append(_braces(text[start + 1 : end.start()], start + 1))
        at = end.end()
    if not parts:
        ansible = _OF_ANSIBLE.search(text)
        better = f"write {of_ansible(ansible[0])}" if ansible else f"write name: {text[:60]}"
        raise PatternError("names has no range such as {001..400}", ansible.start() if ansible else 0, better)
    return (*parts, Choice((text[at:],))) if at < len(text) else tuple(parts)


def _braces(inside: str, offset: int) -> Part:
    if found := _NUMBERS(inside):
        first, last = int(found[1]), int(found[2])
        padded = any(len(each) > 1 and each.startswith("0") for each in found.groups())
        if first <= last:
            return Numbers(first, last, max(map(len, found.groups())) if padded else 0)
        raise PatternError("a range counts up", offset, f"write {{{found[2]}..{found[1]}}}")
    if found := _LETTERS(inside):
        if found[1] <= found[2]:
            return Choice(tuple(map(chr, range(ord(found[1]), ord(found[2]) + 1))))
        raise PatternError("a range counts up", offset, f"write {{{found[2]}..{found[1]}}}")
    if ".." in inside:
        problem = "a range needs two numbers of up to nine digits, or two letters a to z, without a step"
        raise PatternError(problem, offset, "write it as {001..400}")
    if "," not in inside:
        raise PatternError("braces need a range or a list", offset, "write {001..400} or {a,b}")
    return Choice(tuple(inside.split(",")))


def size(parts: Iterable[Part]) -> int:
    """Return the number of names; above 10^18, some number above that."""
    total = 1
    for part in parts:
        total *= part.size
        if total > MOST_NAMES_COUNTED:
            break
    return total


def longest(parts: Iterable[Part]) -> int:
    """Return the length of the longest name in characters."""
    return sum(part.longest for part in parts)


def up_to(parts: Sequence[Part], maximum: int) -> tuple[Part, ...]:
    """Return a pattern as it is if its one range of numbers goes on until it has `maximum` names.
    Raises PatternError if it has another range, or more names.
    """
    several = [part for part in parts if part.size > 1 or isinstance(part, Numbers)]
    numbers = several[0] if len(several) == 1 else None
    if not isinstance(numbers, Numbers):
        better = "write one entry for each text of the other braces"
        raise PatternError("maximum needs one range of numbers and no other braces", 0, better)
    if maximum < numbers.size:
        better = f"write maximum: {numbers.size}, or fewer names"
        raise PatternError(f"names has {numbers.size:,} names, but maximum is {maximum:,}", 0, better)
    longer = Numbers(numbers.first, numbers.first + maximum - 1, numbers.width)
    return tuple(longer if part is numbers else part for part in parts)


def names(parts: Sequence[Part]) -> list[str]:
    """Return all names; the last range varies fastest, as in bash."""
    return list(map("".join, product(*(part.texts() for part in parts))))


def less(pattern: str, gone: Container[str]) -> list[str]:
    """Return patterns for the names of a pattern that are not `gone`; a single name is written as it is.
    If none is gone, it is the pattern itself. Linear in the number of names.
    """
    parts = parse(pattern)
    return [pattern] if not any(name in gone for name in names(parts)) else list(_rest(parts, "", gone))


def _rest(parts: Sequence[Part], before: str, gone: Container[str]) -> tuple[str, ...]:
    """Return patterns of the texts that may follow `before`; values with the same rest share one."""
    if not parts:
        return () if before in gone else ("",)
    groups: list[tuple[list[str], tuple[str, ...]]] = []
    for text in parts[0].texts():
        rest = _rest(parts[1:], before + text, gone)
        if groups and groups[-1][1] == rest:
            groups[-1][0].append(text)
        else:
            groups.append(([text], rest))
    spelled = ((_spelled(parts[0], texts), rest) for texts, rest in groups)
    return tuple(head + tail for head, rest in spelled for tail in rest)


def _spelled(part: Part, texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    inside = f"{texts[0]}..{texts[-1]}" if isinstance(part, Numbers) else ",".join(texts)
    return f"{{{inside}}}"
