"""Real kubelets and containerd: what scenarios with played ones take for granted."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.kubelet import LabWithKubelets
from tests.e2e.agents.lab import lost
from tests.e2e.api import NODES


def test_a_kubelet_registers_its_node_once(begin: Begin) -> None:
    """After a Node was deleted it must start anew; the pods go on meanwhile."""
    lab = begin(documents("kubernetes", "ab"), "ab", kind=LabWithKubelets)
    assert isinstance(lab, LabWithKubelets)
    lab.install()
    lab.start_pods("a1", "b1")
    kubelet = lab.machine("b").kubelet
    assert kubelet
    with lab.pinging("a1", "b1") as pings:
        lab.api.delete(f"{NODES}/b")
        kubelet.until(
            lambda: kubelet.said().count('nodes \\"b\\" not found') > 10, "the kubelet misses its Node"
        )
        assert "b" not in lab.names
        lab.kubelets(["b"])
        assert not lab.api.get(f"{NODES}/b")["spec"].get("podCIDRs")
    assert not lost(pings)


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ["kubernetes", "pinned"])
def test_pods_keep_their_addresses_whatever_restarts(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode), kind=LabWithKubelets)
    assert isinstance(lab, LabWithKubelets)
    lab.install()
    lab.start_pods("a1", "a2", "b1", "c1")
    lab.as_locked()
    with lab.undisturbed("a1", "b1"):
        lab.agents(lab.nodes)
        for name in lab.nodes:
            lab.machine(name).start_containerd()
        lab.kubelets(list(lab.nodes))
        lab.ready()
    lab.start_pods("c2")
    lab.as_locked()
