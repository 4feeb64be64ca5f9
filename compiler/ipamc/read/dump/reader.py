"""What reading a dump remembers: findings, shared texts, the latest time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from ipamc.model.cidr import Address, Block, CidrError, parse_address, parse_block
from ipamc.model.diagnostics import At, Diagnostic, Span
from ipamc.read.dump import rules
from ipamc.read.dump.items import Item
from ipamc.read.syntax.document import Keys


class Reader(Struct):
    """What reading one dump remembers."""

    file: str = ""
    found: list[Diagnostic] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Texts that many objects share: keys and values of labels, names of nodes."""
    newest: str = ""
    item: Item | None = None
    """What is read now, as it is in the file."""
    raw: Any = None
    """The same as its struct."""
    _addresses: dict[str, Address] = field(default_factory=dict)
    """Addresses by their texts: a Pod and its CiliumEndpoint have the same, and all of a node name the node's."""

    def text(self, text: str | None) -> str:
        """Return a text; equal ones are one object."""
        return self.texts.setdefault(text, text) if text else ""

    def seen_at(self, *times: str | None) -> None:
        """Remember the latest time, RFC 3339 in UTC."""
        for time in times:
            if time and time > self.newest and time.endswith("Z"):
                self.newest = time

    def name(self, *_: At | str) -> None:
        """Look at nothing: the apiserver did."""

    def labels(self, labels: Mapping[str, str | None] | None, *_: At | str) -> dict[str, str]:
        """Return labels with shared texts; a null value is ""."""
        return {self.text(key): self.text(value) for key, value in (labels or {}).items()}

    def blocks(self, texts: Iterable[str], *_: At | str | int) -> tuple[Block, ...]:
        """Return CIDRs in their order, once each; report those that cannot be read."""
        good: dict[Block, None] = {}
        bad = []
        for text in texts:
            try:
                good[parse_block(text, pods=False)] = None
            except CidrError:
                bad.append(text)
        self._report(bad)
        return tuple(good)

    def addresses(self, texts: Iterable[tuple[str | None, Keys]], *_: At) -> tuple[Address, ...]:
        """Return addresses in their order; report those that cannot be read. Empty texts are none."""
        return self.numbers([text for text, _ in texts])

    def numbers(self, texts: Iterable[str | None]) -> tuple[Address, ...]:
        """Do what `addresses` does for texts alone, of which there are 150,000."""
        good: list[Address] = []
        bad: list[str] = []
        known = self._addresses
        for text in texts:
            if not text:
                continue
            if (address := known.get(text)) is None:
                try:
                    address = known[text] = parse_address(text)
                except CidrError:
                    bad.append(text)
                    continue
            good.append(address)
        self._report(bad)
        return tuple(good)

    def _report(self, bad: list[str]) -> None:
        if bad and self.item:
            metadata = self.raw.metadata
            namespace = getattr(metadata, "namespace", None)
            name = f"{namespace}/{metadata.name}" if namespace else metadata.name
            self.found.append(rules.unreadable_address(self.at(self.item), f"{self.item.kind} {name}", bad))

    def at(self, item: Item) -> Span:
        """Return the place of an item."""
        return Span(self.file, item.line, 1, 1) if item.line else Span(self.file)
