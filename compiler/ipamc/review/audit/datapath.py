"""Rules about keys of cilium-config that ipamc does not render: what a mode asks of the rest of an agent."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.operator_list import AGENT
from ipamc.model.cilium.versions import can, since, text
from ipamc.model.cluster import Mode, Version
from ipamc.model.diagnostics import Related, error, warning
from ipamc.model.dump import SeenPod
from ipamc.read.dump.programs import is_true, programs_of
from ipamc.review.audit.causes import Suppressed
from ipamc.review.audit.context import Context, Result
from ipamc.review.live.objects import NODE_CONFIG

_EGRESS = "egress-masquerade-interfaces"
_BPF = "enable-bpf-masquerade"
_ROUTES = "enable-endpoint-routes"
_MASQUERADE = {4: "enable-ipv4-masquerade", 6: "enable-ipv6-masquerade"}


def masquerades_one_range(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0934: in multi-pool and crd mode, agents that masquerade with iptables know the interfaces."""
    config, cluster = context.config, context.cluster
    if config is None or cluster.mode not in {Mode.MULTI_POOL, Mode.CRD}:
        return
    families = [family for family in cluster.families if is_true(config, _MASQUERADE[family])]
    keys = {_EGRESS, _BPF, *_MASQUERADE.values()}
    if not families or is_true(config, _BPF) or config.get(_EGRESS, "").strip() or _set(context, keys):
        return
    first = text(since(Capability.EGRESS_INTERFACES))
    if can(_newest(context), Capability.EGRESS_INTERFACES):
        make, effect = error, f"an agent of {first} or newer ends when it starts"
    else:
        make, effect = (
            warning,
            f"pods of other blocks may not be masqueraded; from {first} on no agent starts",
        )
    message = f"cilium-config has {_MASQUERADE[families[0]]}, and neither {_EGRESS} nor {_BPF}: {effect}"
    also = [Related(cluster.field("spec", "ipam", "mode"), f"{cluster.mode} mode")]
    fix = f'set {_BPF}: "true"; or {_EGRESS}, such as "eth+", by whatever owns cilium-config'
    yield Result(make("IPC0934", context.config_at, message, also=also, help=fix))


def routes_to_no_block(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0935: in multi-pool mode before Cilium 1.18, agents have a route to each pod."""
    config, cluster = context.config, context.cluster
    if config is None or cluster.mode is not Mode.MULTI_POOL:
        return
    native = config.get("routing-mode") == "native"
    old = not can(cluster.cilium, Capability.LOCAL_ROUTES)
    if native and old and not is_true(config, _ROUTES) and not _set(context, {_ROUTES}):
        message = f"cilium-config has no {_ROUTES}: other nodes may not reach the pods of Cilium"
        also = [Related(cluster.field("spec", "ipam", "mode"), f"{cluster.mode} mode")]
        first = text(since(Capability.LOCAL_ROUTES))
        fix = f'set {_ROUTES}: "true", by whatever owns cilium-config; or upgrade to {first}'
        yield Result(
            warning("IPC0935", context.config_at, f"{message} {text(cluster.cilium)}", also=also, help=fix)
        )


def _set(context: Context, keys: set[str]) -> bool:
    """Tell whether some CiliumNodeConfig sets one of some keys: agents then differ in them."""
    return any(
        keys & ((document.get("spec") or {}).get("defaults") or {}).keys()
        for document in context.live.values()
        if document["kind"] == NODE_CONFIG
    )


def _newest(context: Context) -> Version:
    """Return the newest minor of an agent in the dump; without any, the one that was compiled for."""
    newest = context.cluster.cilium
    for program in programs_of(context.dump):
        seen = program.of
        of_agent = seen.app == AGENT if isinstance(seen, SeenPod) else seen.kind == "DaemonSet"
        if of_agent and program.version:
            newest = max(newest, program.version)
    return newest
