"""Rules about the nodes themselves: which there are, in the cluster and in git, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.lock.file import line_at
from ipamc.model.address_sets import blocks_over
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Related, count, error, names, note, warning
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Ownership
from ipamc.review.audit.causes import Cause, Fact, Suppressed
from ipamc.review.audit.context import SHOWN, Found, Make, Scene, and_more, texts, whose
from ipamc.review.live.objects import CILIUM_NODE, NODE, pod_cidr_annotations


def ghost_nodes(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0920: every Node has a kubelet."""
    if not any(node.kubelet for node in scene.dump.nodes):
        return  # the dump has no status of Nodes, or no kubelet runs at all
    ghosts = [
        node
        for node in scene.dump.nodes
        if not (node.kubelet or node.ready or node.internal_ips or scene.agent_ran(node.name))
    ]
    if ghosts:
        yield Found(
            warning(
                "IPC0920",
                ghosts[0].at,
                f"{count(len(ghosts), 'Node')} without a kubelet, which an apply may have created: {names(node.name for node in ghosts)}",
                also=[
                    Related(scene.inventory[node.name].at, f"{node.name} is listed here")
                    for node in ghosts[:SHOWN]
                    if node.name in scene.inventory
                ],
                help=f"if no such machine exists: kubectl delete node {ghosts[0].name}, and take it out of the inventory",
            ),
            [Cause(f"{NODE} {node.name}", Fact.NO_MACHINE) for node in ghosts],
        )


