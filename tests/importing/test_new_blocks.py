"""Random clusters: no new block has an address of a node, a service or a load balancer that the inputs show.

IPAMC_CLUSTERS is the number of clusters, and IPAMC_CLUSTER the first one: a number makes the same cluster each time.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from ipamc.importing.refresh import Past, refresh
from ipamc.lock.consent import parse_consent
from ipamc.model.address_sets import aligned
from ipamc.model.cidr import BITS, Block, address_text
from ipamc.model.diagnostics import Refused, Severity
from ipamc.model.lock import Line
from ipamc.pipeline import Compilation, compile_cluster
from ipamc.read.read import read
from tests.support import depth, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, dump_of, imported, inputs

CLUSTERS = int(os.environ.get("IPAMC_CLUSTERS") or depth.examples(450))
FIRST = int(os.environ.get("IPAMC_CLUSTER") or 0)

MODES = ("cluster-pool", "multi-pool", "kubernetes")
RANGES = {4: Block(4, 0x0A000000, 20), 6: Block(6, 0xFD00 << 112, 114)}
SIZES = {4: 26, 6: 120}
BLOCKS = 64
"""In a range."""
REFUSED = {"IPC0302", "IPC0303", "IPC0305", "IPC0410", "IPC0411"}
"""What a compile may refuse: where nothing tells the range, it is that of the blocks of the first nodes."""


def texts(addresses: Iterable[Block]) -> list[str]:
    return [address_text(each.family, each.first) for each in addresses]


class World:
    """A running cluster. Most addresses are in its range, and many in the blocks that are given out first."""

    def __init__(self, chance: random.Random, mode: str) -> None:
        self.chance, self.mode = chance, mode
        self.families = chance.choice([(4,), (6,), (4, 6), (6, 4)])
        self.beside = chance.random() < 0.2
        """No node has an address in the range."""
        self.shown: dict[str, list[Block]] = {}
        """The blocks that a node shows."""
        self.taken: dict[str, list[Block]] = {}
        """The addresses of nodes, services and load balancers."""
        self.nodes: dict[str, list[dumps.Object]] = {}
        for number in range(chance.randint(1, 6)):
            self.join(f"n{number}")
        self.flags: list[str] = []
        """Of kube-controller-manager."""
        if mode == "kubernetes" and chance.random() < 0.9:
            self.flags += [f"--cluster-cidr={','.join(str(RANGES[each]) for each in self.families)}"]
            self.flags += [f"--node-cidr-mask-size-ipv{each}={SIZES[each]}" for each in self.families]
        makes = (self.service_ranges, self.balancers, self.services)
        self.others = [each for make in makes if chance.random() < 0.5 for each in make()]

    def network(self, family: int, *longer: int) -> Block:
        """Return a network in the range, or a little beside it, whose prefix is longer than that of a block by one of these."""
        prefix = SIZES[family] + self.chance.choice(longer)
        blocks = self.chance.choice([8, BLOCKS, BLOCKS + 16])
        first = self.chance.randrange(0, blocks << BITS[family] - SIZES[family], 1 << BITS[family] - prefix)
        return Block(family, RANGES[family].first + first, prefix)

    def address(self, family: int) -> Block:
        """Return an address of a node or a service."""
        return self.network(family, BITS[family] - SIZES[family])

    def free(self, family: int, lines: Iterable[Line]) -> Block:
        """Return a block that no node shows and no line has."""
        used = {*(line.block for line in lines), *(each for some in self.shown.values() for each in some)}
        first, size = RANGES[family].first, 1 << BITS[family] - SIZES[family]
        every = (Block(family, first + number * size, SIZES[family]) for number in range(BLOCKS))
        return self.chance.choice([block for block in every if block not in used])

    def join(self, name: str, lines: Iterable[Line] = ()) -> None:
        """Let a node join, with addresses. It shows no block yet, or that of the lock, or a free one."""
        chance = self.chance
        own = [self.address(each) for each in self.families[: chance.randint(1, 2)]]
        if self.beside:
            own = [each._replace(first=each.first + 16 * RANGES[each.family].size) for each in own]
        mine = {line.block.family: line.block for line in lines if line.node == name}
        blocks = [mine.get(each) or self.free(each, lines) for each in self.families]
        blocks = [] if chance.random() < 0.3 else blocks
        self.shown[name], self.taken[name] = blocks, own
        cidrs = list(map(str, blocks))
        node = dumps.node(name, *(cidrs if self.mode == "kubernetes" else ()), ready=bool(blocks))
        node["status"]["addresses"] = [{"type": "InternalIP", "address": each} for each in texts(own)]
        if self.mode == "multi-pool" and cidrs:
            cilium = dumps.cilium_node(name, allocated={"default": cidrs})
        else:
            cilium = dumps.cilium_node(name, *cidrs)
        cilium["spec"]["addresses"] = [{"type": "InternalIP", "ip": each} for each in texts(own)]
        alone = self.mode == "kubernetes" and chance.random() < 0.5
        self.nodes[name] = [node] if alone else [node, cilium]

    def service_ranges(self) -> Iterator[dumps.Object]:
        """Yield what has the ranges of services, if it is not a flag."""
        found = self.taken["the services"] = [self.network(each, -2, 0, 3) for each in self.families]
        cidrs = list(map(str, found))
        if self.chance.random() < 0.5:
            self.flags.append(f"--service-cluster-ip-range={','.join(cidrs)}")
        else:
            metadata = {"name": "kubernetes"}
            api = "networking.k8s.io/v1"
            yield {"apiVersion": api, "kind": "ServiceCIDR", "metadata": metadata, "spec": {"cidrs": cidrs}}

    def balancers(self) -> Iterator[dumps.Object]:
        """Yield a pool of Cilium's load balancers: a CIDR, and a range from-to."""
        family = self.chance.choice(self.families)
        network, first = self.network(family, 0, 3), self.address(family)
        last = first._replace(first=first.first + self.chance.randrange(100))
        self.taken["the balancers"] = [network, *aligned(family, first.first, last.last + 1)]
        blocks = [{"cidr": str(network)}, dict(zip(("start", "stop"), texts([first, last]), strict=True))]
        api, metadata = "cilium.io/v2", {"name": "lb"}
        kind = "CiliumLoadBalancerIPPool"
        yield {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {"blocks": blocks}}

    def services(self) -> Iterator[dumps.Object]:
        """Yield Services with addresses of their own and of a load balancer."""
        for number in range(self.chance.randint(1, 3)):
            own, outer = ([self.address(each) for each in self.families] for _ in range(2))
            self.taken[f"service {number}"] = [*own, *outer]
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"s{number}", "namespace": "default"},
                "spec": {"type": "LoadBalancer", "clusterIP": texts(own)[0], "clusterIPs": texts(own)},
                "status": {"loadBalancer": {"ingress": [{"ip": each} for each in texts(outer)]}},
            }

    def config(self) -> Iterator[dumps.Object]:
        """Yield what has the mode and the ranges."""
        values = {f"enable_ipv{each}": str(each in self.families).lower() for each in (4, 6)}
        if self.mode == "cluster-pool":
            values |= {f"cluster_pool_ipv{each}_cidr": str(RANGES[each]) for each in self.families}
            values |= {f"cluster_pool_ipv{each}_mask_size": str(SIZES[each]) for each in self.families}
        yield dumps.config_map(ipam=self.mode, **values)
        if self.mode == "multi-pool":
            spec = {
                f"ipv{each}": {"cidrs": [str(RANGES[each])], "maskSize": SIZES[each]}
                for each in self.families
            }
            yield {**dumps.pool("default", mask=0, cidrs=()), "spec": spec}
        if self.flags:
            manager = dumps.pod("kube-controller-manager-n0", "n0", namespace="kube-system", hostNetwork=True)
            manager["metadata"]["labels"] = {"component": "kube-controller-manager"}
            manager["spec"]["containers"] = [{"command": ["kube-controller-manager", *self.flags]}]
            yield manager

    def objects(self) -> list[dumps.Object]:
        """Return what kubectl prints now."""
        return [*(each for some in self.nodes.values() for each in some), *self.others, *self.config()]

    def planned(self, names: Iterable[str]) -> str:
        """Return planned nodes as lines of an inventory; some have addresses already."""
        lines = []
        for name in names:
            own = self.taken[name] = [
                self.address(each) for each in self.families if self.chance.random() < 0.3
            ]
            addresses = ", ".join(f'"{each}"' for each in texts(own))
            lines.append(f"- {{name: {name}, planned: true, internalIPs: [{addresses}]}}\n")
        return "".join(lines)


