"""The containers of a DaemonSet or a Deployment as kubectl prints it, whose shape nobody checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipamc.model.cilium.operator_list import OPERATOR
from ipamc.read.syntax.document import member


def containers(workload: Any) -> list[Mapping[str, Any]]:
    """Return the containers of a workload."""
    found = member(workload, "spec", "template", "spec", "containers")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def words_of(deployment: Any) -> tuple[str, ...]:
    """Return the words of the operator's command line, from its Deployment, whose shape nobody checked.
    They are of the container cilium-operator, and of all containers where none is called so.
    """
    every = containers(deployment)
    some = [container for container in every if container.get("name") == OPERATOR] or every
    lines = [container.get(key) for container in some for key in ("command", "args")]
    texts = (str(text) for line in lines if isinstance(line, list) for text in line)
    return tuple(word for text in texts for word in text.split())
