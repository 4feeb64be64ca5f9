"""The uids with which Nodes were rendered: a Node with another one has joined again since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.lock import Consent, Lock, State
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents

FEW = 3
"""So many Nodes may have joined again, whatever the share."""
NODES = "nodes/"
"""The folder of shards of Nodes, below `rendered/`."""


def rendered_uids(
    cluster: Cluster, lock: Lock, consent: Consent, published: Mapping[str, bytes]
) -> Mapping[str, str]:
    """Return the uid that each Node was rendered with, by name.

    Nothing but in kubernetes mode with podCIDRs, where a renumber is pending or wanted: only there a
    re-created Node tells that its pods are gone. Nothing either where more than half of the Nodes, and more than a few, have
    another uid: that is the inventory of another cluster. O(rendered Nodes) there.
    """
    if cluster.mode is not Mode.KUBERNETES or cluster.patch_nodes != "podCIDRs":
        return {}
    if not consent.renumber and all(
        line.state is not State.PENDING and not line.was_pending for line in lock.lines
    ):
        return {}
    uids = dict(_uids(published))
    others = sum(uids.get(node.name, node.uid) != node.uid for node in cluster.nodes if node.uid)
    return {} if others > max(FEW, len(uids) // 2) else uids


def _uids(published: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield name and uid of the rendered Nodes. A file that cannot be read says nothing: it is written again."""
    for path, data in published.items():
        if path.startswith(NODES):
            try:
                documents = list(yaml_documents(path, data.decode()))
            except (Unreadable, UnicodeDecodeError):
                continue
            for document in documents:
                metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
                name, uid = (
                    metadata.get(key) if isinstance(metadata, dict) else None for key in ("name", "uid")
                )
                if isinstance(name, str) and isinstance(uid, str):
                    yield name, uid
