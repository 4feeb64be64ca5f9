"""Random histories of live clusters: after every step no address has two nodes, nothing reserved is given out, and nobody is moved who was not agreed to be.

`make soak-e2e STEPS=200 OPERATORS="1.15 1.18"` runs longer ones, each time of another seed. A history that breaks a promise is printed with its seed, and as lines
that `IPAMC_SOAK_REPLAY=FILE` does again; what was found so is one of HISTORIES.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.operator import Operator
from tests.e2e.soak.modes import MODES
from tests.e2e.soak.steps import do
from tests.e2e.soak.walk import draw
from tests.e2e.soak.world import BrokenPromiseError, World

STEPS = int(os.environ.get("IPAMC_SOAK_STEPS", "8"))
"""Of each mode."""
SEED = int(os.environ.get("IPAMC_SOAK_SEED", "11"))
REPLAY = os.environ.get("IPAMC_SOAK_REPLAY", "")


HISTORIES = {
    "a widened pool": ("pool", "widen default; apply; join n4 a"),
    "a widened pool, restarted": ("pool", "widen default; apply; restart; join n4 a"),
    "a shrunk pool": ("pool", "shrink default; apply; join n4 a"),
    "a split pool": ("pool", "split default; apply; join n4 a"),
    "a part of a pool is reserved": (
        "pool",
        "reserve default 10.1.0.128/27; apply; join n4 a; join n5 a; join n6 a",
    ),
    "a range in front": ("pool", "front default 10.1.16.0/26; apply; join n4 a; restart; join n5 a"),
    "widened, pinned by node": (
        "node",
        "widen default; reserve default 10.1.0.96/27; apply; join n4 a; nodes; apply; join n5 a",
    ),
    "the operator adds a block": ("pool", "ask n1; refresh; apply; join n4 a"),
    "an agent drops the block that it started with": ("none", "refresh"),
    "what is reserved in an unlisted pool": (
        "adopt",
        "reserve spare 10.9.0.0/26; apply; restart; scale s1 a",
    ),
    "an unlisted pool that is full": (
        "adopt",
        "shrink spare; shrink spare; disable second; apply; restart; scale s1 a; scale s2 a",
    ),
    "an autoscaler's node leaves": (
        "adopt",
        "scale s1 a; refresh; leave s1; restart; scale s2 a; refresh; apply",
    ),
    "a renumber before the first export with podCIDRs": (
        "kubernetes",
        "renumber n1; join n4 a; nodes; apply; agent n1",
    ),
    "a renumber": (
        "bystander",
        "renumber n1; append second 10.2.16.0/26; apply; drain n1; settle n1; apply; agent n1; refresh; apply",
    ),
    "a first export without CiliumNodes": ("bystander", "join n4 a; nodes; apply; refresh"),
    "created again": ("adopt", "recreate n1; refresh; apply"),
}


UNTIL_MENDED = {
    *(
        "a widened pool",
        "a shrunk pool",
        "a split pool",
        "a part of a pool is reserved",
        "the operator adds a block",
    ),
    "an agent drops the block that it started with",
    *("a renumber before the first export with podCIDRs",),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=False) if name in UNTIL_MENDED else ())
        for name in HISTORIES
    ],
)
def test_what_was_found(api: Api, operator: Operator, tmp_path: Path, name: str) -> None:
    mode, lines = HISTORIES[name]
    if operator.version < MODES[mode].since:
        pytest.skip("Cilium has this mode later")
    with World.begin(api, operator, tmp_path, MODES[mode]) as world:
        for line in lines.split("; "):
            do(world, line)


@pytest.mark.parametrize("mode", MODES)
def test_every_promise_holds_after_every_step(
    api: Api, operator: Operator, tmp_path: Path, mode: str
) -> None:
    if operator.version < MODES[mode].since:
        pytest.skip("Cilium has this mode later")
    chance = random.Random(f"{mode} {SEED}")  # noqa: S311 - a test's choice, the same every time
    lines = Path(REPLAY).read_text().splitlines() if REPLAY else []
    done: list[str] = []
    with World.begin(api, operator, tmp_path, MODES[mode]) as world:
        try:
            for number in range(len(lines) or STEPS):
                done.append(lines[number] if lines else draw(world, chance))
                do(world, done[-1])
        except BrokenPromiseError as broken:
            steps = "\n".join(f"    {line}" for line in done)
            raise AssertionError(
                f"{mode} on {operator.minor}, seed {SEED}, step {len(done)}: {broken}\n{steps}"
            ) from broken
        print(f"{mode}: {len(done)} steps; refused: {dict(world.refused)}: {'; '.join(done)}")  # noqa: T201
