"""Rules about the dump itself: whether it is of this cluster, new enough, and what it does not have."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from ipamc.importing.refresh import SLACK, is_of_another
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Related, Span, count, error, names, note
from ipamc.read.rules import DUMP
from ipamc.review.audit.causes import BLOCKS, CONFIG_MAP, DEPLOYMENT, ENDPOINT, NEEDS, POD, Suppressed
from ipamc.review.audit.context import Found, Scene
from ipamc.review.live.objects import CILIUM_NODE, NODE_CONFIG, POOL


def refused(scene: Scene, changed: str, applied_at: str) -> list[Diagnostic]:
    """Return why a dump cannot be compared; nothing where it can.

    `changed` and `applied_at` are when the lock and what was applied were committed, RFC 3339 in UTC.
    """
    return [*other_cluster(scene), *older_dump(scene, changed, applied_at)]


def other_cluster(scene: Scene) -> Iterator[Diagnostic]:
    """IPC0901: a dump is of the cluster that it is compared with."""
    if not is_of_another(scene.cluster, scene.dump):
        return
    listed = [node for node in scene.cluster.nodes if not node.planned]
    live = scene.dump.nodes_by_name
    node = next((node for node in listed if node.name in live), None)
    name = scene.cluster.name
    yield error(
        "IPC0901",
        live[node.name].at if node else scene.dump.at,
        f"this is no dump of {name}: none of {count(len(listed), 'node')} is in it, but {names(live)}"
        if node is None
        else f"this is no dump of {name}: each node has another uid there, as {node.name} has {live[node.name].uid or 'none'}",
        also=[
            Related(
                (node or listed[0]).at,
                f"{(node or listed[0]).name} of the inventory, uid {(node or listed[0]).uid or 'unknown'}",
            )
        ],
        help=f"make the dump with the context of {name}: {DUMP}; if the cluster was built again: ipamc import {name} --refresh --rebuilt",
    )


def older_dump(scene: Scene, changed: str, applied_at: str) -> Iterator[Diagnostic]:
    """IPC0902: a dump is newer than what was applied, and than the lock."""
    newest = scene.dump.newest
    at = scene.dump.at
    since = applied_at or changed
    if _is_before(newest, since):
        what = f"what was applied last ({scene.applied.revision})" if scene.applied else scene.lock.path
        yield error(
            "IPC0902",
            at,
            f"the dump is of {newest}, and {what} of {since}: what came between would look as if it had been changed by hand",
            help=f"make a new one: {DUMP}",
        )
    elif _is_before(newest, changed):
        yield note(
            "IPC0902",
            at,
            f"the dump is of {newest}, and {scene.lock.path} of {changed}: what is pending here may have been applied since",
            help=f"for the state of now make a new one: {DUMP}",
        )


def _is_before(one: str, other: str) -> bool:
    try:
        first, second = (datetime.datetime.fromisoformat(text) for text in (one, other))
        return (second - first).total_seconds() > SLACK
    except (ValueError, TypeError):
        return False


def nothing_applied(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0903: it is known what was applied last."""
    if scene.applied is None:
        ref = f"refs/ipamc/applied/{scene.cluster.name}"
        yield Found(
            note(
                "IPC0903",
                Span(scene.git.shown),
                f"there is no {ref}, so the dump is compared with git alone: what is pending and what was edited by hand cannot be told apart",
                help=f"git fetch origin '+{ref}:{ref}', or --applied REV",
            )
        )


_WITHOUT = {
    POD: "whether pods have addresses of their nodes' blocks, or two of them one address; which version of Cilium runs; kube-controller-manager's arguments",
    ENDPOINT: "whether Cilium knows each pod",
    CILIUM_NODE: "the blocks that agents use, what the operator reports",
    POOL: "the pools of the operator",
    NODE_CONFIG: "the pools that agents start with",
    CONFIG_MAP: "Cilium's flags, and what depends on them",
    DEPLOYMENT: "the operator's arguments",
}
_WORDS = {CONFIG_MAP: "cilium-config", DEPLOYMENT: "the operator's Deployment or Pod"}
"""Where not a whole kind is missing."""


def not_in_the_dump(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0904: a dump has the kinds of objects that an audit looks at."""
    missing = [kind for kind in _wanted(scene) if kind not in scene.dump.kinds]
    if scene.config is None:
        missing.append(CONFIG_MAP)
    if scene.arguments is None and scene.cluster.mode in {Mode.CLUSTER_POOL, Mode.MULTI_POOL}:
        missing.append(DEPLOYMENT)
    shows_blocks = {BLOCKS} if CILIUM_NODE in missing and not scene.knows_blocks else set()
    codes = sorted(code for code, kinds in NEEDS.items() if kinds & {*missing, *shows_blocks})
    if missing:
        yield Found(
            note(
                "IPC0904",
                scene.dump.at,
                f"the dump lacks {', '.join(_WORDS.get(kind, kind) for kind in missing)}; not checked: {'; '.join(_WITHOUT[kind] for kind in missing)} ({', '.join(codes)})",
                help=f"run {DUMP}",
            )
        )


def _wanted(scene: Scene) -> Iterator[str]:
    yield from (POD, ENDPOINT, CILIUM_NODE)
    for kind in (POOL, NODE_CONFIG):
        if any(document["kind"] == kind for document in scene.git.objects.values()):
            yield kind
