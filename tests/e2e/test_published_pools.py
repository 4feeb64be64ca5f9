"""A CiliumPodIPPool that is published, and changes: what the operator makes of every edit, and that what the compiler accepts gives no address to two nodes."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, POOLS, Api, Object
from tests.e2e.objects import allocated, asks, cilium_node, ip_pool, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import Program, until
from tests.e2e.proof import at_rest
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site, dumped
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
CONFIG = {"ipam": "multi-pool", "enable-ipv4": "true", "enable-ipv6": "false"}
NODES = ("n1", "n2", "n3")
BLOCKS = ("10.1.0.0/26", "10.1.0.64/26", "10.1.0.128/26")
RANGE = "10.1.0.0/20"


@pytest.fixture(autouse=True)
def _since_1_15(operator: Operator) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode was run from Cilium 1.15 on")


# The operator, without the compiler.


def publish(api: Api, *cidrs: str) -> None:
    """Change the pool's CIDRs, and let a running operator read them."""
    api.change(f"{POOLS}/default", lambda whole: whole["spec"]["ipv4"].update(cidrs=list(cidrs)))
    time.sleep(1)


def three_nodes(api: Api, *cidrs: str) -> None:
    """Make a pool, and three nodes that have a block each and ask for no more."""
    api.create(POOLS, ip_pool("default", *cidrs, size=26))
    for name, block in zip(NODES, BLOCKS, strict=True):
        seed = {"allocated": [{"pool": "default", "cidrs": [block]}], **asks("default", 8)}
        api.create(CILIUM_NODES, cilium_node(name, pools=seed))


def newcomers(api: Api, program: Program, *names: str, pool: str = "default") -> None:
    """Let nodes join that ask for 8 addresses each, one after the other."""
    for name in names:
        api.create(CILIUM_NODES, cilium_node(name, pools=asks(pool, 8)))
        program.until(lambda name=name: answered(api, name), f"the operator answers {name}")  # type: ignore[misc]


def answered(api: Api, name: str) -> bool:
    """Tell whether the operator gave a node a block, or an error."""
    node = api.get(f"{CILIUM_NODES}/{name}")
    return bool(allocated(node) or verdict(node))


