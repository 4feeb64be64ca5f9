"""Address blocks as integers: parsed once, sorted as numbers, printed by RFC 5952; ranges; an index."""

from __future__ import annotations

import bisect
import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from ipamc.model.diagnostics import Place
from ipamc.model.limits import LONGEST_MISTAKEN_CIDR
from ipamc.model.wording import shown

BITS = {4: 32, 6: 128}

Address = tuple[int, int]
"""(family, number) of one address."""

_LENGTHS = {str(length): length for length in range(8, 33)}
"""Prefix lengths of IPv4 blocks that pods may have, by their text."""

_FOUR_OCTETS = r"\.".join([r"(0|[1-9]\d{0,2})"] * 4)
_STRICT_V4 = re.compile(rf"{_FOUR_OCTETS}/(0|[1-9]\d?)", re.ASCII).fullmatch
_PLAIN_V4 = re.compile(_FOUR_OCTETS, re.ASCII).fullmatch

_SECOND_LOOK = frozenset({0, 127, 169, *range(224, 256)})
"""First octets that need a further check: this network, loopback, link-local, multicast and above."""

_ALL_OF_IPV4 = (1 << 32) - 1
_OCTETS = tuple(map(str, range(256)))
_NUMBERS = {octet: number for number, octet in enumerate(_OCTETS)}


class Block(NamedTuple):
    """An aligned run of addresses. Sorts by family, then by address, then the larger block first."""

    family: int
    """4 or 6."""
    first: int
    """The lowest address, as a number."""
    prefix: int
    """Prefix length, in bits."""

    @property
    def last(self) -> int:
        """The highest address, as a number."""
        return self.first + (1 << (BITS[self.family] - self.prefix)) - 1

    @property
    def size(self) -> int:
        """The number of addresses, the first and the last one included."""
        return 1 << (BITS[self.family] - self.prefix)

    def overlaps(self, other: Block) -> bool:
        """Return whether the two share an address: one of them then contains the other."""
        return self.family == other.family and self.first <= other.last and other.first <= self.last

    def widened(self, prefix: int) -> Block:
        """Return the block of a prefix length that contains this one; itself if it is as large."""
        host = BITS[self.family] - prefix
        return self if self.prefix <= prefix else Block(self.family, self.first >> host << host, prefix)

    def contains(self, other: Block) -> bool:
        """Return whether every address of `other` is in this block."""
        return self.family == other.family and self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        family, first, prefix = self
        return f"{address_text(family, first)}/{prefix}"


CidrRule = Literal["syntax", "no length", "host bits", "mapped", "not for pods"]


class CidrError(ValueError):
    """A refused CIDR. `reason` is a sentence, `rule` its name; `better` what was probably meant, or ""."""

    def __init__(self, rule: CidrRule, reason: str, better: str = "") -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.better = better

    @property
    def masked(self) -> Block | None:
        """The block as Go's net.ParseCIDR reads it: without host bits, an IPv4-mapped one as IPv4.
        Cilium 1.20 (netip.ParsePrefix) takes an IPv4-mapped one for IPv6. None: Go refuses it, too.
        """
        if self.rule not in {"host bits", "mapped"} or not self.better:
            return None
        try:
            return parse_block(self.better, pods=False)
        except CidrError as again:
            return again.masked


def address_text(family: int, number: int) -> str:
    """Return an address as text: dotted decimal, or RFC 5952."""
    if family == 4:
        text = _OCTETS  # half the time of printing four numbers
        return (
            f"{text[number >> 24]}.{text[number >> 16 & 255]}.{text[number >> 8 & 255]}.{text[number & 255]}"
        )
    return ipaddress.IPv6Address(number).compressed


def cidr_texts(blocks: Iterable[Block]) -> list[str]:
    """Return the texts of many blocks: `str` for each of them took a third longer."""
    text = _OCTETS
    return [
        f"{text[first >> 24]}.{text[first >> 16 & 255]}.{text[first >> 8 & 255]}.{text[first & 255]}/{prefix}"
        if family == 4
        else f"{address_text(family, first)}/{prefix}"
        for family, first, prefix in blocks
    ]


