"""A cluster, a plan or rendered files in, findings out.

Rules change nothing and choose no block. Each rule is a function whose docstring is its catalogue entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.check.bgp import check_bgp
from ipamc.check.modes import check_modes
from ipamc.check.multi_pool import check_multi_pool
from ipamc.check.pins import check_pins
from ipamc.check.pods import check_pods
from ipamc.check.pools import check_pools
from ipamc.check.usage import check_usage
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic


def check(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield the findings that need neither lock nor plan."""
    yield from check_modes(cluster)
    yield from check_pools(cluster)
    yield from check_pins(cluster)
    yield from check_multi_pool(cluster)
    yield from check_pods(cluster)
    yield from check_usage(cluster)
    yield from check_bgp(cluster)
