"""Rules about programs: Cilium's flags and versions, kube-controller-manager, errors of Cilium's operator.

They also check keys of cilium-config that ipamc does not render, if an IPAM mode needs them in the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ipamc.check.evidence import pod_cidrs_count
from ipamc.model.cidr import read_blocks
from ipamc.model.cilium.flags import is_true, same_value
from ipamc.model.cilium.operator_list import AGENT, KUBEADM
from ipamc.model.cilium.support import NODE_CONFIG_CRD, UNFIT, Capability
from ipamc.model.cilium.versions import can, since, usable_addresses
from ipamc.model.cilium.versions import text as version_text
from ipamc.model.cluster import Mode, Version
from ipamc.model.diagnostics import Related, Span, and_others, error, names, note, several, warning
from ipamc.model.dump import SeenPod
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import State
from ipamc.model.node import CiliumNode
from ipamc.model.wording import shown as quoted
from ipamc.read.dump.programs import (
    ALLOCATE,
    CONTROLLER,
    controller_flags,
    list_at,
    offering_of,
    programs_of,
)
from ipamc.read.syntax.document import member
from ipamc.review.audit.context import POD, Context, Result, Suppressed
from ipamc.review.live.cilium import IPAM_ARGUMENT, UNKNOWN, Run, differences, judge
from ipamc.review.live.objects import POOL, cilium_nodes, name_of, node_of

_REQUESTED = re.compile(
    r"(?:requested CIDR \(?|cidr )(\S+?)\)? (?:is|has) already (?:been )?allocated"
).search
_EMPTY = re.compile(r'from pool "([^"]*)": pool empty|pool empty').search


def flags_differ(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0930: cilium-config and the operator's arguments match the rendered files."""
    git = context.git.flags
    if context.knows_blocks:
        given = [shown.block for blocks in context.shown.values() for shown in blocks]
    else:
        given = [line.block for line in context.lock.lines if line.state is State.HELD]
    found = differences(git, context.flags, given)
    before = differences(context.applied.flags, context.flags, given) if context.applied else found
    since, operator = {item.key for item in before}, context.operator[0]
    for item in found:
        pending, of_operator = item.key not in since, item.key == IPAM_ARGUMENT
        first = of_operator and git.bystander and _gave_every_block(context)
        later = item.level == "later" and item.key != "ipam"
        make = note if pending or first else warning if later else error
        text = f"{item.text}{' (git changed it since the last apply)' if pending else ''}"
        way_out = f"{context.apply}; {item.help}" if git.applied else item.help
        place = operator if of_operator else context.config_map
        at = place.at if place else context.dump.at
        yield Result(make("IPC0930", at, text, also=[_rendered(context)], help=way_out))


def _rendered(context: Context) -> Related:
    return Related(Span(f"{context.git.shown}/cilium/configmap.yaml"), "rendered here")


