"""What tests say is what is: room is what a compile gives, and blocks are compared one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipamc.lock.file import dumps
from ipamc.model.cidr import Block, parse_block
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import State
from ipamc.pipeline import Compilation
from ipamc.review.shown_pools import rooms, uses_on
from tests.support import fleet

MODES: dict[str, dict[str, Any]] = {
    "cluster-pool": {},
    "crd": {},
    "kubernetes": {"output": {"nodeObjects": "create"}},
}
RACKS = ("a", "b", "c")


@st.composite
def pools(draw: st.DrawFn) -> list[fleet.Document]:
    """Draw up to four small pools: by rack or for all, with sizes for a class, overflow, reserved parts."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        rack = draw(st.sampled_from([*RACKS, ""]))
        spec: dict[str, Any] = {
            "ipv4": {"cidrs": [f"10.{number}.0.0/{draw(st.integers(24, 27))}"], "blockSize": 28},
            "nodeSelector": f'rack == "{rack}"' if rack else "",
            "priority": draw(st.integers(0, 2)),
        }
        if draw(st.booleans()):
            spec["blockSizes"] = [{"nodeSelector": "has(large)", "ipv4": 27}]
        if number and draw(st.booleans()):
            spec["overflow"] = ["p0"]
        if draw(st.booleans()):
            spec["reserved"] = [f"10.{number}.0.16/28"]
        if draw(st.integers(0, 4)) == 0:
            spec["disabled"] = True
        found.append(fleet.pool(f"p{number}", **spec))
    return found


def node(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "labels": labels}


labels = st.builds(
    lambda rack, large: {"rack": rack, **({"large": "yes"} if large else {})},
    st.sampled_from(RACKS),
    st.booleans(),
)


def attempt(documents: list[fleet.Document], lock: str | None = None, **how: Any) -> Compilation | set[str]:
    """Compile; return the codes where it is refused."""
    try:
        return fleet.compiled(fleet.as_json(documents), lock, **how)
    except Refused as refused:
        return {each.code for each in refused.diagnostics if each.severity == 0}


@given(
    st.sampled_from(sorted(MODES)),
    pools(),
    st.lists(labels, max_size=6),
    labels,
    st.integers(1, 6),
    st.data(),
)
def test_room_is_what_a_compile_gives(
    mode: str,
    some: list[fleet.Document],
    there: list[dict[str, str]],
    like: dict[str, str],
    more: int,
    data: st.DataObject,
) -> None:
    """A test of room passes exactly where so many more nodes with these labels compile, now and with a lock."""
    nodes = [node(f"n{number}", each) for number, each in enumerate(there)]
    base = [fleet.cluster(mode, unmatchedNodes="skip", budget={"leave": 100}, **MODES[mode]), *some]
    first = attempt([*base, fleet.inventory(nodes)])
    if isinstance(first, set):
        return
    left = data.draw(st.sets(st.sampled_from(range(len(nodes))), max_size=1)) if nodes else set()
    nodes = [each for number, each in enumerate(nodes) if number not in left]
    day = data.draw(st.sampled_from(["2026-11-21", "2026-11-25", "2026-12-21"]))
    gone = attempt([*base, fleet.inventory(nodes)], first.lock, leave=["all"])
    assert isinstance(gone, Compilation)
    room = fleet.assertions({"room": {"nodes": more, "like": like}})
    tested = attempt([*base, fleet.inventory(nodes), room], gone.lock, today=day)
    grown = [*nodes, *(node(f"z{number}", like) for number in range(more))]
    reality = attempt([*base, fleet.inventory(grown)], gone.lock, today=day)
    given_blocks = isinstance(reality, Compilation) and all(
        reality.plan.held.get(f"z{number}") for number in range(more)
    )
    assert tested == {"IPC1003"} if not given_blocks else isinstance(tested, Compilation)


