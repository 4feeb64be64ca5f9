"""Laws of `ipamc resize`, for any use of any nodes, played over several looks at a cluster that changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.lock.file import parse
from ipamc.model.cidr import Block, address_text, part, usable
from ipamc.model.diagnostics import Refused
from ipamc.model.dump import Dump
from ipamc.model.lock import Consent, Line, Resize, State
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.place.resize.decide import Sized, resizes
from ipamc.place.resize.resize_rules import checked_decisions
from ipamc.read.dump.read import read_dump
from ipamc.workspace.disk import assets
from tests.support import depth, dumps

TODAY = "2026-11-22"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A pool and its `usage`."""

    mode: str
    size: int
    least: int
    start: int
    most: int
    low: int
    high: int
    addresses: int

    @property
    def text(self) -> str:
        ipam = "{mode: crd}" if self.mode == "crd" else "{mode: multi-pool, pinning: node}"
        usage: dict[str, int] = {
            "high": self.high,
            "low": self.low,
            "minBlocks": self.least,
            "maxBlocks": self.most,
        }
        usage |= {"addresses": self.addresses} if self.addresses and self.mode == "crd" else {}
        return f"""\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: lab}}
spec:
  cilium: {{version: "1.19", managedBy: helm}}
  ipam: {ipam}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [10.0.0.0/20], blockSize: {self.size}}}
  blocksPerNode: {self.start}
  usage: {json.dumps(usage)}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{{name: n1}}, {{name: n2}}, {{name: n3}}]
"""


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    least = draw(st.sampled_from([1, 1, 2, 3]))
    start = draw(st.integers(least, 4))
    low = draw(st.sampled_from([20, 40, 60, 80, 90]))
    return Policy(
        mode=draw(st.sampled_from(["crd", "crd", "multi-pool"])),
        size=draw(st.sampled_from([27, 28, 29])),
        least=least,
        start=start,
        most=start + draw(st.sampled_from([0, 1, 2, 4])),
        low=low,
        high=draw(st.sampled_from([low + 1, min(low + 10, 100), 85 if low < 85 else 95, 100])),
        addresses=draw(st.sampled_from([0, 1, 3, 5, 13, 25])),
    )


def inputs(policy: Policy, lock: str | None) -> Inputs:
    return Inputs(
        name="lab",
        folder="clusters/lab",
        sources={"clusters/lab/cluster.yaml": policy.text.encode()},
        lock_path="clusters/lab/ipam.lock",
        lock=lock.encode() if lock else None,
        schemas=assets("schemas"),
        templates=assets("templates"),
        today=TODAY,
    )


def lines(text: str) -> tuple[Line, ...]:
    lock, found = parse(text.encode(), "ipam.lock")
    assert lock
    assert not found
    return lock.lines


def held(text: str) -> list[Line]:
    return [line for line in lines(text) if line.state is State.HELD]


def given_addresses(line: Line) -> range:
    number = line.addresses or usable(line.block, all_of_tiny=True)
    return range(line.block.first + 1, line.block.first + 1 + number)


def live(policy: Policy, lock: str, used: Mapping[int, str], given_out: Mapping[str, set[Block]]) -> Dump:
    """Return what a dump of the cluster shows, where these addresses are in use, by the object that says so."""
    objects = [dumps.pod("kube-proxy", "n1", "192.168.0.1", hostNetwork=True)]
    for name in ("n1", "n2", "n3"):
        mine = [line for line in held(lock) if line.node == name]
        addresses = [number for line in mine for number in used if line.block.contains(Block(4, number, 32))]
        said = [address_text(4, number) for number in addresses if used[number] == "CiliumNode"]
        router = address_text(4, mine[0].block.first + 1)
        if policy.mode == "crd":
            objects.append(dumps.cilium_node(name, *(str(line.block) for line in mine), used=[*said, router]))
        else:
            blocks = [str(line.block) for line in mine if line.block in given_out[name]]
            objects.append(dumps.cilium_node(name, allocated={f"default.{name}": blocks}, router=[router]))
        objects += [
            dumps.pod(f"p{number}", name, address_text(4, number))
            for number in addresses
            if used[number] == "Pod" or policy.mode != "crd"
        ]
    dump, warnings = read_dump([("dump.json", [dumps.kubectl(*objects).encode()])], nodes=False)
    assert not warnings
    return dump