def other_keys(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0933: the other rendered keys of cilium-config have the rendered values."""
    live, assumed = context.config, context.git.flags
    if live is None:
        return
    before = context.applied.flags.data if context.applied else assumed.data
    known = {item.key for item in differences(assumed, context.flags, ())}
    other = [
        key
        for key, value in assumed.data.items()
        if key not in known and not same_value(live.get(key, "" if assumed.applied else value), value)
    ]
    by_hand = [
        key for key in other if assumed.applied and not same_value(live.get(key, ""), before.get(key, ""))
    ]
    if other:
        key = (by_hand or other)[0]
        make = warning if by_hand else note
        more = f"; {len(other)} keys: {names(other)}" if other[1:] else ""
        has = f"cilium-config has {key}: {live.get(key) or 'nothing'}"
        text = f"{has}, but {assumed.data[key]} is rendered{more}"
        by_others = "roll out cilium/helm-values.yaml or cilium/component"
        way_out = context.apply if assumed.applied else by_others
        yield Result(make("IPC0933", context.config_at, text, also=[_rendered(context)], help=way_out))


def _gave_every_block(context: Context) -> bool:
    """Return whether CiliumNodes of the input show every block of the lock, but for waiting nodes."""
    shown = {(seen.name, block) for seen in context.cluster.cilium_nodes for block in seen.blocks}
    lines = [line for line in context.lock.lines if line.in_use]
    held = {(line.node, line.block) for line in lines if not context.waits_since_import(line.node)}
    return bool(held) and held <= shown


def controller_allocates(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0931: kube-controller-manager does not set the podCIDRs of Nodes."""
    cluster, managed, flags = context.cluster, offering_of(context.dump), controller_flags(context.dump)
    counts = pod_cidrs_count(cluster) or cluster.patch_nodes == "annotations"
    if managed:
        if not (
            managed.sets_pod_cidrs
            and counts
            and any(pool.follows or not pool.disabled for pool in cluster.pools)
        ):
            return
        who = managed.name
        way = f"set disabled: true in the pools, so that ipamc gives no block; {managed.way}"
    elif POD not in context.dump.kinds:
        return  # kubeadm's ConfigMap alone does not prove the arguments of the running program
    elif is_true(flags, ALLOCATE):
        who = "kube-controller-manager"
        path = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
        way = f"set --{ALLOCATE}=false in {path} on each control-plane node"
    else:
        return
    joins = "the next node gets such a block instead of the lock's"
    effect = joins if counts else f"nothing in Cilium reads them in {cluster.mode} mode"
    of = f" of {flags['cluster-cidr']}" if flags.get("cluster-cidr") else ""
    flag = "" if managed else f" (--{ALLOCATE}=true)"
    manager = next(iter(context.pods_of.get(CONTROLLER, {}).values()), None)
    source = manager or context.dump.other("ConfigMap", KUBEADM, "kube-system")
    text = f"{who} sets podCIDRs{of} on new Nodes{flag}: {effect}"
    at, make = source.at if source else context.dump.at, warning if counts else note
    also = [Related(cluster.field("spec", "ipam", "mode"), f"{cluster.mode} mode")]
    yield Result(make("IPC0931", at, text, also=also, help=way))


def older_cilium(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0932: no agent or operator is older than the Cilium that the cluster is compiled for."""
    compiled_for = context.cluster.cilium
    older = [
        (program.of, program.version)
        for program in programs_of(context.dump)
        if program.version and program.version < compiled_for
    ]
    if older:
        first, version = min(older, key=lambda entry: (entry[1], entry[0].name))
        noun, older_than = "pod" if isinstance(first, SeenPod) else "workload", version_text(compiled_for)
        which = several([each.name for each, _ in older], noun, f"with Cilium older than {older_than}")
        text = f"{which} ({version_text(version)})"
        also = [Related(context.cluster.field("spec", "cilium", "version"), "compiled for this version")]
        way_out = f'write version: "{version_text(version)}" until all are upgraded, then compile'
        yield Result(error("IPC0932", first.at, text, also=also, help=way_out))


def stored_versions(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0938: the CRD of CiliumNodeConfigs lists only the version that it stores."""
    crd = context.dump.other("CustomResourceDefinition", NODE_CONFIG_CRD)
    versions = list_at(crd and crd.value, "spec", "versions")
    stored = next((member(each, "name") for each in versions if member(each, "storage") is True), None)
    former = [each for each in list_at(crd and crd.value, "status", "storedVersions") if each != stored]
    if crd is None or stored is None or not former:
        return
    minor, releases = next(iter(UNFIT.items()))
    images = [program.image for program in programs_of(context.dump)]
    runs = any(f":v{release}" in image for image in images for release in releases)
    effect = "remove it before you upgrade to a Cilium that does not serve it"
    if runs or context.cluster.cilium < (1, minor):
        effect = f"an operator of {' or '.join(releases)} does not start"
    text = f"CRD {NODE_CONFIG_CRD} lists {former[0]} as stored beside {stored}: {effect}"
    patch = json.dumps({"status": {"storedVersions": [stored]}}, separators=(",", ":"))
    command = f"kubectl patch crd {NODE_CONFIG_CRD} --subresource=status --type=merge -p '{patch}'"
    make = error if runs else note  # a warning would stop runbooks, whose audits find 0 problems
    yield Result(make("IPC0938", crd.at, text, help=f"replace all CiliumNodeConfigs, then {command}"))


def operator_errors(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0970: the operator reports no error for a CiliumNode."""
    errors = {seen.name: seen.error for seen in context.dump.cilium_nodes if seen.error}
    if not errors:
        return
    flags, objects = context.git.flags, context.git.objects.values()
    git = Run(
        own_pools={name_of(item) for item in objects if item["kind"] == POOL and node_of(item)},
        given={seen.name: seen.blocks for seen in cilium_nodes(objects if flags.adopts else ())},
        operator_list=flags.operator_list if flags.adopts else (),
    )
    verdict = judge(errors, git)
    by_severity: dict[str, list[CiliumNode]] = {"error": [], "warning": [], "note": []}
    for name in sorted({**verdict.failures, **verdict.restart}):
        seen = context.dump.cilium_nodes_by_name[name]
        causes = [line.strip() for line in seen.error.splitlines() if line.strip()]
        severities = [_severity(context, seen, cause) for cause in causes]
        by_severity[min(severities, key=list(by_severity).index)].append(seen)
    restart = f"kubectl -n {context.cluster.namespace} rollout restart deployment/cilium-operator"
    clears = f"if its cause is gone, restart the operator to clear it: {restart}"
    for severity, make, more, way_out in (
        (
            "error",
            error,
            "",
            f"add a range to the pool and compile; to see its room: ipamc show {context.cluster.name}",
        ),
        ("warning", warning, "; it may be outdated (cilium issue 28758)", clears),
        ("note", note, "; its cause is gone", clears),
    ):
        if some := by_severity[severity]:
            first, others = some[0], and_others([each.name for each in some])
            text = f"the operator reports for {first.name}: {quoted(first.error)}{others}{more}"
            also = [Related(each.at, f"{each.name}: {each.error}") for each in some[1:MOST_PLACES]]
            found = make("IPC0970", first.at, text, also=also, help=way_out)
            yield Result(found.about(each.name for each in some))


def _severity(context: Context, seen: CiliumNode, cause: str) -> str:
    unknown = UNKNOWN(cause)
    if match := _REQUESTED(cause) or unknown:
        block = next(iter(read_blocks([match[1].strip("(),")])[0]), None)
        if block is None:
            return "warning"
        if block not in context.blocks_of(seen.name):
            return "note"
        if unknown:
            # The agent uses the block; nobody else gets it, unless the operator itself allocates.
            alone = context.cluster.bystander or context.cluster.mode in {Mode.KUBERNETES, Mode.CRD}
            return "note" if alone else "warning"
        return "warning" if context.holders[block] > 1 else "note"
    if _EMPTY(cause) and context.cluster.mode is Mode.MULTI_POOL:
        for pool, *numbers in seen.requested:  # does the agent ask for more than its blocks have?
            for family, number in zip((4, 6), numbers, strict=True):
                blocks = [block for block, name in seen.allocated if name == pool and block.family == family]
                if number > usable_addresses(context.cluster.cilium, blocks):
                    return "error"
        return "note"
    return "warning"


_EGRESS = "egress-masquerade-interfaces"
_BPF = "enable-bpf-masquerade"
_ROUTES = "enable-endpoint-routes"
_MASQUERADE = {4: "enable-ipv4-masquerade", 6: "enable-ipv6-masquerade"}


def masquerades_one_range(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0934: in multi-pool and crd mode, agents that masquerade with iptables know their interfaces."""
    config, cluster = context.config, context.cluster
    if config is None or cluster.mode not in {Mode.MULTI_POOL, Mode.CRD}:
        return
    families = [family for family in cluster.families if is_true(config, _MASQUERADE[family])]
    keys = {_EGRESS, _BPF, *_MASQUERADE.values()}
    if not families or is_true(config, _BPF) or config.get(_EGRESS, "").strip() or _set(context, keys):
        return
    first = version_text(since(Capability.EGRESS_INTERFACES))
    if can(_newest(context), Capability.EGRESS_INTERFACES):
        make, effect = error, f"agents of {first} or newer exit at their start"
    else:
        make = warning
        effect = f"some pods may not be masqueraded; from {first} on no agent starts"
    message = f"cilium-config has {_MASQUERADE[families[0]]}, but neither {_EGRESS} nor {_BPF}: {effect}"
    also = [Related(cluster.field("spec", "ipam", "mode"), f"{cluster.mode} mode")]
    fix = f'where cilium-config is managed, set {_BPF}: "true" or {_EGRESS}, such as "eth+"'
    yield Result(make("IPC0934", context.config_at, message, also=also, help=fix))


def routes_to_no_block(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0935: in multi-pool mode before Cilium 1.18, agents have a route to each pod."""
    config, cluster = context.config, context.cluster
    if config is None or cluster.mode is not Mode.MULTI_POOL:
        return
    native = config.get("routing-mode") == "native"
    old = not can(cluster.cilium, Capability.LOCAL_ROUTES)
    if native and old and not is_true(config, _ROUTES) and not _set(context, {_ROUTES}):
        message = f"cilium-config lacks {_ROUTES}: other nodes may not reach pods of Cilium"
        also = [Related(cluster.field("spec", "ipam", "mode"), f"{cluster.mode} mode")]
        first = version_text(since(Capability.LOCAL_ROUTES))
        fix = f'where cilium-config is managed, set {_ROUTES}: "true"; or upgrade to {first}'
        yield Result(
            warning(
                "IPC0935", context.config_at, f"{message} {version_text(cluster.cilium)}", also=also, help=fix
            )
        )


def _set(context: Context, keys: set[str]) -> bool:
    """Return whether a CiliumNodeConfig sets one of these keys: agents may then differ in it."""
    return any(keys & config.defaults.keys() for config in context.dump.node_configs)


def _newest(context: Context) -> Version:
    """Return the newest minor of an agent in the dump; without agents, the minor of the compile."""
    newest = context.cluster.cilium
    for program in programs_of(context.dump):
        seen = program.of
        of_agent = seen.app == AGENT if isinstance(seen, SeenPod) else seen.kind == "DaemonSet"
        if of_agent and program.version:
            newest = max(newest, program.version)
    return newest
