"""ipamc compiles IP pools, a node inventory and a lock into manifests that Cilium accepts.

`pipeline.compile_cluster` is the data flow. These are the rooms, from top to bottom. A module imports only
from rooms below its own, and only workspace/ does I/O; a test checks both.

    cli/           verbs, options, exit codes; prints. cli/ci/: what pipelines call
    workspace/     clusters on the disk and in commits; files, git, kubectl, HTTP, processes, the clock
    report/        findings, plans and tables as text
    review/        questions about a plan: what changes (diff/), why a node has its block, who has an address
    importing/     dumps and plans to the first files of a cluster
    catalogue      every rule by its code, with its example
    pipeline       the whole compiler in one function
    render/        plan to objects to YAML, verified. render/targets/: one module for each kind of manifest
    place/         candidates, then reconcile (lock against inventory), then allocate (new blocks)
    check/         rules on the inputs, on the plan, and on what was published
    assertions/    tests of a cluster: what must hold of its blocks
    lock/          the lock: format, rules, consent, look-up, utilisation, merges
    read/          text to model. read/syntax/: text to documents; read/kinds/: one module for each dialect
    law/           what may become of a lock's lines; the checker that needs no other room
    model/         values that all rooms share. model/selector/; model/cilium/: what each version does
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

try:
    from ipamc._version import __version__
except ImportError:  # a checkout that was not installed
    __version__ = "0.0.0"

__all__ = ["__version__", "on_demand"]


class _OnDemand:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def on_demand(package: str, *names: str) -> list[_OnDemand]:
    """Bind modules of a package that few runs need to their names there, and return them.
    Who uses one writes `from PACKAGE import NAME`. It is imported when it is first asked for something.
    """
    found = [_OnDemand(f"{package}.{name}") for name in names]
    vars(sys.modules[package]).update(zip(names, found, strict=True))
    return found