def parse_block(text: str, *, pods: bool = True) -> Block:
    """Parse a CIDR.
    The text may differ from canonical form (compare `str(block)`), but must be unambiguous: no leading zeros,
    no host bits, no IPv4-mapped IPv6 (the apiserver refuses these from 1.36, feature StrictIPCIDRValidation).
    With `pods`, link-local, multicast and loopback addresses are refused too. Raises CidrError.
    """
    # Nearly all blocks of real clusters end here, in half the time of a regex. A text that may be
    # refused, or is not in canonical form, takes the slow way.
    address, _, length = text.partition("/")
    if prefix := _LENGTHS.get(length):
        try:
            a, b, c, d = address.split(".")
            first = _NUMBERS[a] << 24 | _NUMBERS[b] << 16 | _NUMBERS[c] << 8 | _NUMBERS[d]
        except (KeyError, ValueError):
            return _parse_slowly(text, pods=pods)
        if first >> 24 not in _SECOND_LOOK and not first & (_ALL_OF_IPV4 >> prefix):
            return Block(4, first, prefix)
    return _parse_slowly(text, pods=pods)


def single(address: Address) -> Block:
    """Return the block of one address."""
    return Block(*address, BITS[address[0]])


def parse_either(text: str) -> Block:
    """Read a CIDR, or an address as the block of this address only. Raises CidrError."""
    return parse_block(text, pods=False) if "/" in text else single(parse_address(text))


def _parse_slowly(text: str, *, pods: bool) -> Block:
    address, slash, length = text.partition("/")
    if not slash:
        try:
            family, number = parse_address(text)
        except CidrError:
            raise _no_cidr(text) from None
        alone, network = Block(family, number, BITS[family]), network_of(family, number)
        better = str(alone) if network == alone else f"{network}, or {alone} for this address only"
        raise CidrError("no length", f"{shown(text)} has no prefix length", better)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise _no_cidr(text) from None
    family = parsed.version
    if "%" in address:
        raise CidrError("syntax", f"{shown(text)} has a zone")
    if not re.fullmatch(r"0|[1-9]\d{0,2}", length, re.ASCII) or int(length) > BITS[family]:
        raise CidrError("syntax", f"{shown(text)} needs a prefix length of 0 to {BITS[family]}", meant(text))
    prefix, number = int(length), int(parsed)
    if family == 6 and number >> 32 == 0xFFFF:
        mapped = f"{address_text(4, number & 0xFFFFFFFF)}/{prefix - 96}" if prefix >= 96 else ""
        raise CidrError("mapped", f"{shown(text)} is an IPv4-mapped IPv6 address", mapped)
    if low := number & ((1 << (BITS[family] - prefix)) - 1):
        better = str(Block(family, number - low, prefix))
        raise CidrError("host bits", f"{shown(text)} has host bits set", better)
    block = Block(family, number, prefix)
    for kind, forbidden in _FORBIDDEN if pods else ():
        if block.overlaps(forbidden):
            raise CidrError("not for pods", f"{shown(text)} overlaps {kind} addresses ({forbidden})")
    return block


def around(family: int, first: int, last: int) -> Block:
    """Return the smallest CIDR that contains two addresses."""
    host = (first ^ last).bit_length()
    return Block(family, first >> host << host, BITS[family] - host)


