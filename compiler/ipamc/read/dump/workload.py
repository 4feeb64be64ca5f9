"""The containers of a DaemonSet or a Deployment as kubectl prints it, without a check of its shape."""

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
    """Return the operator's arguments from its unchecked Deployment.
    They are those of the container cilium-operator, or of all containers if none has this name.
    """
    every = containers(deployment)
    some = [container for container in every if container.get("name") == OPERATOR] or every
    lines = [container.get(key) for container in some for key in ("command", "args")]
    texts = (str(text) for line in lines if isinstance(line, list) for text in line)
    return tuple(word for text in texts for word in text.split())