def created_again(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0921: a node has the uid that the inventory has for it."""
    again = [
        (node, there)
        for node in scene.cluster.nodes
        if node.uid
        and (there := scene.dump.nodes_by_name.get(node.name))
        and there.uid
        and node.uid != there.uid
        and not told.explains("IPC0921", f"{NODE} {node.name}")
    ]
    if not again:
        return
    node, there = again[0]
    nodes = [node.name for node, _ in again]
    waiting = [
        node for node in nodes if scene.knows_blocks and not _families(scene, node) and scene.held(node)
    ]
    make = error if waiting and scene.cluster.mode is not Mode.MULTI_POOL else warning
    wait = f"; without a block: {names(waiting)}" if waiting else ""
    yield Found(
        make(
            "IPC0921",
            there.at,
            f"node {node.name} has uid {there.uid}, and {node.uid} in the inventory: it was created again{and_more(nodes)}{wait}",
            also=[Related(node.at, f"{node.name} with the old uid") for node, _ in again[:SHOWN]],
            help=f"ipamc import {scene.cluster.name} --refresh, ipamc compile {scene.cluster.name}, and apply",
        ),
        [
            *(Cause(f"{NODE} {name}", Fact.CREATED_AGAIN) for name in nodes),
            *(_no_block(scene, name) for name in waiting if make is error),
        ],
    )


def _no_block(scene: Scene, node: str) -> Cause:
    """Return the proof that a node waits for what the lock has for it."""
    return Cause(scene.object_of(node), Fact.NO_BLOCK, scene.held(node))


def _families(scene: Scene, node: str) -> set[int]:
    """Return the families of which a node has a block: in kubernetes mode agents read the Node alone."""
    if scene.shows_nodes and scene.cluster.patch_nodes != "annotations":
        return {block.family for block in scene.dump.nodes_by_name[node].pod_cidrs}
    return {shown.block.family for shown in scene.shown.get(node, ())}


def waiting(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0922: every node with an agent has a block of each family."""
    found = [
        (node.name, families)
        for node in scene.dump.nodes
        if not node.deleting
        and not told.explains("IPC0922", f"{NODE} {node.name}")
        and not told.explains("IPC0922", scene.object_of(node.name))
        and (families := _missing(scene, node.name))
    ]
    since = [node for node, _ in found if scene.waits_since_import(node)]
    if since:
        yield Found(
            note(
                "IPC0922",
                scene.at(since[0]),
                f"node {since[0]} has no block yet, as when it was imported{and_more(since)}",
                help=f"ipamc ci apply {scene.cluster.name}",
            ),
            [_no_block(scene, node) for node in since],
        )
    found = [(node, families) for node, families in found if node not in since]
    if not found:
        return
    name, families = found[0]
    nodes = [node for node, _ in found]
    held = [block for block in scene.held(name) if block.family in families]
    words = " and ".join(f"IPv{family}" for family in families)
    cluster = scene.cluster.name
    listed = scene.inventory.get(name)
    no_uid = scene.cluster.mode is Mode.KUBERNETES and listed is not None and listed.planned
    yield Found(
        error(
            "IPC0922",
            scene.at(name),
            f"node {name} has no {words} block{f', and the lock has {texts(held)} for it' if held else ''}{and_more(nodes)}",
            also=[related for node, lacks in found[:SHOWN] for related in scene.line_of(node, *lacks)],
            help="see what the operator says: kubectl get ciliumnodes -o yaml; and whether its pools have room: ipamc show "
            + cluster
            if held and scene.cluster.mode is Mode.MULTI_POOL
            else f"ipamc ci apply {cluster} --repair"
            if held and not no_uid
            else f"ipamc import {cluster} --refresh, ipamc compile {cluster}, and apply",
        ),
        [_no_block(scene, node) for node in nodes],
    )


def _missing(scene: Scene, name: str) -> list[int]:
    """Return the families in which a node waits for a block."""
    mode, node = scene.cluster.mode, scene.dump.nodes_by_name[name]
    seen = scene.dump.cilium_nodes_by_name.get(name)
    there = _families(scene, name)
    wanted = [family for family in scene.cluster.families if family not in there]
    if not wanted or scene.is_skipped(name):
        return []
    if mode is Mode.KUBERNETES:
        given = pod_cidr_annotations({"metadata": {"annotations": node.annotations}})
        if scene.cluster.patch_nodes == "annotations":
            wanted = [family for family in wanted if not any(f"ipv{family}-" in key for key in given)]
        return wanted if node.ready or scene.agent_ran(name) else []
    if seen is None:
        # Without the kind in the dump nothing is known; what is rendered and missing is IPC0943.
        rendered = f"{CILIUM_NODE} {name}" in scene.git.objects
        return wanted if CILIUM_NODE in scene.dump.kinds and scene.agent_ran(name) and not rendered else []
    if mode is Mode.MULTI_POOL:
        asked = {
            family
            for _, four, six in seen.requested
            for family, number in ((4, four), (6, six))
            if number > 0
        }
        return [family for family in wanted if family in asked or (seen.owner_uid and not there)]
    return wanted


def left_but_runs(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0923: a node whose block is in quarantine does not use it."""
    found: list[tuple[str, Line]] = []
    for node in scene.dump.nodes:
        if node.name in scene.inventory or node.deleting or told.explains("IPC0923", f"{NODE} {node.name}"):
            continue
        if (own := _former(scene, node.name)) and _uses(scene, node.name, own):
            found.append((node.name, own[0]))
    if found:
        name, line = found[0]
        nodes = [node for node, _ in found]
        since = f" since {line.since}" if line.since else ""
        yield Found(
            error(
                "IPC0923",
                scene.at(name),
                f"node {name} runs with {whose(scene.shown[name])}, which the lock has in quarantine{since}{and_more(nodes)}",
                also=[
                    Related(line_at(scene.lock, line), f"{node} left the inventory here")
                    for node, line in found[:SHOWN]
                ],
                help=f"put it back into the inventory: ipamc import {scene.cluster.name} --refresh, then ipamc compile {scene.cluster.name}",
            ),
            [Cause(scene.source(node), Fact.NOT_LISTED) for node in nodes],
        )


def _former(scene: Scene, node: str) -> list[Line]:
    """Return the lines of what a node had, by address."""
    lines = (line for line in scene.lines.get(node, ()) if line.state is not State.HELD)
    return sorted(lines, key=lambda line: line.block)


def _uses(scene: Scene, node: str, lines: Sequence[Line]) -> bool:
    """Tell whether a node shows a block of some lines, by address."""
    blocks = [line.block for line in lines]
    return any(blocks_over(blocks, shown.block) for shown in scene.shown.get(node, ()))


def unlisted(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0924: every node of the cluster is in the inventory."""
    strange = [
        node
        for node in scene.dump.nodes
        if node.name not in scene.inventory
        and not told.explains("IPC0924", f"{NODE} {node.name}")
        and not node.deleting
        and not (
            (own := _former(scene, node.name)) and (_uses(scene, node.name, own) or not scene.knows_blocks)
        )
        and not (
            scene.cluster.operator_adopts
            and all(scene.law.of(shown) is Ownership.OPERATORS for shown in scene.shown.get(node.name, ()))
        )
    ]
    by_severity: dict[Make, list[str]] = {error: [], warning: []}
    for node in strange:
        refused = any(scene.refuses(shown.block) for shown in scene.shown.get(node.name, ()))
        by_severity[error if refused else warning].append(node.name)
    for make, some in by_severity.items():
        if some:
            first = scene.dump.nodes_by_name[some[0]]
            has = (
                f", with blocks that a compile refuses: {whose(scene.shown[some[0]])}"
                if make is error
                else ""
            )
            yield Found(
                make(
                    "IPC0924",
                    first.at,
                    f"{count(len(some), 'node')} not in the inventory of {scene.cluster.name}: {names(some)}{has}",
                    help=f"ipamc import {scene.cluster.name} --refresh, then ipamc compile {scene.cluster.name}",
                ),
                [Cause(f"{kind} {name}", Fact.NOT_LISTED) for name in some for kind in (NODE, CILIUM_NODE)],
            )


def gone(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0925: every node of the inventory is in the cluster, unless it is planned."""
    lost = [
        node for node in scene.cluster.nodes if not node.planned and node.name not in scene.dump.nodes_by_name
    ]
    if lost:
        routed = [node.name for node in lost if node.name in scene.dump.cilium_nodes_by_name]
        more = f"; still routed by its CiliumNode: {names(routed)}" if routed else ""
        yield Found(
            warning(
                "IPC0925",
                lost[0].at,
                f"{count(len(lost), 'node')} of the inventory not in the dump: {names(node.name for node in lost)}{more}",
                also=[
                    *(scene.related(name, f"CiliumNode {name} is still there") for name in routed[:SHOWN]),
                    *(related for node in lost[:1] for related in scene.line_of(node.name)),
                ],
                help=f"if it left for good: ipamc import {scene.cluster.name} --refresh, then ipamc compile {scene.cluster.name}",
            ),
            [Cause(f"{NODE} {node.name}", Fact.GONE) for node in lost],
        )


def without_node(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0926: every CiliumNode has a Node."""
    left = [
        seen
        for seen in scene.dump.cilium_nodes
        if seen.name not in scene.dump.nodes_by_name
        and seen.name not in scene.inventory
        and not told.explains("IPC0926", f"{NODE} {seen.name}")
        and not seen.deleting
    ]
    if left:
        yield Found(
            warning(
                "IPC0926",
                left[0].at,
                f"{count(len(left), 'CiliumNode')} without a Node, blocks still routed: {names(_with_blocks(scene, seen.name) for seen in left)}",
                also=[
                    Related(
                        line_at(scene.lock, line), f"the lock has {line.block} of {line.node} ({line.state})"
                    )
                    for seen in left[:SHOWN]
                    for line in scene.lines.get(seen.name, ())[:1]
                ],
                help=f"kubectl delete ciliumnode {left[0].name}",
            ),
            [Cause(f"{NODE} {seen.name}", Fact.GONE) for seen in left],
        )


def _with_blocks(scene: Scene, name: str) -> str:
    return f"{name} ({whose(scene.shown.get(name, ())) or 'no block'})"
