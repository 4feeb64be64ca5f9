"""Random histories of live clusters: after every step no address has two nodes, nothing reserved is given out, and nobody is moved who was not agreed to be.

`make soak-e2e STEPS=200 OPERATORS="1.15 1.18"` runs longer ones, each time of another seed. A history that breaks a promise is printed with its seed, and as lines
that `IPAMC_SOAK_REPLAY=FILE` does again; what was found so is one of HISTORIES.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.operator import Operator
from tests.e2e.soak.modes import MODES, Mode
from tests.e2e.soak.steps import do
from tests.e2e.soak.walk import draw
from tests.e2e.soak.world import BrokenPromiseError, World

STEPS = int(os.environ.get("IPAMC_SOAK_STEPS", "4"))
"""Of each mode."""
SEED = int(os.environ.get("IPAMC_SOAK_SEED", "11"))
REPLAY = os.environ.get("IPAMC_SOAK_REPLAY", "")


HISTORIES = {
    "a pool that grows": (
        "pool",
        "widen default; apply; join n4 a; split default; apply; join n5 a; restart; join n6 a",
    ),
    "what the operator gave beside the lock": (
        "none",
        "ask n1; refresh; leave n2; nodes; join n4 a; refresh; apply",
    ),
    "reserved and disabled beside an unlisted pool": (
        "adopt",
        "reserve spare 10.9.0.0/26; disable second; front default 10.1.16.0/26; shrink spare; apply; restart; scale s1 b; scale s2 a; scale s3 b",
    ),
    "created again before anybody applied": ("adopt", "recreate n1; refresh; apply; heal n1; refresh; apply"),
    "a renumber before the first export with podCIDRs": (
        "kubernetes",
        "renumber n1; join n4 a; nodes; apply; agent n1",
    ),
}
"""What random histories broke a promise with, as short as it could be made; by what it is about, with the mode."""


@pytest.mark.parametrize("name", HISTORIES)
def test_what_was_found(api: Api, operator: Operator, tmp_path: Path, name: str) -> None:
    mode, lines = HISTORIES[name]
    play(api, operator, tmp_path, MODES[mode], lines.split("; "))


@pytest.mark.deep("adopt", "kubernetes", "pool")
@pytest.mark.parametrize("mode", MODES)
def test_every_promise_holds_after_every_step(
    api: Api, operator: Operator, tmp_path: Path, mode: str
) -> None:
    play(api, operator, tmp_path, MODES[mode], Path(REPLAY).read_text().splitlines() if REPLAY else None)


def play(api: Api, operator: Operator, work: Path, mode: Mode, lines: Sequence[str] | None) -> None:
    """Play a history, or draw one; it breaks no promise."""
    if operator.version < mode.since:
        pytest.skip("Cilium has this mode later")
    chance = random.Random(f"{mode.name} {SEED}")  # noqa: S311 - a test's choice, the same every time
    done: list[str] = []
    with World.begin(api, operator, work, mode) as world:
        try:
            for number in range(STEPS if lines is None else len(lines)):
                done.append(draw(world, chance) if lines is None else lines[number])
                do(world, done[-1])
            if lines is None:
                done.append("mend")
                do(world, "mend")
        except BrokenPromiseError as broken:
            history = "\n".join(f"    {line}" for line in done)
            where = f"{mode.name} on {operator.minor}, step {len(done)}"
            again = f"seed {SEED}" if lines is None else "replayed"
            raise AssertionError(f"{where}, {again}: {broken}\n{history}") from broken
        print(f"{mode.name}: {len(done)} steps; refused: {dict(world.refused)}: {'; '.join(done)}")  # noqa: T201
