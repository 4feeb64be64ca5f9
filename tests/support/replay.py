"""A cluster over time: each step changes inputs, compiles, and carries the lock on, as one commit after another does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from ipamc.model.diagnostics import Diagnostic, Refused, Severity
from ipamc.pipeline import Compilation
from tests.support import fleet


@dataclass(frozen=True)
class Outcome:
    """What one compile gave."""

    compilation: Compilation | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def refused(self) -> str:
        """The codes of all errors, sorted and joined by a space; empty if it compiled."""
        return " ".join(sorted({each.code for each in self.diagnostics if each.severity is Severity.ERROR}))

    @property
    def warned(self) -> frozenset[str]:
        """The codes of everything else."""
        return frozenset(each.code for each in self.diagnostics if each.severity is not Severity.ERROR)

    def blocks(self, node: str) -> list[str]:
        """Return the held blocks of a node, in the lock's order."""
        assert self.compilation
        return [str(line.block) for line in self.compilation.plan.held.get(node, ())]


@dataclass
class Replay:
    """Inputs by a name of the test's own, and the lock that the last good compile wrote."""

    documents: dict[str, fleet.Document]
    lock: str | None = None
    today: date = field(default=date(2026, 11, 21))

    def sources(self) -> dict[str, bytes]:
        """Return the inputs as files."""
        return fleet.as_json(list(self.documents.values()))

    def wait(self, days: int) -> None:
        """Let days pass before the next step."""
        self.today += timedelta(days=days)

    def step(self, changes: Mapping[str, fleet.Document | None], *, keep: bool = False) -> Outcome:
        """Change, add or (None) remove documents, and compile.

        What is refused is not merged: the next step starts from where this one did, unless the change is one that nobody can take back (`keep`).
        """
        before = self.documents
        changed = {**before, **changes}
        self.documents = {name: document for name, document in changed.items() if document is not None}
        try:
            compilation = fleet.compiled(
                self.sources(), self.lock, today=self.today.isoformat(), leave=["all"]
            )
        except Refused as refused:
            if not keep:
                self.documents = before
            return Outcome(None, tuple(refused.diagnostics))
        self.lock = compilation.lock
        return Outcome(compilation, compilation.diagnostics)
