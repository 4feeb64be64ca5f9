"""The kubelets' part in what goes: a Pod that somebody deletes is ended, and an agent's Pod comes back, as its DaemonSet makes another."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Self

from urllib3.exceptions import HTTPError

from tests.e2e.agents.node import AGENT_PODS, Node
from tests.e2e.agents.pod import PODS, Pod
from tests.e2e.api import Api


class Kubelets(threading.Thread):
    """The kubelets of all nodes: a thread that looks for deleted Pods twice a second, until its block ends."""

    def __init__(self, api: Api, nodes: MutableMapping[str, Node], pods: MutableMapping[str, Pod]) -> None:
        """`nodes` and `pods` may change; pods that end are taken out."""
        super().__init__()
        self.api, self.nodes, self.pods = api, nodes, pods
        self._over = threading.Event()
        self._failed: list[Exception] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        if self._failed:
            raise self._failed[0]

    def run(self) -> None:
        """Look, until the block ends."""
        try:
            while not self._over.wait(0.5):
                with suppress(HTTPError):  # the kube-apiserver is away: a kubelet asks again
                    self._look()
        except Exception as problem:  # noqa: BLE001 - raised where the block ends
            self._failed.append(problem)

    def _look(self) -> None:
        for name, each in self.api.items(PODS).items():
            if "deletionTimestamp" in each["metadata"] and (pod := self.pods.pop(name, None)):
                pod.end()
        agents = self.api.items(AGENT_PODS)
        for node in list(self.nodes.values()):
            node.look_after(agents)
