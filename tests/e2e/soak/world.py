"""A live cluster with its folder, its operator and its agents, in which the steps of a history happen."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, NODES, POOLS, Api, Object, versions
from tests.e2e.operator import LEADS, Operator
from tests.e2e.processes import Program, until
from tests.e2e.proof import apply_seeds
from tests.e2e.site import Site
from tests.e2e.soak.live import Live, overlapping
from tests.e2e.soak.modes import Mode

ERROR = re.compile(r"^(?:error: )?Apply failed|^Error from server|^error:")
EXPECTED = re.compile(r"uid mismatch|metadata\.uid: Invalid value")
"""What an apply may be refused with, where the inventory is older than the cluster: it is meant for a Node that is gone."""
CONFLICT = re.compile(r'conflict with "cilium-operator" using cilium\.io/v2: \.spec\.ipam\.podCIDRs')
"""The same, where the operator was first to give a block to a node that is new since the export: the node keeps it."""


class BrokenPromiseError(AssertionError):
    """A promise was broken."""


@dataclass
class World:
    """A cluster in which a history happens. The checks after a step raise BrokenPromiseError."""

    site: Site
    operator: Operator
    live: Live
    program: Program | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    """Of what was applied last: the operator reads them when it starts."""
    applied: list[str] = field(default_factory=list)
    """What was closed to newcomers when that was applied last."""
    in_force: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """What no newcomer may be given, and the blocks that nodes had there when that was said."""
    seen: dict[str, frozenset[str]] = field(default_factory=dict)
    """The blocks that objects showed after the step before."""

    @property
    def empty(self) -> set[str]:
        """The nodes that nobody served in the step before."""
        return {name for name, blocks in self.seen.items() if not blocks}

    refused: Counter[str] = field(default_factory=Counter)
    """How often which rule refused."""
    refusal: str = ""
    """What was said of the last edit that was undone."""

    @classmethod
    def begin(cls, api: Api, operator: Operator, work: Path, mode: Mode) -> Self:
        """Let a cluster of three nodes run: listed, compiled, applied, its operator and its agents started."""
        site = Site.made(api, work, mode.documents(), operator.minor)
        world = cls(site, operator, Live(api, mode))
        for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b")):
            world.live.is_registered(name, rack)
        world.export(cilium_nodes=False)
        world.must("compile", site.name)
        world.apply()
        apply_seeds(site)
        world.start_operator()
        for name in list(world.live.machines):
            world.live.agent_starts(name)
        world.check()
        return world

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.program:
            self.program.stop(signal.SIGKILL)

    @property
    def api(self) -> Api:
        """The kube-apiserver."""
        return self.site.api

    @property
    def mode(self) -> Mode:
        """Who hands out blocks."""
        return self.live.mode

    # What people and pipelines do.

    def tried(self, *arguments: str) -> bool:
        """Run ipamc; tell whether it did as it was told. A refusal must say why and what to do, and change no file."""
        before, held = self.texts(), self.held()
        pending = {*self.site.lock("pending")} if held else set()
        try:
            self.site.run(*arguments)
        except AssertionError:
            said = self.site.said
            codes = re.findall(r"^error\[(IPC\d{4})\]", said, re.MULTILINE)
            if not codes or "Traceback" in said or said.count("= help:") < 1:
                raise BrokenPromiseError(
                    f"ipamc {' '.join(arguments)} failed without a word of help:\n{said}"
                ) from None
            if self.texts() != before:
                raise BrokenPromiseError(
                    f"ipamc {' '.join(arguments)} refused, and changed files:\n{said}"
                ) from None
            self.refused.update(codes)
            return False
        if "--settle" not in arguments:
            self.lock_keeps(held, pending | self.site.lock("pending").keys())
        return True

    def must(self, *arguments: str) -> None:
        """Run ipamc, which has no reason to refuse."""
        if not self.tried(*arguments):
            raise BrokenPromiseError(
                f"ipamc {' '.join(arguments)} is refused, where there is nothing to refuse:\n{self.site.said}"
            )

    def texts(self) -> dict[Path, str]:
        """Read the cluster's files."""
        return {file: file.read_text() for file in sorted(self.site.folder.rglob("*")) if file.is_file()}

    def restore(self, texts: Mapping[Path, str]) -> None:
        """Put the files back, as `git checkout` does."""
        for file in self.texts():
            if file not in texts:
                file.unlink()
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def edit(self, change: Callable[[Object], object]) -> bool:
        """Edit the inputs and compile them. What is refused is undone, and then compiles as before."""
        before = self.texts()
        self.site.edit(change)
        return self.compiled_or_undone(before)

    def compiled_or_undone(self, before: Mapping[Path, str]) -> bool:
        """Compile; if that is refused, put the files back, with which it must not be."""
        if self.tried("compile", self.site.name):
            return True
        why = self.refusal = self.site.said
        self.restore(before)
        if not self.tried("compile", self.site.name):
            raise BrokenPromiseError(
                f"an edit was refused and undone, and now nothing compiles:\n{why}\nthen:\n{self.site.said}"
            )
        return False

    def export(self, *, cilium_nodes: bool = True) -> None:
        """Export the inventory, without what autoscalers made, and the CiliumNodes."""
        nodes = self.api.kubectl("get", "nodes", "-l", "autoscaled!=true", "-o", "json")
        self.site.write("nodes.yaml", json.loads(nodes.stdout))
        if cilium_nodes:
            done = self.api.kubectl("get", "ciliumnodes", "-o", "json")
            self.site.write("ciliumnodes.yaml", json.loads(done.stdout))

    def apply(self) -> None:
        """Apply what was rendered, as the README says; what is refused is meant for a Node that is gone."""
        held, shown = self.held(), self.live.shown()
        strangers = [name for name in held.keys() & shown.keys() if shown[name] and shown[name] != held[name]]
        done = self.api.apply(self.site.build())
        errors = [
            line for line in done.stderr.splitlines() if ERROR.search(line) and not EXPECTED.search(line)
        ]
        conflicts = [line for line in errors if CONFLICT.search(line)]
        if len(errors) > len(conflicts) or len(conflicts) > len(strangers):
            raise BrokenPromiseError(f"the cluster refuses what was rendered:\n{done.stderr}")
        self.config = dict(self.api.get(f"{CONFIG_MAPS}/cilium-config")["data"])
        self.arguments = self.site.arguments
        self.applied = self.closed()
        if not self.mode.adopts:  # where the operator has lists, it reads them when it starts
            self.take_effect()

    # What the operator does.

    def start_operator(self) -> None:
        """Start it with the flags that were applied last."""
        self.program = self.operator.start(self.config, *self.arguments)
        self.program.until(lambda: self.program and LEADS in self.program.said(), "the operator leads")
        if self.mode.adopts:
            self.take_effect()

    def restart_operator(self, how: signal.Signals) -> None:
        """End it, and start it again."""
        assert self.program
        self.program.stop(how)
        self.start_operator()

    def closed(self) -> list[str]:
        """Return what the inputs keep from newcomers: what is reserved, and disabled pools where the operator could give them away."""
        pools = [document["spec"] for document in self.site.documents() if document["kind"] == "IPPool"]
        reserved = [str(cidr) for spec in pools for cidr in spec.get("reserved", ())]
        disabled = [str(cidr) for spec in pools if spec.get("disabled") for cidr in spec["ipv4"]["cidrs"]]
        return reserved + (disabled if self.mode.adopts else [])

    def take_effect(self) -> None:
        """Note what may not be given to newcomers from now on, and what nodes have there already."""
        had = {(name, block) for name, blocks in self.live.shown().items() for block in blocks}
        for state in ("held", "pending", "quarantined"):
            had |= {(name, block) for name, some in self.site.lock(state).items() for _, block in some}
        self.in_force = {cidr: self.in_force.get(cidr, had) for cidr in self.applied}

    def rest(self) -> None:
        """Wait until nobody writes any more, and until newcomers had time to be served."""
        end = time.monotonic() + 3
        while self.mode.hands_out and time.monotonic() < end:
            empty = {name for name, blocks in self.live.shown().items() if not blocks} - self.empty
            if not any(name in empty and not machine.drained for name, machine in self.live.machines.items()):
                break
            time.sleep(0.1)
        end, before = time.monotonic() + 90, self._versions()
        while True:
            time.sleep(0.3)
            now = self._versions()
            if now == before:
                break
            assert time.monotonic() < end, "the cluster does not come to rest"
            before = now

    def _versions(self) -> dict[str, str]:
        return {
            f"{path}/{name}": version
            for path in (CILIUM_NODES, POOLS, NODES)
            for name, version in versions(self.api.items(path)).items()
        }

    # What has to hold.

    def held(self) -> dict[str, frozenset[str]]:
        """Return the blocks of each node in the lock."""
        if not (self.site.folder / "ipam.lock").exists():
            return {}
        return {name: frozenset(block for _, block in blocks) for name, blocks in self.site.lock().items()}

    def lock_keeps(self, before: Mapping[str, frozenset[str]], pending: Iterable[str]) -> None:
        """No compile moves a node, unless somebody agreed to that and its pods do not use the block; where operators give blocks, the lock follows."""
        if self.mode.multi_pool and self.mode.pinning != "node":
            return
        now = self.held()
        for name, machine in self.live.machines.items():
            had, has = before.get(name, frozenset()), now.get(name, frozenset())
            if machine.listed and not had <= has and (name not in pending or machine.used - has):
                raise BrokenPromiseError(
                    f"the lock moves {name} from {sorted(had)} to {sorted(has)}:\n{self.site.said}"
                )

    def check(self) -> None:
        """Look at the cluster once it rests: every promise must hold."""
        self.rest()
        shown = self.live.shown()
        self.live.agents_look(shown)
        self._one_node_an_address(shown)
        self._nothing_closed_is_given_out(shown)
        self._nobody_is_moved(shown)
        self.seen = shown

    def _one_node_an_address(self, shown: Mapping[str, frozenset[str]]) -> None:
        machines = self.live.machines
        all_of = {
            name: shown.get(name, frozenset()) | (machines[name].used if name in machines else frozenset())
            for name in shown.keys() | machines.keys()
        }
        names = sorted(all_of)
        for index, name in enumerate(names):
            for other in names[index + 1 :]:
                for block, same in overlapping(all_of[name], all_of[other]):
                    raise BrokenPromiseError(
                        f"{block} of {name} and {same} of {other}: one address, two nodes"
                    )

    def _nothing_closed_is_given_out(self, shown: Mapping[str, frozenset[str]]) -> None:
        for name, blocks in shown.items():
            new = blocks - self.seen.get(name, frozenset())
            for closed, had in self.in_force.items():
                for block, _ in overlapping(new, [closed]):
                    if (name, block) not in had:
                        raise BrokenPromiseError(
                            f"{name} was given {block}, inside {closed}, which is reserved or disabled"
                        )

    def _nobody_is_moved(self, shown: Mapping[str, frozenset[str]]) -> None:
        for name, machine in self.live.machines.items():
            blocks = shown.get(name, frozenset())
            if machine.used and not machine.drained and blocks and not machine.used <= blocks:
                raise BrokenPromiseError(
                    f"{name} has {sorted(blocks)}, but its pods use {sorted(machine.used)}"
                )


def wait(holds: Callable[[], object], seconds: float = 3) -> None:
    """Wait until something holds, for so long and no longer."""
    try:
        until(holds, "", seconds)
    except AssertionError:
        return
