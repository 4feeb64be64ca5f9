"""What is too large for the apiserver once it is rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, error

CONFIG_MAP = 1 << 20
"""Bytes that a ConfigMap may have (Kubernetes: MaxSecretSize, 1 MiB)."""


def config_map_too_large(cluster: Cluster, files: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0529: cilium-config stays below 1 MiB.

    The apiserver refuses a larger ConfigMap. Only `auto-create-cilium-pod-ip-pools` can grow like that: take pools out of `autoCreate`, and they
    are rendered as manifests.
    """
    size = len(files.get("cilium/configmap.yaml", "").encode())
    if size > CONFIG_MAP:
        yield error(
            "IPC0529",
            cluster.field("spec", "ipam", "autoCreate"),
            f"a cilium-config of {size:,} bytes, and {CONFIG_MAP:,} is the limit",
            help="take pools out of autoCreate: they become manifests",
        )
