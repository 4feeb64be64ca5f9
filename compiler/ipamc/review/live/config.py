"""cilium-config and the operator's arguments in the cluster, against what the compile assumed.

Who owns the flags decides what a difference means. Where Helm or a kustomization rolls them out, it may do
so after an apply: then what is only missing yet is a warning, and what is not as assumed is refused. Where
ipamc applies the ConfigMap itself, agents and operator read it at their next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import Assumed, listed
from ipamc.model.diagnostics import names
from ipamc.review.live.blocks import without
from ipamc.review.live.objects import Object

AGENT, OPERATOR = "cilium", "cilium-operator"
CONFIG = "cilium-config"
IPAM_ARGUMENT = "--ipam"

Level = Literal["refused", "restart", "later"]
"""`refused`: nothing is applied. `restart`: the ConfigMap is, then the operator must read it first.
`later`: a warning."""


class Running(Struct, frozen=True, kw_only=True):
    """The flags in the cluster."""

    data: Mapping[str, str] | None
    """The keys of cilium-config; None where there is no such ConfigMap."""
    arguments: Sequence[str] | None
    """Words of the operator's command line; None where there is no such Deployment."""


class Difference(Struct, frozen=True, kw_only=True):
    """A flag that is not as it was assumed."""

    key: str
    """A key of cilium-config, or IPAM_ARGUMENT."""
    level: Level
    text: str
    help: str


def running(config_map: Object | None, deployment: Object | None) -> Running:
    """Read ConfigMap cilium-config and Deployment cilium-operator, as kubectl prints them."""
    words = None
    if deployment is not None:
        pod = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
        containers = pod.get("containers") or []
        chosen = [each for each in containers if each.get("name") == OPERATOR] or containers
        words = [
            word
            for container in chosen
            for text in (*(container.get("command") or ()), *(container.get("args") or ()))
            for word in str(text).split()
        ]
    return Running(data=None if config_map is None else config_map.get("data") or {}, arguments=words)


def ipam_argument(words: Iterable[str]) -> str:
    """Return the value of the last --ipam on a command line; "" without one."""
    value, follows = "", False
    for word in words:
        if follows:
            value, follows = word, False
        elif word == "--ipam":
            follows = True
        elif word.startswith("--ipam="):
            value = word.partition("=")[2]
    return value


def differences(assumed: Assumed, found: Running, given: Iterable[Block]) -> list[Difference]:
    """Return what is not as assumed. `given` are the blocks of CiliumNodes: nothing of them is free.

    Without ConfigMap and Deployment, Cilium is not installed yet, and nothing differs.
    """
    return [
        *(_arguments(assumed, found) if found.arguments is not None else ()),
        *(_keys(assumed, found.data, given) if found.data is not None else ()),
    ]


def _arguments(assumed: Assumed, found: Running) -> Iterator[Difference]:
    """Compare --ipam: it wins over the ConfigMap, and the last one over those before it.

    With `kubernetes` the operator allocates nothing, as in crd mode.
    """
    value = ipam_argument(found.arguments or ())
    mode, live = assumed.data.get("ipam", ""), (found.data or {}).get("ipam", "cluster-pool")
    if assumed.bystander and value != "kubernetes" and (value or live) == "cluster-pool":
        yield Difference(
            key=IPAM_ARGUMENT,
            level="refused",
            text=f"the operator runs with {f'--ipam={value}' if value else 'no --ipam'}, and hands out blocks by itself: it must run with --ipam=kubernetes",
            help="roll out operator.extraArgs of cilium/helm-values.yaml, or cilium/component; a later values file replaces that whole list, so repeat the argument there",
        )
    elif not assumed.bystander and value not in {"", mode} and (mode, value) != ("crd", "kubernetes"):
        yield Difference(
            key=IPAM_ARGUMENT,
            level="refused",
            text=f"the operator runs with --ipam={value}, which overrides the ConfigMap: it must follow ipam: {mode}",
            help="remove --ipam from the arguments of Deployment cilium-operator (Helm: operator.extraArgs)",
        )


