"""Rules about what Cilium's operator says of CiliumNodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipamc.model.cilium.versions import usable_addresses
from ipamc.model.cluster import CiliumNode, Mode
from ipamc.model.diagnostics import Related, error, note, warning
from ipamc.model.wording import shown as quoted
from ipamc.review.audit.causes import Suppressed
from ipamc.review.audit.context import SHOWN, Found, Scene, and_more
from ipamc.review.live.objects import CILIUM_NODE, POOL, cidrs, name_of, node_of, parsed
from ipamc.review.live.operator_status import Written, judge

_REQUESTED = re.compile(
    r"(?:requested CIDR \(?|cidr )(\S+?)\)? (?:is|has) already (?:been )?allocated"
).search
_UNKNOWN = re.compile(r"allocator not configured for the requested CIDR (\S+)").search
_EMPTY = re.compile(r'from pool "([^"]*)": pool empty|pool empty').search


def operator_errors(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0970: the operator reports no error for a CiliumNode."""
    errors = {seen.name: seen.error for seen in scene.dump.cilium_nodes if seen.error}
    if not errors:
        return
    verdict = judge(errors, _written(scene))
    by_severity: dict[str, list[CiliumNode]] = {"error": [], "warning": [], "note": []}
    for name in sorted({**verdict.failures, **verdict.restart}):
        seen = scene.dump.cilium_nodes_by_name[name]
        by_severity[_severity(scene, seen)].append(seen)
    for word, make, more in (
        ("error", error, ""),
        ("warning", warning, "; it may be of the past: cilium issue 28758"),
        ("note", note, "; its cause is gone"),
    ):
        if some := by_severity[word]:
            seen = some[0]
            yield Found(
                make(
                    "IPC0970",
                    seen.at,
                    f"the operator says of {seen.name}: {quoted(seen.error)}{and_more([each.name for each in some])}{more}",
                    also=[Related(each.at, f"{each.name}: {each.error}") for each in some[1:SHOWN]],
                    help="give the pool more room, and compile: ipamc show " + scene.cluster.name
                    if word == "error"
                    else f"kubectl -n {scene.cluster.namespace} rollout restart deployment/cilium-operator clears it, if its cause is gone",
                )
            )


def _written(scene: Scene) -> Written:
    """Return what the errors are judged by: all that git gives."""
    flags = scene.git.flags
    return Written(
        own_pools={
            name_of(item) for item in scene.git.objects.values() if item["kind"] == POOL and node_of(item)
        },
        given={
            name_of(item): parsed(cidrs(item, item))
            for item in scene.git.objects.values()
            if flags.adopts and item["kind"] == CILIUM_NODE
        },
        operator_list=flags.operator_list if flags.adopts else (),
    )


def _severity(scene: Scene, seen: CiliumNode) -> str:
    """Return how severe an error is now. The most severe of its causes decides."""
    causes = [line.strip() for line in seen.error.splitlines() if line.strip()]
    return min((_of_cause(scene, seen, cause) for cause in causes), key=("error", "warning", "note").index)


def _of_cause(scene: Scene, seen: CiliumNode, cause: str) -> str:
    if found := _REQUESTED(cause) or _UNKNOWN(cause):
        block = next(iter(parsed([found[1].strip("(),")])), None)
        mine = [shown.block for shown in scene.shown.get(seen.name, ())]
        if block is None:
            return "warning"
        if block not in mine:
            return "note"
        if _UNKNOWN(cause):
            # The agent uses the block all the same; nobody else gets it, unless the operator hands out by itself.
            alone = scene.cluster.bystander or scene.cluster.mode in {Mode.KUBERNETES, Mode.CRD}
            return "note" if alone else "warning"
        return "warning" if scene.holders[block] > 1 else "note"
    if _EMPTY(cause) and scene.cluster.mode is Mode.MULTI_POOL:
        return "error" if _asks_for_more(scene, seen) else "note"
    return "warning"


def _asks_for_more(scene: Scene, seen: CiliumNode) -> bool:
    """Tell whether an agent asks a pool for more addresses than its blocks have."""
    for pool, four, six in seen.requested:
        for family, number in ((4, four), (6, six)):
            blocks = [block for block, name in seen.allocated if name == pool and block.family == family]
            if number > usable_addresses(scene.cluster.cilium, blocks):
                return True
    return False
