"""Rules about the size of rendered objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, error

CONFIG_MAP = 1 << 20
"""Bytes of a ConfigMap (Kubernetes: MaxSecretSize, 1 MiB)."""


def config_map_too_large(cluster: Cluster, files: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0529: cilium-config is at most 1 MiB.

    All values together count. Only `auto-create-cilium-pod-ip-pools` can grow so large: a pool with many
    CIDRs after `reserved` was taken out of them, or very many pools.

    Why: the apiserver refuses a larger ConfigMap (`Too long: may not be more than 1048576 bytes`): the
    apply fails, and agents and operator go on with the old flags.

    Run: take pools out of `autoCreate` in the Cluster: they are rendered as manifests, each an object of
    its own. Then `ipamc compile CLUSTER`.
    """
    size = len(files.get("cilium/configmap.yaml", "").encode())
    if size > CONFIG_MAP:
        yield error(
            "IPC0529",
            cluster.field("spec", "ipam", "autoCreate"),
            f"cilium-config has {size:,} bytes; the limit is {CONFIG_MAP:,}",
            help="remove pools from autoCreate: they become manifests",
        )