def _keys(assumed: Assumed, live: Mapping[str, str], given: Iterable[Block]) -> Iterator[Difference]:
    rollout = "roll out what is in cilium/ (helm-values.yaml or component)"
    mode, there = assumed.data.get("ipam", ""), live.get("ipam", "cluster-pool")
    if mode != there:
        yield Difference(
            key="ipam",
            level="later" if assumed.applied else "refused",
            text=f"cilium-config has ipam: {there}, rendered is {mode}",
            help="restart agents and operator after this run"
            if assumed.applied
            else f"{rollout}; where the mode changes, what is rendered comes before the flags: --before-flags",
        )
    for family in (4, 6):
        yield from _family(assumed, live, family, rollout)
    if assumed.adopts and there == mode:
        yield from _operator_list(assumed, live, given, rollout)
    for key in ("annotate-k8s-node", "auto-create-cilium-pod-ip-pools"):
        if assumed.data.get(key, "") != live.get(key, "") and key in assumed.data and not assumed.applied:
            yield Difference(
                key=key,
                level="refused" if key == "annotate-k8s-node" else "later",
                text=f"cilium-config has {key}: {live.get(key) or 'nothing'}, rendered is {assumed.data[key]}",
                help=rollout,
            )


def _family(assumed: Assumed, live: Mapping[str, str], family: int, rollout: str) -> Iterator[Difference]:
    key = f"enable-ipv{family}"
    wanted, there = assumed.data.get(key, ""), live.get(key, "true")
    if wanted == "true" and there == "false":
        yield Difference(
            key=key,
            level="later",
            text=f"cilium-config has {key}: false, rendered is true",
            help=f"{rollout} after this run",
        )
    elif wanted == "false" and there == "true" and key in live:
        yield Difference(
            key=key,
            level="later" if assumed.applied else "refused",
            text=f"cilium-config has {key}: true, rendered is false: agents wait for a block of this family",
            help="restart agents and operator after this run" if assumed.applied else rollout,
        )


def _operator_list(
    assumed: Assumed, live: Mapping[str, str], given: Iterable[Block], rollout: str
) -> Iterator[Difference]:
    """Compare what the operator hands out (adopt): it must have nothing free that is not rendered."""
    level: Level = "restart" if assumed.applied else "refused"
    restart = f"restart the operator (kubectl -n {assumed.namespace} rollout restart deployment/{OPERATOR}), and run this again"
    given = tuple(given)
    for family in (4, 6):
        if assumed.data.get(f"enable-ipv{family}") != "true":
            continue
        key = f"cluster-pool-ipv{family}-cidr"
        wanted, there = listed(assumed.data, family), listed(live, family)
        more = without(there, wanted)
        if free := without(more, given):
            yield Difference(
                key=key,
                level=level,
                text=f"the operator may hand out {names(map(str, free))}, which cluster-pool-ipv{family}-cidr must not have",
                help=restart if assumed.applied else f"{rollout}, and {restart}",
            )
        elif more:
            yield Difference(
                key=key,
                level="later",
                text=f"cluster-pool-ipv{family}-cidr in the cluster has blocks that nodes use: {names(map(str, more))}",
                help=f"{rollout}: the operator gives them away when these nodes are deleted",
            )
        if missing := without(wanted, there):
            yield Difference(
                key=key,
                level="later",
                text=f"cluster-pool-ipv{family}-cidr in the cluster lacks {names(map(str, missing))}",
                help=f"{rollout}, and restart the operator" if not assumed.applied else restart,
            )
        key = f"cluster-pool-ipv{family}-mask-size"
        if key in assumed.data and key in live and assumed.data[key] != live[key]:
            yield Difference(
                key=key,
                level=level,
                text=f"cilium-config has {key}: {live[key]}, rendered is {assumed.data[key]}",
                help=restart if assumed.applied else f"{rollout}, and {restart}",
            )
