"""Laws of address spaces: whatever clusters ask, in whatever branches, no address is given twice and no range moves."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from ipamc.law.change import UNLAWFUL, Days, changes
from ipamc.lock.file import parse
from ipamc.lock.merge import merge
from ipamc.model.address_sets import disjoint
from ipamc.model.cidr import Block, parse_block
from ipamc.model.diagnostics import Refused, Severity
from ipamc.model.lock import Line, State
from ipamc.model.space import ClusterPrefixes
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.read.parts import INDEX
from ipamc.read.space_index import Index, load_index
from ipamc.workspace.disk import assets
from ipamc.workspace.survey import known_ranges, survey

SCHEMAS = assets("schemas")
NAMES = ("a", "b", "c", "d")
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME, labels: {region: REGION}}
spec: {cilium: {version: "1.18", managedBy: helm}, ipam: {mode: cluster-pool}, addressSpace: fabric}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec: {ipv4: {RANGES, blockSize: 28}}
"""
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {name: fabric}
spec:
  ipv4: {cidrs: [CIDRS], prefixLength: 24}
  levels: [{name: eu, clusterSelector: region == "eu", ipv4: {cidrs: [10.0.4.0/22]}}]
  quarantineDays: 3
  budget: {leave: 100}
"""
CIDRS = ("10.0.0.0/21", "10.0.0.0/21, 10.1.0.0/22")


class Member(Struct, frozen=True):
    """A cluster with a pool: what it asks for, or a CIDR of its own."""

    region: str
    ranges: int
    prefix: int
    own: str = ""

    def document(self, name: str) -> str:
        ranges = (
            f"cidrs: [{self.own}]"
            if self.own
            else f"from: fabric, ranges: {self.ranges}, prefixLength: {self.prefix}"
        )
        return CLUSTER.replace("NAME", name).replace("REGION", self.region).replace("RANGES", ranges)


class Branch(Struct, frozen=True):
    """What a branch has."""

    clusters: dict[str, Member] = field(default_factory=dict)
    cidrs: str = CIDRS[0]
    lock: bytes | None = None
    index: bytes | None = None


MEMBERS = st.builds(
    Member,
    region=st.sampled_from(("eu", "us")),
    ranges=st.integers(1, 3),
    prefix=st.integers(24, 26),
    own=st.sampled_from(("", "", "", "10.0.1.0/24", "10.0.3.128/25", "10.9.0.0/24")),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(NAMES), MEMBERS),
        st.tuples(st.just("gone"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("ask"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("grow"), st.just(""), st.none()),
    ),
    min_size=1,
    max_size=3,
)


def changed(state: Branch, changes: Sequence[tuple[str, str, Member | None]]) -> Branch:
    clusters, cidrs = dict(state.clusters), state.cidrs
    for what, name, member in changes:
        if what == "set" and member:
            clusters[name] = member
        elif what == "gone":
            clusters.pop(name, None)
        elif what == "ask" and name in clusters and clusters[name].own:
            clusters[name] = Member(clusters[name].region, 1, 24)
        elif what == "grow":
            cidrs = CIDRS[1]
    return Branch(clusters, cidrs, state.lock, state.index)


def compiled(state: Branch, day: int) -> Branch | None:
    """Compile the space as a work tree has it; None where it is refused."""
    known = known_ranges(state.lock, state.index, "fabric")
    members = []
    for name, member in sorted(state.clusters.items()):
        path = f"clusters/{name}/c.yaml"
        inputs = Inputs(
            name=name,
            folder=f"clusters/{name}",
            sources={path: member.document(name).encode()},
            lock_path=f"clusters/{name}/ipam.lock",
            lock=None,
            schemas=SCHEMAS,
        )
        spaces = {"clusters/fabric/rendered/index.jsonl": known[name]} if name in known else {}
        found = survey(inputs, spaces)
        assert isinstance(found, ClusterPrefixes)
        members.append(found)
    inputs = Inputs(
        name="fabric",
        folder="clusters/fabric",
        sources={"clusters/fabric/space.yaml": SPACE.replace("CIDRS", state.cidrs).encode()},
        lock_path="clusters/fabric/ipam.lock",
        lock=state.lock,
        rendered=state.index is not None,
        published={} if state.index is None else {INDEX: state.index},
        surveyed=tuple(members),
        schemas=SCHEMAS,
        today=f"2026-11-{day:02}",
    )
    try:
        done = compile_cluster(inputs)
    except Refused as refused:
        errors = {each.code for each in refused.diagnostics if each.severity is Severity.ERROR}
        if not errors <= ALLOWED:
            raise
        return None
    return Branch(state.clusters, state.cidrs, done.lock.encode(), done.files[INDEX].encode())


ALLOWED = {"IPC0303", "IPC0701", "IPC0420"}
"""No room; members that overlap; all clusters are gone."""


def lines(state: Branch) -> tuple[Line, ...]:
    if state.lock is None:
        return ()
    lock, found = parse(state.lock, "ipam.lock")
    assert lock is not None
    assert not found
    return lock.lines


def held(state: Branch) -> dict[str, Block]:
    return {line.node: line.block for line in lines(state) if line.state is State.HELD}


def check(before: Branch, after: Branch, day: int) -> None:
    """Check the laws of one compile."""
    assert disjoint(line.block for line in lines(after))
    wanted = {
        f"{name}/pods{f'/{number}' if number > 1 else ''}"
        for name, member in after.clusters.items()
        if not member.own
        for number in range(1, member.ranges + 1)
    }
    now, was = held(after), held(before)
    assert now.keys() == wanted
    assert all(now[node] == was[node] for node in wanted & was.keys())  # nothing moves
    index = load_index(after.index or b"", "fabric")
    assert isinstance(index, Index)
    own = {(name, member.own) for name, member in after.clusters.items() if member.own}
    given_ = {(node.split("/")[0], str(block)) for node, block in now.items()}
    assert {(line.cluster, line.cidr) for _, line in index.lines} == own | given_
    blocks = [(line.cluster, parse_block(line.cidr)) for _, line in index.lines]
    assert not any(a != b and one.overlaps(two) for a, one in blocks for b, two in blocks)
    found = changes(lines(before), lines(after), Days(f"2026-11-{day:02}", 3, 3))
    assert not [each for each in found if each.verdict in UNLAWFUL]
    again = compiled(after, day)
    assert again is not None
    assert (again.lock, again.index) == (after.lock, after.index)


@settings(max_examples=40)
@given(st.lists(st.tuples(CHANGES, CHANGES), min_size=1, max_size=5))
def test_branches_of_a_space_meet(history: list[tuple[list[object], list[object]]]) -> None:
    """Two branches ask at once, day by day; the second one is merged by the rules of locks, and compiled again."""
    trunk = Branch()
    for day, (one, two) in enumerate(history, 1):
        ours = compiled(changed(trunk, one), day)  # type: ignore[arg-type]
        theirs = compiled(changed(trunk, two), day)  # type: ignore[arg-type]
        if ours is None:
            continue
        check(trunk, ours, day)
        before, trunk = trunk, ours
        if theirs is None:
            continue
        check(before, theirs, day)
        assert ours.lock is not None
        assert theirs.lock is not None
        merged = merge(before.lock, ours.lock, theirs.lock, ours.lock)
        assert not merged.conflicts
        both = changed(changed(before, one), two)  # type: ignore[arg-type]
        after = compiled(Branch(both.clusters, both.cidrs, merged.text, ours.index), day)
        if after is not None:
            check(ours, after, day)
            trunk = after