def holders(api: Api) -> dict[str, list[str]]:
    """Return the nodes of every block that the CiliumNodes show."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, node in sorted(api.items(CILIUM_NODES).items()):
        for block in allocated(node):
            found[block].append(name)
    return found


def shared(api: Api) -> dict[str, list[str]]:
    """Return the blocks that two nodes have, and those that overlap another one."""
    found = holders(api)
    networks = sorted(map(ip_network, found), key=lambda each: (each.version, each))
    assert not any(one.version == other.version and one.overlaps(other) for one, other in pairwise(networks))
    return {block: names for block, names in found.items() if len(names) > 1}


Edits = dict[str, list[tuple[str, ...]]]
SAFE: Edits = {
    "append": [(RANGE, "10.2.0.0/24")],
    "front": [("10.2.0.0/24", RANGE)],
    "append twice": [(RANGE, "10.1.16.0/20"), (RANGE, "10.1.16.0/20", "10.2.0.0/24")],
    "reorder": [(RANGE, "10.2.0.0/24"), ("10.2.0.0/24", RANGE)],
    "take back what was appended": [(RANGE, "10.2.0.0/24"), (RANGE,)],
}
EDITED: Edits = {
    "widen": [("10.1.0.0/19",)],
    "widen and back": [("10.1.0.0/19",), (RANGE,)],
    "reserve": [("10.1.0.0/21", "10.1.9.0/24", "10.1.10.0/23", "10.1.12.0/22")],
    "shrink": [("10.1.0.0/21",)],
    "split": [("10.1.0.0/21", "10.1.8.0/21")],
}


@pytest.mark.parametrize("edit", SAFE)
def test_what_is_appended_is_safe_in_every_minor(api: Api, operator: Operator, edit: str) -> None:
    """Also in front, or in another order: the operator appends what it did not have."""
    with operator.running(CONFIG) as program:
        three_nodes(api, RANGE)
        at_rest(api, operator, CONFIG, handled=True)
        for cidrs in SAFE[edit]:
            publish(api, *cidrs)
        newcomers(api, program, "x", "y")
    assert shared(api) == {}
    assert [holders(api)[block] for block in BLOCKS] == [["n1"], ["n2"], ["n3"]]


@shows("IPC0538")
@pytest.mark.parametrize("edit", EDITED)
def test_a_range_that_is_edited_is_an_empty_book_before_1_19(api: Api, operator: Operator, edit: str) -> None:
    """`updateCIDRSets` makes a new set for a CIDR that it did not have. Up to 1.18 nothing marks in it what nodes have, before they are read again at the next start."""
    with operator.running(CONFIG) as program:
        three_nodes(api, RANGE)
        at_rest(api, operator, CONFIG, handled=True)
        for cidrs in EDITED[edit]:
            publish(api, *cidrs)
        newcomers(api, program, "x", "y")
        twice = {} if operator.version >= (1, 19) else {BLOCKS[0]: ["n1", "x"], BLOCKS[1]: ["n2", "y"]}
        assert shared(api) == twice
        assert not any(verdict(node) for node in api.items(CILIUM_NODES).values())


@pytest.mark.parametrize("edit", EDITED)
@pytest.mark.parametrize("restart", ["after", "between"])
def test_an_operator_that_starts_reads_all_nodes_first(
    api: Api, operator: Operator, edit: str, restart: str
) -> None:
    """A restart restores the books, before or after the edit was seen: only a running operator loses them."""
    three_nodes(api, RANGE)
    with operator.running(CONFIG) as program:
        at_rest(api, operator, CONFIG, handled=True)
        if restart == "after":
            publish(api, *EDITED[edit][-1])
        program.stop(signal.SIGKILL)
    if restart == "between":
        publish(api, *EDITED[edit][-1])
    with operator.running(CONFIG) as program:
        newcomers(api, program, "x", "y")
    assert shared(api) == {}


@shows("IPC0538")
def test_the_operator_crashes_where_another_range_than_the_last_leaves_before_1_18(
    api: Api, operator: Operator
) -> None:
    """`slices.Delete` shifts what the loop around it goes on with."""
    with operator.running(CONFIG) as program:
        three_nodes(api, "10.2.0.0/24", RANGE)
        at_rest(api, operator, CONFIG, handled=True)
        publish(api, RANGE)
        if operator.version < (1, 18):
            until(lambda: not program.running, "the operator crashes")
            assert "nil pointer dereference" in program.said()
        else:
            newcomers(api, program, "x", "y")
            assert shared(api) == {}


@shows("IPC0538")
def test_of_two_neighbours_that_leave_one_stays_in_1_18(api: Api, operator: Operator) -> None:
    if operator.version < (1, 18):
        pytest.skip("the operator crashes")
    with operator.running(CONFIG) as program:
        three_nodes(api, RANGE, "10.2.0.0/26", "10.3.0.0/26")
        at_rest(api, operator, CONFIG, handled=True)
        publish(api, RANGE)
        ask = cilium_node("x", pools=asks("default", 61 * 62 + 1))
        api.create(CILIUM_NODES, ask)
        program.until(lambda: answered(api, "x"), "the operator answers x")
    assert ("10.3.0.0/26" in holders(api)) == (operator.version < (1, 19))


@shows("IPC0540")
def test_a_family_that_comes_or_goes_waits_for_a_restart(api: Api, operator: Operator) -> None:
    dual = {**CONFIG, "enable-ipv6": "true"}
    both: Object = {"requested": [{"pool": "default", "needed": {"ipv4-addrs": 8, "ipv6-addrs": 8}}]}

    def change(whole: Object) -> None:
        whole["spec"]["ipv6"] = {"cidrs": ["fd00::/112"], "maskSize": 120}
        whole["spec"]["ipv4"]["cidrs"].append("10.2.0.0/24")

    with operator.running(dual) as program:
        three_nodes(api, RANGE)
        at_rest(api, operator, dual, handled=True)
        api.change(f"{POOLS}/default", change)
        program.until(
            lambda: "cannot change IPv6 mask size in existing pool" in program.said(), "it is refused"
        )
        api.create(CILIUM_NODES, cilium_node("x", pools=both))
        program.until(lambda: "pool empty" in verdict(api.get(f"{CILIUM_NODES}/x")), "x gets no IPv6")
    with operator.running(dual) as program:
        program.until(lambda: "fd00::/120" in holders(api), "x gets IPv6")
    assert shared(api) == {}


# What the compiler accepts.


def site_of(api: Api, operator: Operator, work: Path, *pools: Object, **ipam: object) -> Site:
    """Make a multi-pool cluster of three nodes, and compile it."""
    documents = [
        cluster("multi-pool", ipam={"pinning": "none", **ipam}, cilium=NONE),
        *(pools or [default(RANGE)]),
        inventory([{"name": name} for name in NODES]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    site.compile()
    return site


def default(*cidrs: str, **spec: object) -> Object:
    """Make the pool `default`."""
    return pool("default", ipv4={"cidrs": list(cidrs), "blockSize": 26}, **spec)


def rewrite(site: Site, *cidrs: str, reserved: Iterable[str] = ()) -> None:
    """Write the pool `default` with other ranges."""

    def change(document: Object) -> None:
        if document["kind"] == "IPPool" and document["metadata"]["name"] == "default":
            document["spec"] = default(*cidrs, reserved=list(reserved))["spec"]

    site.edit(change)


def dump(site: Site) -> None:
    """Put the CiliumNodes of the live cluster into the input, as `kubectl get ciliumnodes -o json` gives them."""
    site.write("zz-ciliumnodes.yaml", *site.api.items(CILIUM_NODES).values())


def agents(site: Site) -> None:
    """Apply the seeds, and let the agents ask for what they have."""
    site.api.applied(dumped(site.rendering("seeds/*.yaml")))
    for name in NODES:
        site.api.change(
            f"{CILIUM_NODES}/{name}",
            lambda whole: whole["spec"]["ipam"]["pools"].update(asks("default", 8)),
        )


def given_from(api: Api, cidr: str) -> bool:
    """Tell whether a node has something of a CIDR."""
    return any(ip_network(block).overlaps(ip_network(cidr)) for block in holders(api))


EDITS: dict[str, Callable[[Site], None]] = {
    "append": lambda site: rewrite(site, RANGE, "10.2.0.0/24"),
    "front": lambda site: rewrite(site, "10.3.0.0/24", RANGE, "10.2.0.0/24"),
    "reorder": lambda site: rewrite(site, "10.2.0.0/24", RANGE, "10.3.0.0/24"),
    "widen": lambda site: rewrite(site, "10.2.0.0/24", "10.1.0.0/19", "10.3.0.0/24"),
    "reserve": lambda site: rewrite(
        site, "10.2.0.0/24", "10.1.0.0/19", "10.3.0.0/24", reserved=["10.1.24.0/24"]
    ),
    "reserve in use": lambda site: rewrite(
        site, "10.2.0.0/24", "10.1.0.0/19", "10.3.0.0/24", reserved=["10.1.8.0/24"]
    ),
    "shrink": lambda site: rewrite(site, RANGE, "10.2.0.0/24", "10.3.0.0/24"),
    "shrink in use": lambda site: rewrite(site, "10.1.8.0/21", "10.2.0.0/24", "10.3.0.0/24"),
    "free the reserved": lambda site: rewrite(site, "10.2.0.0/24", "10.1.0.0/19", "10.3.0.0/24"),
}
"""Edits one after the other, each of the ranges as the one before left them."""
RESERVED = {"reserve": "10.1.24.0/24", "reserve in use": "10.1.8.0/24"}
REFUSED = {
    "reserve": (1, 15),
    "reserve in use": (1, 19),
    "shrink": (1, 19),
    "shrink in use": (9, 9),
}
"""The first minor that accepts an edit with the CiliumNodes in the input; without them none does."""


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_edits_that_are_accepted_give_nothing_to_two_nodes(
    api: Api, operator: Operator, tmp_path: Path, *, restart: bool
) -> None:
    """Every edit is compiled and, where it is accepted, applied; then two nodes join, and the operator may have restarted between."""
    site = site_of(api, operator, tmp_path)

    def steps() -> Iterator[str]:
        for name, edit in EDITS.items():
            edit(site)
            dump(site)
            if name in REFUSED:
                (site.folder / "zz-ciliumnodes.yaml").unlink()
                site.compile(code=1)
                dump(site)
            accepted = operator.version >= REFUSED.get(name, (1, 15))
            site.compile(code=0 if accepted else 1)
            if accepted:
                site.apply()
                time.sleep(1)
                yield name

    started = False
    for step in _running(operator, site, steps(), restart=restart):
        if not started:
            started = True
            at_rest(api, operator, site.config, handled=True)
        name, program = step
        before = holders(api)
        newcomers(api, program, f"x-{name.replace(' ', '-')}", f"y-{name.replace(' ', '-')}")
        assert shared(api) == {}
        assert before.items() <= holders(api).items()
        if name in RESERVED:
            assert not given_from(api, RESERVED[name])
    assert started


def _running(
    operator: Operator, site: Site, steps: Iterator[str], *, restart: bool
) -> Iterator[tuple[str, Program]]:
    """Take steps while an operator runs; with `restart`, each with another one that starts after the step before."""
    with operator.running(site.config) as program:
        site.apply()
        agents(site)
        at_rest(site.api, operator, site.config, handled=True)
        for name in steps:
            if restart:
                program.stop(signal.SIGKILL)
                break
            yield name, program
        else:
            return
    while True:
        with operator.running(site.config) as program:
            yield name, program
            name = next(steps, "")
            if not name:
                return


def test_what_is_rendered_stays_while_nothing_is_edited(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Compile after compile gives the same bytes, and an apply changes nothing."""
    site = site_of(api, operator, tmp_path)
    rewrite(site, "10.0.0.0/24", "10.1.0.0/19")
    site.compile()
    first = (site.rendered / "cilium/ippools.yaml").read_bytes()
    site.compile()
    assert (site.rendered / "cilium/ippools.yaml").read_bytes() == first
    site.apply()
    version = api.get(f"{POOLS}/default")["metadata"]["resourceVersion"]
    site.apply()
    assert api.get(f"{POOLS}/default")["metadata"]["resourceVersion"] == version
    assert api.get(f"{POOLS}/default")["spec"]["ipv4"]["cidrs"] == [RANGE, "10.0.0.0/24", "10.1.16.0/20"]