def step(
    world: World, files: dict[str, str], last: Compilation | None, *renumber: str
) -> tuple[Compilation, int]:
    """Compile, and look at each block that neither the lock had nor its node shows; return also their number."""
    given = inputs(files, last.lock, last.files) if last else inputs(files)
    now = compile_cluster(replace(given, consent=parse_consent(renumber=list(renumber))))
    before = {(line.block, line.node) for line in last.plan.lock.lines} if last else set()
    new = [line for line in now.plan.lock.lines if (line.block, line.node) not in before]
    new = [line for line in new if line.block not in world.shown.get(line.node, ())]
    for line in new:
        for whose, some in world.taken.items():
            found = [str(each) for each in some if each.overlaps(line.block)]
            assert not found, f"{line.block} of {line.node} has {found} of {whose}"
    return now, len(new)


def play(world: World, files: dict[str, str]) -> Iterator[int]:
    """Import, plan nodes, let some and others join, and renumber a node; yield how many blocks are new."""
    chance = world.chance
    files |= imported(world.objects()).files
    last, new = step(world, files, None)
    yield new
    planned = [f"p{number}" for number in range(chance.randint(1, 5))]
    files["nodes.yaml"] += world.planned(planned)
    last, new = step(world, files, last)
    yield new
    for name in (*planned[: chance.randint(0, 2)], *(f"q{number}" for number in range(chance.randint(1, 3)))):
        world.join(name, last.plan.lock.lines)
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
    files |= refresh(read(NAME, FOLDER, sources, SCHEMAS)[0], FOLDER, dump_of(world.objects()), Past())
    last, new = step(world, files, last)
    yield new
    held = sorted({line.node for line in last.plan.lock.lines if line.in_use})
    yield step(world, files, last, *held[: chance.randint(1, 2)])[1]


@pytest.mark.parametrize("mode", MODES)
def test_no_new_block_has_an_address_of_others(mode: str) -> None:
    figures: Counter[str] = Counter()
    for number in range(FIRST + MODES.index(mode), FIRST + CLUSTERS, len(MODES)):
        files: dict[str, str] = {}
        world = World(random.Random(number), mode)  # noqa: S311 - a test's choice, the same every time
        try:
            for new in play(world, files):
                figures += Counter({"compiles": 1, "new": new})
        except Refused as refused:
            errors = {
                each.code: each.message for each in refused.diagnostics if each.severity is Severity.ERROR
            }
            assert errors.keys() <= REFUSED, errors
            figures += Counter(errors.keys())
        except AssertionError as problem:
            inventory = "\n".join(f"-- {path}\n{text}" for path, text in files.items())
            pytest.fail(f"cluster {number}, {mode}: {problem}\n{inventory}")
    print(f"\n{mode}: {dict(figures)}")  # noqa: T201 - the figures of a long run
    assert figures["new"] > figures["compiles"]
