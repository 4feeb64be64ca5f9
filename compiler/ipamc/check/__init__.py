"""Rules across the inputs: one generator a rule, whose docstring is its entry in the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.check.bgp import check_bgp
from ipamc.check.modes import check_modes
from ipamc.check.multi_pool import check_multi_pool
from ipamc.check.pins import check_pins
from ipamc.check.pools import check_pools
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic


def check(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding that needs neither lock nor plan."""
    yield from check_modes(cluster)
    yield from check_pools(cluster)
    yield from check_pins(cluster)
    yield from check_multi_pool(cluster)
    yield from check_bgp(cluster)
