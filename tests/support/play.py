"""A mistake from its beginning to the mended state: edits of one cluster, each compiled on top of what the last good compile wrote.

Every compile asserts that each node of the inventory keeps every block that it held. What is refused writes nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ipamc.lock.consent import parse_consent
from ipamc.lock.file import parse
from ipamc.model.diagnostics import Diagnostic, Refused, Severity
from ipamc.model.lock import State
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.read.parts import BINDING
from ipamc.report.findings import report
from ipamc.review.diff import Difference, compare, read_base
from tests.support import fleet

MODES = ("kubernetes", "cluster-pool", "crd", "multi-pool", "multi-pool pinned by node")
ONE_BLOCK = ("kubernetes", "cluster-pool")


@dataclass(frozen=True)
class Step:
    """What one compile said."""

    found: tuple[Diagnostic, ...]
    compilation: Compilation | None

    @property
    def errors(self) -> set[str]:
        """The codes of all errors; empty if it compiled."""
        return {each.code for each in self.found if each.severity is Severity.ERROR}

    @property
    def warnings(self) -> set[str]:
        """The codes of all warnings."""
        return {each.code for each in self.found if each.severity is Severity.WARNING}

    @property
    def text(self) -> str:
        """Everything as a user reads it."""
        return report(self.found, "full")


@dataclass(frozen=True)
class Kept:
    """What was written: the base of a plan, and what a person may restore."""

    documents: dict[str, fleet.Document]
    lock: str
    files: Mapping[str, str]


@dataclass
class Play:
    """Two racks of four nodes, a pool each, in one mode; `documents` by a name of the test's own."""

    mode: str
    families: tuple[int, ...] = (4,)
    documents: dict[str, fleet.Document] = field(default_factory=dict)
    lock: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    today: str = "2026-11-21"

    def __post_init__(self) -> None:
        mode = self.mode.split()[0]
        pinning = {"pinning": "node"} if "node" in self.mode else {}
        self.documents = {
            "cluster": fleet.cluster(mode, ipam=pinning),
            "rack-a": rack("a", 1, self.families),
            "rack-b": rack("b", 2, self.families),
            "nodes": fleet.inventory(
                [node(name) for name in ("a-1", "a-2", "a-3", "a-4", "b-1", "b-2", "b-3", "b-4")]
            ),
        }

    @property
    def one_block(self) -> bool:
        """The mode gives a node one block a family."""
        return self.mode in ONE_BLOCK

    @property
    def held(self) -> dict[str, set[str]]:
        """The blocks that nodes hold by the lock, by node."""
        return self._in(State.HELD)

    @property
    def quarantined(self) -> dict[str, set[str]]:
        """The blocks in quarantine, by node."""
        return self._in(State.QUARANTINED)

    def _in(self, state: State) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for line in parse(self.lock.encode(), "ipam.lock")[0].lines if self.lock else ():  # type: ignore[union-attr]
            if line.state is state:
                found.setdefault(line.node, set()).add(str(line.block))
        return found

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The inventory, to be edited in place."""
        nodes: list[dict[str, Any]] = self.documents["nodes"]["nodes"]
        return nodes

    def spec(self, name: str, **fields: object) -> None:
        """Set fields of a document's `spec`; None removes one."""
        spec = self.documents[name]["spec"]
        for key, value in fields.items():
            if value is None:
                spec.pop(key, None)
            else:
                spec[key] = value

    def label(self, name: str, **labels: str) -> None:
        """Set all labels of a node."""
        next(each for each in self.nodes if each["name"] == name)["labels"] = labels

    def start(self) -> Kept:
        """Compile for the first time."""
        assert not self.compile().errors
        return self.keep()

    def keep(self) -> Kept:
        """Return what is written now."""
        assert self.lock is not None
        return Kept(copy.deepcopy(self.documents), self.lock, self.files)

    def compile(
        self, *, leave: tuple[str, ...] = (), release: tuple[str, ...] = (), renumber: tuple[str, ...] = ()
    ) -> Step:
        """Compile, and keep the result if nothing refuses it."""
        inputs = replace(
            self.inputs(), consent=parse_consent(leave=leave, release=release, renumber=renumber)
        )
        before = self.held
        try:
            compilation = compile_cluster(inputs)
        except Refused as refused:
            return Step(tuple(refused.diagnostics), None)
        self.lock, self.files = compilation.lock, compilation.files
        here = {each["name"] for each in self.nodes}
        for name in before.keys() & here:
            assert before[name] <= self.held[name], f"{name} had {before[name]}, has {self.held[name]}"
        again = compile_cluster(replace(self.inputs(), locked=True))
        assert (again.lock, again.files) == (self.lock, self.files)
        return Step(compilation.diagnostics, compilation)

    def mended(self, before: Kept) -> Step:
        """Compile the documents as they were before the mistake: nothing but them may have to be put back."""
        self.documents = copy.deepcopy(before.documents)
        step = self.compile()
        assert not step.errors, step.text
        return step

    def since(self, before: Kept, step: Step) -> Difference:
        """Return the plan from what was written before to a compile."""
        assert step.compilation
        rendered = {path: text.encode() for path, text in before.files.items()}
        return compare(
            read_base(self.was(before).inputs(), rendered), step.compilation, self.today, fleet.RUNBOOKS
        )

    def changes_nothing(self, before: Kept, step: Step) -> None:
        """Assert that the mended state is the one before the mistake: lock, files, findings, an empty plan."""
        assert self.lock == before.lock
        assert self.files == before.files
        assert not self.since(before, step).changed
        assert step.found == self.was(before).compile().found

    def was(self, before: Kept) -> Play:
        """Return the cluster as it was written."""
        play = Play(self.mode, self.families, lock=before.lock, files=before.files)
        play.documents = copy.deepcopy(before.documents)
        return play

    def inputs(self) -> Inputs:
        """Return what the next compile reads."""
        return Inputs(
            name="fleet",
            folder="clusters/fleet",
            sources=fleet.as_json(list(self.documents.values())),
            lock_path="clusters/fleet/ipam.lock",
            lock=self.lock.encode() if self.lock is not None else None,
            rendered=bool(self.files),
            published={path: self.files[path].encode() for path in BINDING if path in self.files},
            schemas=fleet.SCHEMAS,
            templates=fleet.TEMPLATES,
            today=self.today,
        )


def rack(letter: str, number: int, families: tuple[int, ...]) -> fleet.Document:
    """Make the pool of a rack."""
    ranges = {4: ("ipv4", f"10.{number}.0.0/24", 28), 6: ("ipv6", f"fd00:{number}::/112", 120)}
    return fleet.pool(
        f"rack-{letter}",
        **{
            name: {"cidrs": [cidr], "blockSize": size}
            for family, (name, cidr, size) in ranges.items()
            if family in families
        },
        nodeSelector=f'rack == "{letter}"',
    )


def node(name: str) -> dict[str, Any]:
    """Make a node of the rack that its name begins with."""
    return {"name": name, "uid": f"uid-{name}", "labels": {"rack": name[0]}}
