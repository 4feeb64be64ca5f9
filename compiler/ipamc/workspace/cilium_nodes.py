"""The CiliumNodes of a cluster after an apply: what was read before it, kept up to date by one watch.

A large cluster has a job for each shard. If each of them read all CiliumNodes again and again, to see what
Cilium's operator says of some, the apiserver would send them all each time. A watch is one request, which it
answers with the changes alone. `kubectl get --watch` is none: it reads all of them first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from ipamc.read.rendered import identity
from ipamc.review.live.objects import CILIUM_NODE
from ipamc.workspace import shapes
from ipamc.workspace.kubectl import Forbidden, Kube
from ipamc.workspace.shapes import checked, decoded
from ipamc.workspace.trouble import Trouble

PATH = "/apis/cilium.io/v2/ciliumnodes"
"""Every Cilium since 1.6 has them in this version alone."""
SERVER = "{.clusters[0].cluster.server}"
"""Where a kubeconfig has the URL of the apiserver."""
PAUSE = 2.0
"""Seconds after a watch that ended early, before all are read again: the apiserver may be restarting."""
EARLY = 0.5
"""Seconds that a watch may lack: it is timed here and there."""
GRACE = 30
"""Seconds after which a watch is ended from here, if the apiserver does not."""


class CiliumNodes:
    """The CiliumNodes of a cluster by identity, as they were when this was last told to follow them."""

    def __init__(self, kube: Kube, live: Mapping[str, Mapping[str, Any]], version: str) -> None:
        """Begin with what was read after `version_of` gave this version; "" if it gave none."""
        self._kube = kube
        self._version = version
        self._may_watch = bool(version)
        self.live = {key: document for key, document in live.items() if document["kind"] == CILIUM_NODE}
        self.refused = ""
        """What the apiserver says if the role of this job may not watch; "" if it may."""

    def follow(self, seconds: float) -> None:
        """Keep them up to date for some seconds. Raises Trouble if they cannot be read at the end.

        If a watch ends early, because the apiserver restarts or has forgotten the version (410 Gone), they
        are read again, and watched from there. If they cannot be watched at all, they are read at the end.
        """
        end = time.monotonic() + seconds
        current = False
        while self._may_watch and not current and (left := end - time.monotonic()) > 0:
            try:
                if not self._version:
                    self._read()
                self._watch(left)
                current = True
            except Forbidden as problem:
                self._may_watch, self.refused = False, str(problem)
            except Trouble:
                self._version = ""
                time.sleep(max(0.0, min(PAUSE, end - time.monotonic())))
        if not current:
            time.sleep(max(0.0, end - time.monotonic()))
            self._read()

    def _read(self) -> None:
        self._version = version_of(self._kube) if self._may_watch else ""
        self.live = dict(self._kube.listed(CILIUM_NODE))

    def _watch(self, seconds: float) -> None:
        """Take over what changes in some seconds. Raises Trouble if the watch does not last so long."""
        start = time.monotonic()
        for kind, document in _events(self._kube, self._version, seconds):
            self._version = document["metadata"].get("resourceVersion") or ""
            if kind == "DELETED":
                self.live.pop(identity(document), None)
            else:
                self.live[identity(document)] = document
        if time.monotonic() - start < seconds - EARLY:
            raise Trouble("the watch of CiliumNodes ended early")


def version_of(kube: Kube) -> str:
    """Return the version from which CiliumNodes can be watched; "" if they cannot: one small request.

    They cannot if the URL of the apiserver has a path, as behind Rancher: kubectl before 1.35 leaves it out of
    a raw request, which may then reach another cluster.
    """
    url = kube.read("the kubeconfig", "config", "view", "--minify", "-o", f"jsonpath={SERVER}")
    if urlsplit(url.strip()).path.strip("/"):
        return ""
    text = kube.read("CiliumNodes", "get", "--raw", f"{PATH}?limit=1")
    found = decoded("CiliumNodes", text or "{}", shapes.Versioned)
    return str((found.get("metadata") or {}).get("resourceVersion") or "")


def _events(kube: Kube, version: str, seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the apiserver tells in some seconds, from a version on: ADDED, MODIFIED or DELETED, and what."""
    what, whole = "changes of CiliumNodes", math.ceil(seconds)
    request = f"{PATH}?watch=1&resourceVersion={quote(version)}&timeoutSeconds={whole}"
    for line in kube.read(what, "get", "--raw", request, limit=whole + GRACE).splitlines():
        event = decoded(what, line, shapes.Event)
        document = event["object"]
        if event["type"] == "ERROR":
            raise Trouble(f"{what}: {document.get('message')}")
        if checked(what, document)["kind"] != CILIUM_NODE:
            raise Trouble(f"{what}: the cluster answers with a {document['kind']}")
        yield event["type"], document