def resized(policy: Policy, lock: str, dump: Dump) -> tuple[Compilation, tuple[Sized, ...]]:
    before = inputs(policy, lock)
    looked, _ = checked_decisions(compile_cluster(before).plan, dump, TODAY)
    return compile_cluster(replace(before, consent=Consent(resize=resizes(looked.rows)))), looked.rows


@settings(max_examples=depth.examples(80), deadline=None)
@given(policy=policies(), data=st.data())
def test_the_laws_of_resize(policy: Policy, data: st.DataObject) -> None:
    lock = compile_cluster(inputs(policy, None)).lock
    for _ in range(data.draw(st.integers(1, 4), label="looks")):
        random = Random(data.draw(st.integers(0, 1 << 30), label="seed"))  # noqa: S311 - no secret
        used: dict[int, str] = {}
        share = {name: random.choice([0.0, 0.1, 0.5, 1.0]) for name in ("n1", "n2", "n3")}
        for line in held(lock):
            if random.random() < 0.6:  # else nothing of the block is used
                some = [number for number in given_addresses(line) if random.random() < share[line.node]]
                used |= {number: random.choice(["CiliumNode", "Pod"]) for number in some}
        given_out: dict[str, set[Block]] = {"n1": set(), "n2": set(), "n3": set()}
        for line in held(lock):  # the operator gives a block where something of it is used
            is_used = any(line.block.contains(Block(4, number, 32)) for number in used)
            if is_used or not given_out[line.node] or random.random() < 0.3:
                given_out[line.node].add(line.block)
        dump = live(policy, lock, used, given_out)
        before = held(lock)
        done, rows = resized(policy, lock, dump)
        after = {line.block: line for line in held(done.lock)}

        # No used address is taken, and none that the operator gave out.
        for number in used:
            assert any(block.contains(Block(4, number, 32)) for block in after)
        if policy.mode != "crd":
            assert all(block in after for blocks in given_out.values() for block in blocks)
        # No address of a block that stays is taken, whether it is used or not.
        for line in before:
            if now := after.get(line.block):
                assert now.node == line.node
                assert len(given_addresses(now)) >= len(given_addresses(line))
        # The bounds hold, and what was given back waits for good.
        number_of = Counter(line.node for line in after.values())
        assert all(policy.least <= number <= policy.most for number in number_of.values())
        gone = {line.block for line in before} - after.keys()
        for line in lines(done.lock):
            if line.block in gone:
                assert (line.state, line.moved, line.since) == (State.QUARANTINED, True, TODAY)
        # Nobody gives something back and gets something.
        got = {line.node for line in after.values() if line.block not in {old.block for old in before}}
        assert got.isdisjoint(line.node for line in before if line.block in gone)
        # Who was over high is not, or cannot have more.
        for row in rows:
            mine = [line for line in after.values() if line.node == row.node]
            usable_now = sum(len(given_addresses(line)) for line in mine)
            assert row.used * 100 <= policy.high * usable_now or len(mine) == policy.most or row.why

        # A second look at the same dump changes nothing, and neither does an ordinary compile.
        again, _ = resized(policy, done.lock, dump)
        assert (again.lock, again.files) == (done.lock, done.files)
        ordinary = compile_cluster(inputs(policy, done.lock))
        assert (ordinary.lock, ordinary.files) == (done.lock, done.files)
        locked = compile_cluster(replace(inputs(policy, done.lock), locked=True))
        assert locked.files == done.files
        lock = done.lock


def test_a_part_of_a_block_is_less_than_all() -> None:
    block = Block(4, 10 << 24, 29)  # six usable addresses
    assert [part(block, number) for number in (0, 1, 5, 6, 7)] == [0, 1, 5, 0, 0]
    assert part(Block(4, 10 << 24, 31), 1) == 1
    assert part(Block(4, 10 << 24, 31), 2) == 0


def test_a_lock_that_changed_since_the_look_is_refused() -> None:
    policy = Policy(mode="crd", size=28, least=1, start=1, most=2, low=40, high=85, addresses=0)
    lock = compile_cluster(inputs(policy, None)).lock
    gone = Resize(reclaim=frozenset({Block(4, (10 << 24) + 4096, 28)}))
    with pytest.raises(Refused) as refused:
        compile_cluster(replace(inputs(policy, lock), consent=Consent(resize={"n1": gone})))
    assert [found.code for found in refused.value.diagnostics] == ["IPC0617"]
