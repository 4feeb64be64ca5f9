"""A pool has room for so many nodes as `ipamc show` says: they get blocks when they join, and one more does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.diagnostics import Refused, Severity
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, compile_cluster, load_cluster
from ipamc.review.shown_pools import Choice, shown
from tests.support import depth
from tests.support.imports import NAME, inputs


class Site(Struct, frozen=True, kw_only=True):
    """A cluster, how many nodes it had, which of them left, and how long ago."""

    mode: str
    both: bool
    """IPv6, too."""
    size: int
    per_node: int
    reserved: int
    """The number of an address of the range, or -1."""
    pinned: bool
    nodes: int
    left: int
    days: int
    """Of quarantine."""
    ago: int
    """Days since they left."""

    def files(self, nodes: list[str]) -> dict[str, str]:
        reserved = [f"10.0.0.{self.reserved}/32"] if self.reserved >= 0 else []
        v6 = '\n  ipv6: {cidrs: ["fd00::/60"], blockSize: 64}' if self.both else ""
        pins = (
            f"\n  pins: {{pinned: [10.0.0.{(1 << (32 - self.size)) * 2}/{self.size}]}}" if self.pinned else ""
        )
        multi = self.mode == "multi-pool"
        return {
            "cluster.yaml": f"""\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: {NAME}}}
spec:
  cilium: {{version: "1.18", managedBy: helm}}
  ipam: {{mode: {self.mode}{", pinning: node" if multi else ""}}}
  ipFamilies: [IPv4{", IPv6" if self.both else ""}]
  quarantineDays: {self.days}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [10.0.0.0/25, 10.0.0.128/26], blockSize: {self.size}}}{v6}
  blocksPerNode: {self.per_node if multi else 1}
  reserved: {reserved}{pins}
""",
            "nodes.yaml": "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n"
            + "".join(f"- {{name: {name}, planned: true}}\n" for name in nodes)
            + ("" if nodes else "[]\n"),
        }


def compiled(site: Site, nodes: list[str], lock: str | None, today: str) -> Compilation:
    consent = Consent(leave=frozenset({"all"}))
    return compile_cluster(replace(inputs(site.files(nodes), lock), today=today, consent=consent))


sites = st.builds(
    Site,
    mode=st.sampled_from(["cluster-pool", "multi-pool"]),
    both=st.booleans(),
    size=st.sampled_from([27, 28]),
    per_node=st.sampled_from([1, 2]),
    reserved=st.integers(-1, 200),
    pinned=st.booleans(),
    nodes=st.integers(1, 5),
    left=st.integers(0, 4),
    days=st.integers(0, 3),
    ago=st.integers(0, 4),
)


@settings(max_examples=depth.examples(60))
@given(sites)
def test_so_many_nodes_fit_and_no_more(site: Site) -> None:
    names = [f"n{number}" for number in range(site.nodes)]
    stayed = names[min(site.left, site.nodes - 1) :]
    try:
        first = compiled(site, names, None, "2026-11-01")
    except Refused:  # they do not fit themselves
        return
    then = compiled(site, stayed, first.lock, "2026-11-10")
    today = f"2026-11-{10 + site.ago}"
    cluster, lock = load_cluster(replace(inputs(site.files(stayed), then.lock), today=today))
    (room,) = {pool.room for pool in shown(cluster, lock, Choice(), today).pools}
    newcomers = [f"new-{number:02}" for number in range(room + 1)]
    full = compiled(site, [*stayed, *newcomers[:room]], then.lock, today)
    assert all(full.plan.held.get(name) for name in newcomers[:room])
    with pytest.raises(Refused) as refused:
        compiled(site, [*stayed, *newcomers], then.lock, today)
    codes = {each.code for each in refused.value.diagnostics if each.severity is Severity.ERROR}
    assert codes <= {"IPC0303", "IPC0305"}, codes  # no room