@given(pools(), st.lists(labels, min_size=1, max_size=8), st.data())
def test_blocks_are_where_they_are(
    some: list[fleet.Document], there: list[dict[str, str]], data: st.DataObject
) -> None:
    """`blocks`, `apart` and `nothingIn` say what a look at each block says."""
    nodes = [node(f"n{number}", each) for number, each in enumerate(there)]
    base = [fleet.cluster(unmatchedNodes="skip"), *some, fleet.inventory(nodes)]
    plain = attempt(base)
    if isinstance(plain, set):
        return
    cidr = st.builds(
        lambda pool, place: f"10.{pool}.0.{place * 16}/28", st.integers(0, 3), st.integers(0, 15)
    )
    within = data.draw(
        st.lists(st.one_of(cidr, st.sampled_from(["10.0.0.0/15", "10.2.0.0/25"])), min_size=1, max_size=5)
    )
    outside = data.draw(st.lists(cidr, min_size=1, max_size=3))
    blocks = {name: [line.block for line in lines] for name, lines in plain.plan.held.items()}
    rack = data.draw(st.sampled_from(RACKS))
    mine = [
        block for each in nodes if each["labels"]["rack"] == rack for block in blocks.get(each["name"], [])
    ]
    inside, beyond = list(map(parse_block, within)), list(map(parse_block, outside))

    def wrong() -> Iterator[Block]:
        for block in mine:
            whole = any(each.contains(block) for each in inside)
            halves = [Block(4, block.first + part * 16, 28) for part in range(block.size // 16)]
            whole = whole or all(any(each.contains(half) for each in inside) for half in halves)
            if not whole or any(each.overlaps(block) for each in beyond):
                yield block

    test = {"nodeSelector": f'rack == "{rack}"', "within": within, "outside": outside}
    got = attempt([*base, fleet.assertions({"blocks": test})])
    expected = {"IPC1007"} if not mine else {"IPC1001"} if list(wrong()) else None
    assert got == expected if expected else isinstance(got, Compilation)

    length = data.draw(st.integers(14, 28))
    by_rack = {
        each: [
            block
            for name, found in blocks.items()
            for block in found
            if nodes[int(name[1:])]["labels"]["rack"] == each
        ]
        for each in RACKS
    }
    shared = any(
        wider(one, length).overlaps(wider(other, length))
        for first in RACKS
        for second in RACKS
        if first < second
        for one in by_rack[first]
        for other in by_rack[second]
    )
    got = attempt([*base, fleet.assertions({"apart": {"each": "rack", "ipv4": length}})])
    assert got == {"IPC1004"} if shared else isinstance(got, Compilation)


def wider(block: Block, length: int) -> Block:
    """Return the prefix of a length around a block, or the block if it is larger."""
    if block.prefix <= length:
        return block
    return Block(4, block.first >> (32 - length) << (32 - length), length)


@given(pools(), st.lists(labels, min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_a_renumber_of_all_that_break_a_test_mends_it(
    some: list[fleet.Document], there: list[dict[str, str]], which: set[int]
) -> None:
    """What is pending counts, and what it is to replace is only warned of; when all have moved nothing is said."""
    nodes = [node(f"n{number}", each) for number, each in enumerate(there)]
    base = [fleet.cluster(unmatchedNodes="skip"), *some, fleet.inventory(nodes)]
    plain = attempt(base)
    if isinstance(plain, set):
        return
    held = [line for lines in plain.plan.held.values() for line in lines]
    moving = [line for line in held if int(line.node[1:]) in which]
    target = [f"10.9.0.{16 * number}/28" for number in range(len(moving))]
    lines = [*plain.plan.lock.lines]
    lock = dumps(plain.plan.lock)
    extra = fleet.pool(
        "target", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 28}, nodeSelector='rack == "none"'
    )
    assert all(line.state is State.HELD for line in lines)
    pending = "".join(
        f'{{"block":"{block}","pool":"target","node":"{line.node}","pending":true}}\n'
        for block, line in zip(target, moving, strict=True)
    )
    test = fleet.assertions({"blocks": {"nodeSelector": "all()", "within": ["10.9.0.0/24"]}})
    got = attempt([*base, extra, test], lock + pending)
    if not held:
        assert got == {"IPC1007"}
    elif len(moving) < len(held):
        assert got == {"IPC1001"}
    else:
        assert isinstance(got, Compilation)
        assert "IPC1009" in {each.code for each in got.diagnostics}


@given(
    st.sampled_from(sorted(MODES)),
    pools(),
    st.lists(labels, max_size=8),
    st.sets(st.integers(0, 7), max_size=2),
    st.sampled_from(["2026-11-21", "2026-11-25", "2026-12-21"]),
)
def test_a_pool_has_the_room_that_show_tells(
    mode: str, some: list[fleet.Document], there: list[dict[str, str]], left: set[int], day: str
) -> None:
    """A test of a pool's room passes for as many nodes as `ipamc show` says, and for none more."""
    nodes = [node(f"n{number}", each) for number, each in enumerate(there)]
    base = [fleet.cluster(mode, unmatchedNodes="skip", budget={"leave": 100}, **MODES[mode]), *some]
    first = attempt([*base, fleet.inventory(nodes)])
    if isinstance(first, set):
        return
    rest = fleet.inventory([each for number, each in enumerate(nodes) if number not in left])
    gone = attempt([*base, rest], first.lock, leave=["all"])
    assert isinstance(gone, Compilation)
    cluster, lock = gone.plan.cluster, gone.plan.lock
    for name, room in rooms(cluster, uses_on(cluster, lock, day)).items():
        if room:
            fits = fleet.assertions({"room": {"nodes": room, "pool": name}})
            assert isinstance(attempt([*base, rest, fits], gone.lock, today=day), Compilation)
        more = fleet.assertions({"room": {"nodes": room + 1, "pool": name}})
        assert attempt([*base, rest, more], gone.lock, today=day) == {"IPC1003"}
