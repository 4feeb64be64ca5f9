"""Clusters with Calico, dumped in each form that Calico and kubectl print: nodes keep their blocks, and what is odd is said.

The exports below `calico/` have the structure and the names of fields of Calico 3.26 (crd-v1, calicoctl), 3.27
(etcd) and 3.31 (v3); nodes, pods and addresses are made up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamc.importing.bring_in import Imported, Options, bring_in
from ipamc.model.plan import Origin
from ipamc.workspace.dump import load_dump
from tests.support.imports import compiled

FOLDER = Path(__file__).parent / "calico"

EXPORTS: dict[str, tuple[tuple[str, ...], dict[str, str], list[str]]] = {
    "crd.projectcalico.org/v1 by kubectl": (
        ("kubectl-crd-v1.yaml",),
        {
            "control-1": "10.20.0.64/26",
            "worker-1": "10.20.1.128/26 10.20.7.0/26",
            "worker-2": "10.20.64.0/26 10.244.171.128/26",
            # 10.20.65.64/26 is empty and being released, 10.20.66.0/26 is being claimed.
            "worker-3": "10.20.64.192/26 10.20.66.0/26",
        },
        [
            "IPC0856: node worker-3 uses 1 address from blocks of other nodes: 10.20.1.137 of worker-1 for shop/search-7c6d8b5f4-zx81q",
            "IPC0857: 4 addresses belong to host tunnels, not to pods: ipipTunnelAddress",
            "IPC0864: 1 block is being released and stays reserved: 10.20.65.64/26 of worker-3",
            "IPC0858: 10.20.64.60/30 of IPReservation routers overlaps 10.20.64.0/26 of node worker-2; Cilium may give these addresses to pods",
            "IPC0862: Calico can still create blocks and borrow addresses, so this dump will go out of date",
        ],
    ),
    "projectcalico.org/v3 by kubectl, dual stack": (
        ("kubectl-v3.json",),
        {
            "edge-1": "10.64.12.64/26 fd00:64:0:5::40/122",
            "edge-2": "10.64.200.0/26 10.65.0.128/26 fd00:64:0:9::80/122",
            "edge-3": "10.64.77.192/26 10.66.1.0/26",
            "edge-4": "10.65.3.0/26",
        },
        [
            "IPC0843: pool tenant-x has namespaceSelector \"tenant == 'x'\", so ipamc writes it as disabled",
            "IPC0854: 1 block of missing nodes has addresses in use and stays reserved: edge-0",
            "IPC0855: 10.64.99.0/26 belongs to no node, so ipamc reserves it; 1 address in use: 10.64.99.5 by default/lonely-0 on edge-3",
            "IPC0857: 4 addresses belong to host tunnels, not to pods: vxlanTunnelAddress, vxlanV6TunnelAddress",
            "IPC0845: pool public is not for pods; excludedCIDRs gets 198.51.100.0/26",
            "IPC0844: 10.64.128.0/20 of pool twice overlaps 10.64.0.0/16 of pool pods-v4, which keeps the shared addresses",
            "IPC0818: 2 nodes wait for a block: edge-3, edge-4",
        ],
    ),
    "calicoctl datastore migrate export, with etcd": (
        ("etcd-export.yaml", "etcd-nodes.json"),
        {"app-1": "10.30.16.64/26", "db-1": "10.30.0.16/28", "db-2": "10.30.0.32/28"},
        [
            "IPC0856: node db-2 uses 1 address from blocks of other nodes: 10.30.0.20 of db-1 for db/pg-1",
            "IPC0858: 10.30.0.16/29 of IPReservation printers overlaps 10.30.0.16/28 of node db-1; Cilium may give these addresses to pods",
            "IPC0862: Calico can still create blocks and borrow addresses, so this dump will go out of date",
            "IPC0835: only the addresses of these kinds are read: 3 Node.projectcalico.org",
        ],
    ),
    "calicoctl get -o yaml, and blocks by kubectl": (
        ("calicoctl-ippool.yaml", "calicoctl-ipreservation.yaml", "calicoctl-blocks.yaml"),
        {"gpu-1": "10.90.64.32/27", "std-1": "10.90.3.0/26"},
        [
            "IPC0856: node std-2 uses 2 addresses from blocks of other nodes: 10.90.3.9 of std-1 for web/b-0, 10.90.3.10 of std-1 for vxlanTunnelAddress",
            "IPC0857: 2 addresses belong to host tunnels, not to pods: vxlanTunnelAddress",
            "IPC0858: 10.90.64.32/32 of IPReservation gateways overlaps 10.90.64.32/27 of node gpu-1; Cilium may give these addresses to pods",
            "IPC0862: Calico can still create blocks and borrow addresses, so this dump will go out of date",
            "IPC0818: 1 node waits for a block: std-2",
        ],
    ),
}


def imported(*names: str) -> Imported:
    dump, warnings = load_dump([str(FOLDER / name) for name in names])
    assert not warnings
    return bring_in("lab", dump, Options(cilium=(1, 19), managed_by="helm"))


@pytest.mark.parametrize("export", EXPORTS)
def test_nodes_keep_their_blocks(export: str) -> None:
    names, blocks, _ = EXPORTS[export]
    came = imported(*names)
    result = compiled(came.files)
    held: dict[str, str] = {}
    for line in result.plan.lock.lines:
        if result.plan.origins[line.block] is Origin.ADOPTED:
            held[line.node] = f"{held.get(line.node, '')} {line.block}".strip()
    assert held == blocks
    again = compiled(came.files, result)
    assert (again.lock, again.files) == (result.lock, result.files)


@pytest.mark.parametrize("export", EXPORTS)
def test_what_is_odd_is_said(export: str) -> None:
    names, _, findings = EXPORTS[export]
    assert [f"{finding.code}: {finding.message}" for finding in imported(*names).findings] == findings


POOLS = """\
# yaml-language-server: $schema=../.schemas/ippool.schema.json
# Calico IPPools pods-v4, pods-v4.more, pods-v6
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods-v4}
spec:
  ipv4: {cidrs: [10.64.0.0/16, 10.65.0.0/16], blockSize: 26}
  ipv6: {cidrs: ["fd00:64::/48"], blockSize: 122}
  reserved: [10.64.0.0/28, 10.64.31.64/26, 10.64.99.0/26]
---
# Calico IPPool tenant-x: it has a namespaceSelector
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: tenant-x}
spec:
  ipv4: {cidrs: [10.66.0.0/20], blockSize: 26}
  disabled: true
"""


def test_pools_of_both_families_are_one() -> None:
    assert imported("kubectl-v3.json").files["ippools.yaml"] == POOLS


def test_an_export_that_ends_before_the_blocks_is_cut_off(tmp_path: Path) -> None:
    from ipamc.model.diagnostics import Refused

    text = (FOLDER / "etcd-export.yaml").read_text()
    (tmp_path / "cut.yaml").write_text(text[: text.rindex("===")])
    with pytest.raises(Refused) as refused:
        imported(str(tmp_path / "cut.yaml"), "etcd-nodes.json")
    assert [finding.code for finding in refused.value.diagnostics] == ["IPC0801"]
