"""The recording of real agents shows what happens: its tape is played here, and with --update keeps what is printed. `make recordings` draws it anywhere."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.machine import Machine
from tests.e2e.agents.router import BGP_CONTROL_PLANE, Bird, announce
from tests.e2e.agents.test_router import next_hops
from tests.e2e.processes import until

TAPE = Path(__file__).parents[3] / "docs/recordings/real-agents.tape"
CHANCE = re.compile(r"\b10\.0\.0\.\d+\b(?!/)|\d+(?= packets| received|ms)")
"""What differs from run to run: a pod's address in its block, and how many pings there were."""


def callable_as(lab: Lab, name: str, machine: Machine) -> None:
    """Let a command of the tape reach a machine by a word: `router ip route`."""
    script = lab.tools / name
    script.write_text(f'#!/bin/sh\nexec {" ".join(machine.inside())} "$@"\n')
    script.chmod(0o755)


def played(lab: Lab) -> str:
    """Play the tape; return it with what its commands printed. Steps with `@` are the lab's."""
    lines = []
    with ExitStack() as stack:
        for line in TAPE.read_text().splitlines():
            if not line.startswith("= "):
                lines.append(line)
            match line.split():
                case ["@", "pinging", *pods]:
                    pings = stack.enter_context(lab.pinging(*pods))
                case ["@", "pinged"]:
                    stack.close()
                    assert not lost(pings)
                case ["@", "play", *options]:
                    lab.play(lab.runbook(*options))
                case ["@", "start", *pods]:
                    lab.start_pods(*pods)
                    until(lambda: not lab.unreachable(), "all reach all")
                case ["$", *_]:
                    lines += [f"= {row}" for row in lab.sh(line[2:]).splitlines()]
    return "".join(f"{line}\n" for line in lines)


def test_the_recording_shows_what_happens(begin: Begin, *, update: bool) -> None:
    lab = begin(documents("bystander"), settings=BGP_CONTROL_PLANE)
    announce(lab.api, lab.operator.version)
    lab.conditions = {"cordon", "drain"}
    with Bird(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        callable_as(lab, "router", router)
        lab.sh("kubectl config use-context fleet")
        lab.install()
        lab.start_pods("a1", "b1", "c1")
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)
        printed = played(lab)
    if update:
        TAPE.write_text(printed)
    assert CHANCE.sub("…", printed) == CHANCE.sub("…", TAPE.read_text()), "run it with --update"