# autoCreate.


@shows("IPC0539")
def test_a_pool_of_the_flag_never_changes_until_a_manifest_takes_it_over(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(api, operator, tmp_path, autoCreate=["default"])
    with operator.running(site.config):
        site.apply()
        until(lambda: "default" in api.items(POOLS), "the operator creates the pool")
    rewrite(site, "10.1.0.0/19")
    compile_without(site, "IPC0539")
    with operator.running(site.config):
        at_rest(api, operator, site.config, handled=True)
    assert api.get(f"{POOLS}/default")["spec"]["ipv4"]["cidrs"] == [RANGE]


def test_a_manifest_takes_over_a_pool_of_the_flag(api: Api, operator: Operator, tmp_path: Path) -> None:
    """The same CIDRs are no conflict. The first change is one, because the operator owns them; force settles it once, and the flag leaves the pool alone."""
    site = site_of(api, operator, tmp_path, autoCreate=["default"])
    flagged = site.config
    with operator.running(flagged) as program:
        site.apply()
        until(lambda: "default" in api.items(POOLS), "the operator creates the pool")
        agents(site)
        at_rest(api, operator, flagged, handled=True)
        site.edit(
            lambda document: (
                document["spec"]["ipam"].pop("autoCreate") if document["kind"] == "Cluster" else None
            )
        )
        assert "IPC0540" in site.compile()
        site.apply()
        rewrite(site, "10.1.0.0/19")
        site.compile()
        manifest = dumped(site.rendering("cilium/ippools.yaml"))
        assert 'conflict with "cilium-operator' in api.apply(manifest).stderr
        api.applied(manifest, "--force-conflicts")
        site.apply()
        newcomers(api, program, "x", "y")
    with operator.running(flagged):
        at_rest(api, operator, flagged, handled=True)
    assert api.get(f"{POOLS}/default")["spec"]["ipv4"]["cidrs"] == [RANGE, "10.1.16.0/20"]
    assert shared(api) == {}


# pinning: node.


@shows("IPC0537")
def test_a_further_pool_is_given_out_on_demand_and_own_pools_stay_exact(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(
        api,
        operator,
        tmp_path,
        default("10.1.0.0/24"),
        pool("storage", ipv4={"cidrs": ["10.2.0.0/24"], "blockSize": 28}, priority=-1),
        pinning="node",
    )
    with operator.running(site.config) as program:
        site.apply()
        for name in NODES:
            pools = {
                "requested": [
                    {"pool": f"default.{name}", "needed": {"ipv4-addrs": 100}},
                    {"pool": "storage", "needed": {"ipv4-addrs": 20 if name == "n1" else 1}},
                ]
            }
            api.create(CILIUM_NODES, cilium_node(name, pools=pools))
            program.until(lambda name=name: answered(api, name), f"the operator answers {name}")  # type: ignore[misc]
        live = at_rest(api, operator, site.config, handled=True)
    own = {name: allocated(node)[0] for name, node in live.items()}
    assert own == dict(zip(NODES, BLOCKS, strict=True))
    further = {
        name: [block for block in allocated(node) if block[:4] == "10.2"] for name, node in live.items()
    }
    assert {name: len(blocks) for name, blocks in further.items()} == {"n1": 2, "n2": 1, "n3": 1}
    assert shared(api) == {}
