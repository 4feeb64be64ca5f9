"""The clusters that histories begin with: one for each way in which blocks are handed out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.api import Object
from tests.support.fleet import cluster, pool


@dataclass(frozen=True)
class Mode:
    """A kind of cluster. Each has two racks with a pool each, of eight blocks."""

    name: str
    ipam: str
    """Cilium's name of the mode."""
    since: tuple[int, int] = (1, 12)
    pinning: str = ""
    adopts: bool = False
    """Nodes that nobody listed get blocks from the operator."""

    @property
    def multi_pool(self) -> bool:
        """Agents ask for addresses of pools, and get blocks one by one."""
        return self.ipam == "multi-pool"

    @property
    def hands_out(self) -> bool:
        """Whether the operator hands out blocks."""
        return self.multi_pool or self.adopts

    @property
    def one_block(self) -> bool:
        """A node has the block that ipamc gave it, and no other."""
        return not self.multi_pool

    def documents(self) -> list[Object]:
        """Return Cluster and pools."""
        ipam: dict[str, Any] = {"pinning": self.pinning} if self.pinning else {}
        pools = [
            pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 27}, nodeSelector='rack == "a"'),
            pool("second", ipv4={"cidrs": ["10.2.0.0/24"], "blockSize": 27}, nodeSelector='rack == "b"'),
        ]
        if self.adopts:
            ipam = {"operator": "adopt"}
            pools.append(pool("spare", ipv4={"cidrs": ["10.9.0.0/25"], "blockSize": 27}, unlisted=True))
        return [cluster(self.ipam, cilium={"managedBy": "none"}, ipam=ipam), *pools]


MODES = {
    mode.name: mode
    for mode in (
        Mode("adopt", "cluster-pool", adopts=True),
        Mode("pool", "multi-pool", since=(1, 15), pinning="pool"),
        Mode("none", "multi-pool", since=(1, 15), pinning="none"),
        Mode("node", "multi-pool", since=(1, 15), pinning="node"),
        Mode("bystander", "cluster-pool"),
        Mode("kubernetes", "kubernetes"),
        Mode("crd", "crd"),
    )
}
