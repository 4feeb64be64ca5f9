"""What our rules keep from the servers: marks for the tests that send it all the same, and a compile with a rule taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from ipamc.model.diagnostics import Diagnostic, Log, Refused
from ipamc.pipeline import compile_cluster
from ipamc.workspace import output
from ipamc.workspace.locked_folder import lock_folder
from ipamc.workspace.source import Disk
from tests.e2e.site import Site

Test = TypeVar("Test", bound=Callable[..., None])

SHOWN: dict[str, list[str]] = {}
"""Tests by the code of the rule whose reason they show."""

NO_SERVER_HERE = {
    "IPC0228": "it speaks of fields that ipamc alone reads",
    "IPC0546": "it speaks of fields that ipamc alone reads",
    "IPC0212": "its bounds are those of Calico's validation and of node-ipam-controller, neither of which runs here",
    "IPC0932": "it is about several minors in one cluster; one operator runs here",
    "IPC0826": "node-ipam-controller does not run here",
    "IPC0827": "node-ipam-controller does not run here",
    "IPC0573": "it is about what nothing is rendered for",
    "IPC0810": "it is about what a dump lacks",
    "IPC0829": "no managed cluster runs here",
    "IPC0830": "it is about what a dump lacks",
    "IPC0915": "it is about networks that ipamc does not render",
    "IPC0936": "no ClusterMesh runs here",
    "IPC0937": "one cluster runs here",
    "IPC0854": "Calico does not run here",
    "IPC0558": "no cloud with a table of routes runs here",
    "IPC0857": "Calico does not run here",
    "IPC0861": "Calico does not run here",
    "IPC0868": "Calico does not run here",
}
"""Rules about what a server does that is not among those of these tests, and which."""


def shows(*codes: str) -> Callable[[Test], Test]:
    """Mark a test: it shows that what these rules refuse is refused by a server, or what it silently does."""

    def mark(test: Test) -> Test:
        for code in codes:
            SHOWN.setdefault(code, []).append(test.__name__)
        return test

    return mark


def compile_without(site: Site, *codes: str) -> None:
    """Refuse to compile a cluster by these rules; then compile it with them taken away."""
    read = Disk().inputs(str(site.folder))
    inputs = replace(read, today="2026-11-21")
    with pytest.raises(Refused) as refused:
        compile_cluster(inputs)
    assert {each.code for each in refused.value.diagnostics} >= set(codes)
    with _without(codes):
        compilation = compile_cluster(inputs)
    with lock_folder(str(site.folder)) as held:
        output.write(held, compilation.lock, compilation.files, read)


@contextmanager
def _without(codes: Iterable[str]) -> Iterator[None]:
    add, off = Log.add, frozenset(codes)

    def but(log: Log, found: Iterable[Diagnostic]) -> None:
        add(log, [each for each in found if each.code not in off])

    with patch.object(Log, "add", but):
        yield
