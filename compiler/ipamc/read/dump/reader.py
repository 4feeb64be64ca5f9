"""What reading a dump remembers: findings, shared texts, the latest time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from ipamc.model.cidr import Block, CidrError, parse_address, parse_block
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.dump import Address
from ipamc.read.dump import rules
from ipamc.read.dump.items import Item

_OURS = ("cilium.io", "io.cilium", "projectcalico.org")
"""Parts of the keys of annotations that Cilium and Calico write."""


class Reader(Struct):
    """What reading one dump remembers."""

    file: str = ""
    found: list[Diagnostic] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Texts that many objects share: keys and values of labels, names of nodes."""
    newest: str = ""
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

    def labels(self, labels: Mapping[str, str | None] | None) -> dict[str, str]:
        """Return labels with shared texts; a null value is ""."""
        return {self.text(key): self.text(value) for key, value in (labels or {}).items()}

    def annotations(self, annotations: Mapping[str, str | None] | None) -> dict[str, str]:
        """Return the annotations of Cilium and Calico."""
        return {
            self.text(key): value or ""
            for key, value in (annotations or {}).items()
            if any(part in key for part in _OURS)
        }

    def blocks(self, texts: Iterable[str], item: Item, what: str) -> tuple[Block, ...]:
        """Return CIDRs in their order, once each; report those that cannot be read."""
        good: dict[Block, None] = {}
        bad = []
        for text in texts:
            try:
                good[parse_block(text, pods=False)] = None
            except CidrError:
                bad.append(text)
        self._report(bad, item, what)
        return tuple(good)

    def addresses(self, texts: Iterable[str | None], item: Item, *what: str) -> tuple[Address, ...]:
        """Return addresses in their order; report those that cannot be read. Empty texts are none.

        `what` is kind and name, or kind, namespace and name.
        """
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
        if bad:
            kind, *name = what
            self._report(bad, item, " ".join((kind, "/".join(name))) if name else kind)
        return tuple(good)

    def _report(self, bad: list[str], item: Item, what: str) -> None:
        if bad:
            self.found.append(rules.unreadable_address(self.at(item), what, bad))

    def at(self, item: Item) -> Span:
        """Return the place of an item."""
        return Span(self.file, item.line, 1, 1) if item.line else Span(self.file)
