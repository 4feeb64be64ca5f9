"""Rules about cilium-config, the arguments of Cilium's operator and of kube-controller-manager, and the version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipamc.check.evidence import pod_cidrs_count
from ipamc.importing.facts import ALLOCATE, CONTROLLER, KUBEADM, programs_of
from ipamc.model.cilium.versions import text
from ipamc.model.diagnostics import Related, Span, count, error, names, note, warning
from ipamc.model.dump import Object, SeenPod
from ipamc.model.lock import State
from ipamc.review.audit.causes import POD, Suppressed
from ipamc.review.audit.context import Found, Scene
from ipamc.review.live.config import IPAM_ARGUMENT, OPERATOR, Difference, differences


def flags_differ(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0930: cilium-config and the operator's arguments are as they are rendered."""
    given = (
        [shown.block for blocks in scene.shown.values() for shown in blocks]
        if scene.knows_blocks
        else [line.block for line in scene.lock.lines if line.state is State.HELD]
    )
    found = differences(scene.git.flags, scene.flags, given)
    before = differences(scene.applied.flags, scene.flags, given) if scene.applied else found
    since = {item.key for item in before}
    for item in found:
        pending = item.key not in since
        first = item.key == IPAM_ARGUMENT and scene.git.flags.bystander and _gave_every_block(scene)
        make = (
            note if pending or first else warning if item.level == "later" and item.key != "ipam" else error
        )
        yield Found(
            make(
                "IPC0930",
                _at_flags(scene, item),
                f"{item.text}{' (git changed it since the last apply)' if pending else ''}",
                also=[Related(Span(f"{scene.git.shown}/cilium/configmap.yaml"), "rendered here")],
                help=f"ipamc ci apply {scene.cluster.name}; {item.help}"
                if scene.git.flags.applied
                else item.help,
            )
        )


def other_keys(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0933: the other keys of cilium-config that ipamc renders have the rendered values."""
    live, assumed = scene.config, scene.git.flags
    if live is None:
        return
    before = scene.applied.flags.data if scene.applied else assumed.data
    known = {item.key for item in differences(assumed, scene.flags, ())}
    other = [
        key
        for key, value in assumed.data.items()
        if key not in known and not _same(live.get(key, "" if assumed.applied else value), value)
    ]
    by_hand = [key for key in other if assumed.applied and not _same(live.get(key, ""), before.get(key, ""))]
    if other:
        key = (by_hand or other)[0]
        make = warning if by_hand else note
        yield Found(
            make(
                "IPC0933",
                scene.config_map.at if scene.config_map else scene.dump.at,
                f"cilium-config has {key}: {live.get(key) or 'nothing'}, rendered is {assumed.data[key]}"
                + (f"; {len(other)} keys: {names(other)}" if other[1:] else ""),
                also=[Related(Span(f"{scene.git.shown}/cilium/configmap.yaml"), "rendered here")],
                help=f"ipamc ci apply {scene.cluster.name}"
                if assumed.applied
                else "roll out what is in cilium/ (helm-values.yaml or component)",
            )
        )


def _same(one: str, other: str) -> bool:
    """Tell whether two values say the same: lists of CIDRs have no order where nobody gives out blocks of them."""
    return one == other or sorted(re.split(r"[\s,]+", one.strip())) == sorted(
        re.split(r"[\s,]+", other.strip())
    )


def _gave_every_block(scene: Scene) -> bool:
    """Tell whether CiliumNodes of the input show every block that the lock has, but for nodes that wait since the import."""
    shown = {(seen.name, block) for seen in scene.cluster.cilium_nodes for block in seen.blocks}
    held = [
        (line.node, line.block)
        for line in scene.lock.lines
        if line.in_use and not scene.waits_since_import(line.node)
    ]
    return bool(held) and all(entry in shown for entry in held)


def _at_flags(scene: Scene, item: Difference) -> Span:
    if item.key == IPAM_ARGUMENT:
        pod = next(iter(scene.pods_of.get(OPERATOR, {}).values()), None)
        found: Object | None = scene.deployment or pod
    else:
        found = scene.config_map
    return found.at if found is not None else scene.dump.at


def controller_allocates(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - as above
    """IPC0931: kube-controller-manager does not set the podCIDRs of Nodes."""
    managed = scene.facts.managed
    counts = pod_cidrs_count(scene.cluster) or scene.cluster.patch_nodes == "annotations"
    if managed:
        if not (managed.sets_pod_cidrs and counts and any(not pool.disabled for pool in scene.cluster.pools)):
            return
        who, way = (
            managed.name,
            f"write disabled: true into the pools, so that ipamc gives no block; {managed.way}",
        )
    elif POD not in scene.dump.kinds:  # kubeadm's ConfigMap alone does not tell with which arguments it runs
        return
    elif scene.facts.controller.get(ALLOCATE, "").lower() in {"true", "t", "1"}:
        who = "kube-controller-manager"
        way = f"set --{ALLOCATE}=false in /etc/kubernetes/manifests/kube-controller-manager.yaml on each control-plane node"
    else:
        return
    ranges = scene.facts.controller.get("cluster-cidr", "")
    manager = next(iter(scene.pods_of.get(CONTROLLER, {}).values()), None)
    said = manager or scene.dump.other("ConfigMap", KUBEADM, "kube-system")
    of = f" of {ranges}" if ranges else ""
    flag = "" if managed else f" (--{ALLOCATE}=true)"
    make, words = (
        (warning, "the next node that joins has such a block, and not the one of the lock")
        if counts
        else (note, f"nothing in Cilium reads them in {scene.cluster.mode} mode")
    )
    yield Found(
        make(
            "IPC0931",
            said.at if said else scene.dump.at,
            f"{who} sets podCIDRs{of} on new Nodes{flag}: {words}",
            also=[Related(scene.cluster.field("spec", "ipam", "mode"), f"{scene.cluster.mode} mode")],
            help=way,
        )
    )


def older_cilium(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - as above
    """IPC0932: no agent and no operator is older than the Cilium that the cluster is compiled for."""
    older = [
        (program.of, program.version)
        for program in programs_of(scene.dump)
        if program.version and program.version < scene.cluster.cilium
    ]
    if older:
        first, version = min(older, key=lambda entry: (entry[1], entry[0].name))
        what = "pod" if isinstance(first, SeenPod) else "workload"
        yield Found(
            error(
                "IPC0932",
                first.at,
                f"{count(len(older), what)} of Cilium older than {text(scene.cluster.cilium)}: {names(each.name for each, _ in older)} ({text(version)})",
                also=[Related(scene.cluster.field("spec", "cilium", "version"), "compiled for this one")],
                help=f'write version: "{text(version)}" until all are upgraded, and compile',
            )
        )