def network_of(family: int, number: int, shortest: int = 0, longest: int = 128) -> Block:
    """Return the network that an address begins, its prefix within the bounds: its zero octets are hosts."""
    unit = 8 if family == 4 else 16
    zeros = BITS[family] if not number else (number & -number).bit_length() - 1
    prefix = min(max(BITS[family] - zeros // unit * unit, shortest), longest)
    return Block(family, number, BITS[family]).widened(prefix)


class Odd(NamedTuple):
    """A text that Go reads as another block than it says, and this block; None: it cannot be read."""

    text: str
    block: Block | None = None

    def __str__(self) -> str:
        what = f"read as {self.block}" if self.block else "neither a CIDR nor an address"
        return f"{shown(self.text)}, which is {what}"


def read_blocks(texts: Iterable[object]) -> tuple[list[Block], list[Odd]]:
    """Read untrusted CIDRs as Go does (`CidrError.masked`): return blocks, and odd texts, both in order."""
    good, odd = list[Block](), list[Odd]()
    for text in map(str, texts):
        try:
            good.append(parse_block(text, pods=False))
        except CidrError as problem:
            odd.append(Odd(text, problem.masked))
            good += [problem.masked] if problem.masked else []
    return good, odd


def no_cidrs(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are no CIDR to Go either, in order."""
    return tuple(odd.text for odd in read_blocks(texts)[1] if not odd.block)


def parse_address(text: str) -> Address:
    """Parse one address as (family, number), an IPv4-mapped one as IPv4 (net.ParseIP). Raises CidrError."""
    if match := _PLAIN_V4(text):
        a, b, c, d = map(int, match.groups())
        # Dumps have 150,000 addresses; the library takes four times as long.
        if a <= 255 and b <= 255 and c <= 255 and d <= 255:
            return 4, a << 24 | b << 16 | c << 8 | d
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        raise CidrError("syntax", f"{shown(text)} is not an IP address") from None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    parsed = mapped or parsed
    return parsed.version, int(parsed)


def _no_cidr(text: str) -> CidrError:
    octet = too_large_octet(text)
    reason = f"{shown(text)} is not a CIDR{f': {octet} is more than 255' if octet else ''}"
    no_zeros = re.sub(r"(?<![\d])0+(?=\d)", "", text)
    better = no_zeros if no_zeros != text and _STRICT_V4(no_zeros) else meant(text)
    return CidrError("syntax", reason, better)


def _plain(text: str) -> Block:
    network = ipaddress.ip_network(text)
    return Block(network.version, int(network.network_address), network.prefixlen)


# Addresses that no pod can have. Calico refuses link-local for pools (libcalico-go validator); the others are
# not unicast, or never leave a host.
_FORBIDDEN = (
    ("link-local", _plain("169.254.0.0/16")),
    ("link-local", _plain("fe80::/10")),
    ("multicast", _plain("224.0.0.0/4")),
    ("multicast", _plain("ff00::/8")),
    ("loopback", _plain("127.0.0.0/8")),
    ("loopback", _plain("::1/128")),
)
NEVER_PODS = (*(block for _, block in _FORBIDDEN), _plain("0.0.0.0/8"), _plain("240.0.0.0/4"))
"""Blocks without addresses for pods: refused ones, `this network`, the reserved ones (RFC 1112)."""


def part(block: Block, addresses: int) -> int:
    """Return how many single addresses of a block are rendered (crd mode); 0 for all of it."""
    return addresses if 0 < addresses < usable(block, all_of_tiny=True) else 0


def usable(block: Block, *, all_of_tiny: bool, ends: int = 0) -> int:
    """Count the addresses that pods can have: all but the first and the last of a block of more than two.
    `ends` is how many of these two pods can have nevertheless. Of /31, /32, /127 and /128 every address
    counts from Cilium 1.17 on (`all_of_tiny`, PR #34618), and none before.
    """
    if block.size > 2:
        return block.size - 2 + ends
    return block.size if all_of_tiny else 0


_QUADS = r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
# Patterns of mistakes are compiled at the first mistake.
_FROM_TO = rf"{_QUADS}\s*(?:-|to|\.\.)\s*{_QUADS}"
_SHORT = r"(\d{1,3}(?:\.\d{1,3}){0,2})\.?/(\d{1,2})"
_DOTTED = r"\d+(?:\.\d+){3}(?:/.*)?"


def meant(text: str) -> str:
    """Return what to write instead of a text, or "" if that is not certain.
    Several CIDRs in one text are returned as several, with commas between them.
    """
    if len(text) > LONGEST_MISTAKEN_CIDR:
        return ""
    several = [part for part in re.split(r"[,;\s]+", text) if part]
    if len(several) > 1 and all(map(_cidr, several)):
        return ", ".join(map(_cidr, several))
    plain = text.strip().replace("[", "").replace("]", "")
    if found := re.fullmatch(_FROM_TO, plain, re.ASCII):
        return _summary(found[1], found[2])
    tidy = re.sub(r"[\s\\/]+", "/", plain.replace(",", "."))
    if found := re.fullmatch(_SHORT, tidy, re.ASCII):
        tidy = f"{found[1]}{'.0' * (3 - found[1].count('.'))}/{found[2]}"
    return _cidr(tidy)


def too_large_octet(text: str) -> str:
    """Return the first octet of a dotted address that is above 255, or ""."""
    if len(text) > LONGEST_MISTAKEN_CIDR or not re.fullmatch(_DOTTED, text, re.ASCII):
        return ""
    return next((octet for octet in text.partition("/")[0].split(".") if int(octet) > 255), "")


def _cidr(text: str) -> str:
    """Return the CIDR for a text with a prefix length, a netmask or a wildcard mask; "" for others."""
    address, slash, length = text.partition("/")
    if not slash or not length:
        return ""
    try:
        return str(ipaddress.ip_network(f"{address}/{length}"))
    except ValueError:
        return ""


def _summary(first: str, last: str) -> str:
    """Return the CIDRs from one address to another, if there are few."""
    try:
        found = ipaddress.summarize_address_range(ipaddress.IPv4Address(first), ipaddress.IPv4Address(last))
        texts = [str(network) for network in found]
    except (ValueError, TypeError):
        return ""
    return ", ".join(texts) if len(texts) <= 4 else ""


class Range(Struct, frozen=True):
    """One CIDR of the input, its place, and the reason that its author gave: "" without one."""

    block: Block
    at: Place
    reason: str = ""
    node: str = ""
    """The node whose address it is around: nobody wrote it, and it is there as long as the node is."""


T = TypeVar("T")


class OverlapIndex(Generic[T]):
    """Items with a block each, in any order, for look-up by block; blocks may nest, and be equal."""

    def __init__(self, items: Iterable[T], block_of: Callable[[T], Block]) -> None:
        """Sort the items by address. O(n log n)."""
        self._items = list(items)
        first: dict[Block, int] = {}
        for number, item in enumerate(self._items):
            first.setdefault(block_of(item), number)  # of equal blocks, the first counts
        self._blocks = sorted(first)
        self._numbers = [first[block] for block in self._blocks]
        # By a block's index in the order of addresses: the index of the smallest block around it, or -1;
        # and the least input number among the block and all blocks around it.
        self._outer: list[int] = []
        self._least: list[int] = []
        around: list[int] = []
        for place, block in enumerate(self._blocks):
            while around and not self._blocks[around[-1]].contains(block):
                around.pop()
            outer = around[-1] if around else -1
            self._outer.append(outer)
            number = self._numbers[place]
            self._least.append(min(number, self._least[outer]) if around else number)
            around.append(place)

    def first_over(self, block: Block) -> T | None:
        """Return the first item, as written, over a block, or None. O(log n + items inside the block)."""
        least, place = self._inside(block)
        if place >= 0:
            least.append(self._least[place])
        return self._items[min(least)] if least else None

    def over(self, block: Block) -> list[T]:
        """Return the items over a block as written, of equal ones the first. O(log n + result log result)."""
        numbers, place = self._inside(block)
        while place >= 0:
            numbers.append(self._numbers[place])
            place = self._outer[place]
        return [self._items[number] for number in sorted(numbers)]

    def _inside(self, block: Block) -> tuple[list[int], int]:
        """Return the numbers of the items inside a block, and the index of the smallest around it, or -1."""
        blocks = self._blocks
        low = bisect.bisect_left(blocks, block)
        high = bisect.bisect_left(blocks, Block(block.family, block.last + 1, 0), low)
        place = low - 1
        while place >= 0 and not blocks[place].contains(block):  # at most one step per prefix length
            place = self._outer[place]
        return self._numbers[low:high], place
