"""What a lock costs, stage by stage: `python tools/benchmarks/lock.py [NODES]`; 100,000 nodes by default. Best of five, in milliseconds.

First the allocator alone (more of it in `allocator.py`), against its goal of 500 ms for 100,000 newcomers. Then a cluster whose lock has a line for each
of its nodes, and one node more: each stage of a compile from the lock's text to the new one. The goal is 50 ms for what is not reading: reconcile,
allocate and dumps; the sums that go over every node or line are there to be seen.
"""

from __future__ import annotations

import sys

from allocator import MANY, best, cases
from inputs import CLUSTER, as_json, pools
from inputs import nodes as inventory

from ipamc.check import check_plan
from ipamc.lock.file import dumps, load
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Consent
from ipamc.place.allocate.allocate import allocate
from ipamc.place.candidates import assign
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.read.read import read
from ipamc.workspace.disk import assets

TODAY = "2026-11-21"
NO_CONSENT = Consent()


def documents(nodes: int) -> dict[str, bytes]:
    """Return the files of a cluster of ten pools with three block sizes each, room for all and some gaps."""
    files = {"cluster.yaml": CLUSTER, "ippools.yaml": pools(), "nodes.json": as_json(inventory(range(nodes)))}
    return {f"clusters/bench/{name}": text.encode() for name, text in files.items()}


def cluster_of(nodes: int) -> Cluster:
    cluster, _ = read("bench", "clusters/bench", documents(nodes), assets("schemas"))
    return cluster


def lock_of(cluster: Cluster, text: bytes | None = None) -> bytes:
    """Compile a lock, up to its text."""
    lock, _ = load(text, "ipam.lock", cluster, NO_CONSENT, rendered=False)
    wants = assign(cluster)
    reconciled, _ = reconcile(cluster, wants, lock, NO_CONSENT, TODAY, locked=False)
    plan, found = allocate(cluster, wants, reconciled, TODAY)
    assert not found, found[0].message
    return dumps(plan.lock).encode()


def stages(nodes: int) -> list[tuple[str, float]]:
    """Time each stage for one newcomer to a lock of so many lines."""
    text = lock_of(cluster_of(nodes))
    cluster = cluster_of(nodes + 1)
    lock, _ = load(text, "ipam.lock", cluster, NO_CONSENT, rendered=False)
    wants = assign(cluster)
    reconciled, _ = reconcile(cluster, wants, lock, NO_CONSENT, TODAY, locked=False)
    plan, _ = allocate(cluster, wants, reconciled, TODAY)
    before, after = text.splitlines(), dumps(plan.lock).encode().splitlines()
    assert len(after) == len(before) + 1
    assert set(before) < set(after)
    return [
        (
            "load: the lock's text to lines, checked",
            best(lambda: load(text, "ipam.lock", cluster, NO_CONSENT, rendered=False)),
        ),
        ("assign: every node to its pools", best(lambda: assign(cluster))),
        (
            "reconcile: every line against its node",
            best(lambda: reconcile(cluster, wants, lock, NO_CONSENT, TODAY, locked=False)),
        ),
        ("allocate: one newcomer", best(lambda: allocate(cluster, wants, reconciled, TODAY))),
        ("dumps: every line to text", best(lambda: dumps(plan.lock))),
        ("check_plan: rules over the plan", best(lambda: list(check_plan(plan, plan.lock)))),
    ]


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    name, cluster, reconciled = cases(nodes)[0]
    spent = best(lambda: allocate(cluster, (), reconciled, TODAY))
    print(f"{spent:8.1f} ms  {name} (goal: 500)")
    print(f"\none newcomer to a lock of {nodes:,} lines")
    table = stages(nodes)
    for stage, spent in table:
        print(f"{spent:8.1f} ms  {stage}")
    counted = sum(spent for stage, spent in table if stage.startswith(("reconcile", "allocate", "dumps")))
    print(f"{counted:8.1f} ms  reconcile, allocate and dumps together (goal: 50)")


if __name__ == "__main__":
    main()
