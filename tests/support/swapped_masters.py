"""The running cluster of docs/troubleshooting.md: the example `bgp`, of which two masters have each other's podCIDRs, as kubectl prints it.

`python -m tests.support.swapped_masters > dump.json`
"""

from __future__ import annotations

import sys

from tests.support import examples
from tests.support.living import Living


def swapped() -> Living:
    """Return the example `bgp` as it runs, with the specs of the Nodes master-2 and master-3 exchanged."""
    live = Living.of(examples.clusters()["bgp"])
    first, second = live["Node master-2"], live["Node master-3"]
    first["spec"], second["spec"] = second["spec"], first["spec"]
    return live


if __name__ == "__main__":
    sys.stdout.write(swapped().text())
