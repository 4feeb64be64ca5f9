"""Compares live flags of Cilium with those that a compile assumed, and judges errors of its operator.

The owner of the flags decides what a difference means. Helm or a kustomization may roll them out after an
apply: then a flag that is still missing is a warning, and a different value is refused. If ipamc applies the
ConfigMap itself, agents and operator read it at their next start.

Errors stay in `operator-status` after their cause is gone (cilium issue 28758). A node that is pinned to its
blocks gets `pool empty` whenever its agent asks for more than they hold. With `adopt` the operator's list has
no block of ours, and it reports an error for each of our nodes (model/cilium/operator_list.py). These three
are no failures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from ipamc.model.address_sets import covers, without
from ipamc.model.cidr import Block, read_blocks
from ipamc.model.cilium.flags import arguments, is_true, operator_keys, parse_bool, same_value
from ipamc.model.cilium.operator_list import OPERATOR, Assumed, listed
from ipamc.model.diagnostics import names
from ipamc.read.dump.programs import words_of
from ipamc.review.live.objects import Object

IPAM_ARGUMENT = "--ipam"

Level = Literal["refused", "restart", "later"]
"""`refused`: nothing is applied.
`restart`: only the ConfigMap is applied, and the operator must read it first. `later`: a warning."""


class Running(Struct, frozen=True, kw_only=True):
    """The flags in the cluster."""

    data: Mapping[str, str] | None  # the keys of cilium-config; None if it does not exist
    arguments: Sequence[str] | None
    """The operator's arguments; None if its Deployment does not exist."""

    @property
    def values(self) -> Mapping[str, str]:
        """The keys of cilium-config, after the operator's arguments."""
        return {**(self.data or {}), **operator_keys(self.arguments or ())}


class FlagDifference(Struct, frozen=True, kw_only=True):
    """A flag whose live value differs from the assumed one."""

    key: str  # a key of cilium-config, or IPAM_ARGUMENT
    level: Level
    text: str
    help: str


def running(config_map: Object | None, deployment: Object | None) -> Running:
    """Read ConfigMap cilium-config and Deployment cilium-operator in the form that kubectl prints."""
    words = None if deployment is None else words_of(deployment)
    return Running(data=None if config_map is None else config_map.get("data") or {}, arguments=words)


def differences(assumed: Assumed, there: Running, given: Iterable[Block]) -> list[FlagDifference]:
    """Return flags that differ from the assumed ones. `given` are blocks of CiliumNodes, which are not free.
    Without ConfigMap and Deployment, Cilium is not installed yet, and nothing differs.
    """
    return [
        *(_arguments(assumed, there) if there.arguments is not None else ()),
        *(_keys(assumed, there, given) if there.data is not None else ()),
    ]


def _arguments(assumed: Assumed, there: Running) -> Iterator[FlagDifference]:
    """Compare --ipam: it overrides the ConfigMap, and its last occurrence counts.
    With `kubernetes` the operator allocates nothing, as in crd mode.
    """
    value = arguments(there.arguments or ()).get("ipam", "")
    mode, live = assumed.data.get("ipam", ""), (there.data or {}).get("ipam", "cluster-pool")
    runs = f"the operator runs with {f'--ipam={value}' if value else 'no --ipam'}"
    if assumed.bystander and value != "kubernetes" and (value or live) == "cluster-pool":
        text = f"{runs}, so it hands out blocks itself: it must run with --ipam=kubernetes"
        repeat = "repeat the argument in later values files, which replace the whole list"
        way_out = f"roll out operator.extraArgs of cilium/helm-values.yaml, or cilium/component; {repeat}"
        yield FlagDifference(key=IPAM_ARGUMENT, level="refused", text=text, help=way_out)
    elif not assumed.bystander and value not in {"", mode} and (mode, value) != ("crd", "kubernetes"):
        text = f"{runs}, which overrides ipam: {mode} of the ConfigMap"
        way_out = "remove --ipam from the arguments of Deployment cilium-operator (Helm: operator.extraArgs)"
        yield FlagDifference(key=IPAM_ARGUMENT, level="refused", text=text, help=way_out)


_ROLLOUT = "roll out cilium/helm-values.yaml or cilium/component"
_RESTART = "restart agents and operator after this run"


def _keys(assumed: Assumed, run: Running, given: Iterable[Block]) -> Iterator[FlagDifference]:
    applied = assumed.applied
    refused: Level = "later" if applied else "refused"
    live = run.values
    mode, there = assumed.data.get("ipam", ""), live.get("ipam", "cluster-pool")
    if mode != there:
        text = f"cilium-config has ipam: {there}, but {mode} is rendered"
        first = f"{_ROLLOUT}; to change the mode, first apply what is rendered: --before-flags"
        yield FlagDifference(key="ipam", level=refused, text=text, help=_RESTART if applied else first)
    for family in (4, 6):
        key = f"enable-ipv{family}"
        wanted, has = parse_bool(assumed.data.get(key, "")), is_true({key: "true", **live}, key)
        if wanted and not has:
            text = f"cilium-config has {key}: {live[key]}, but true is rendered"
            yield FlagDifference(key=key, level="later", text=text, help=f"{_ROLLOUT} after this run")
        elif wanted is False and has and key in live:
            waits = "agents wait for a block of this family"
            text = f"cilium-config has {key}: {live[key]}, but false is rendered: {waits}"
            yield FlagDifference(key=key, level=refused, text=text, help=_RESTART if applied else _ROLLOUT)
    if assumed.adopts and there == mode:
        yield from _operator_list(assumed, live, given)
    for key, level in _OTHERS:
        if key in assumed.data and not (applied or same_value(assumed.data[key], live.get(key, ""))):
            text = (
                f"cilium-config has {key}: {live.get(key) or 'nothing'}, but {assumed.data[key]} is rendered"
            )
            yield FlagDifference(key=key, level=level, text=text, help=_ROLLOUT)


_OTHERS: tuple[tuple[str, Level], ...] = (
    ("annotate-k8s-node", "refused"),
    ("auto-create-cilium-pod-ip-pools", "later"),
)


def _operator_list(
    assumed: Assumed, live: Mapping[str, str], given: Iterable[Block]
) -> Iterator[FlagDifference]:
    """Compare the CIDRs that the operator gives out (adopt): those not rendered must have nothing free."""
    level: Level = "restart" if assumed.applied else "refused"
    command = f"kubectl -n {assumed.namespace} rollout restart deployment/{OPERATOR}"
    restart = f"restart the operator ({command}), and run this again"
    way_out = restart if assumed.applied else f"{_ROLLOUT}, and {restart}"
    given = tuple(given)
    for family in (4, 6):
        if not is_true(assumed.data, f"enable-ipv{family}"):
            continue
        key = f"cluster-pool-ipv{family}-cidr"
        wanted, there = listed(assumed.data, family), listed(live, family)
        more = without(there, wanted)
        if free := without(more, given):
            text = f"the operator may hand out {names(map(str, free))}, which {key} must not contain"
            yield FlagDifference(key=key, level=level, text=text, help=way_out)
        elif more:
            text = f"{key} in the cluster still contains blocks of nodes: {names(map(str, more))}"
            gives = f"{_ROLLOUT}: the operator reuses the blocks after these nodes are deleted"
            yield FlagDifference(key=key, level="later", text=text, help=gives)
        if missing := without(wanted, there):
            text = f"{key} in the cluster lacks {names(map(str, missing))}"
            later = restart if assumed.applied else f"{_ROLLOUT}, and restart the operator"
            yield FlagDifference(key=key, level="later", text=text, help=later)
        key = f"cluster-pool-ipv{family}-mask-size"
        if key in assumed.data and key in live and assumed.data[key] != live[key]:
            text = f"the operator has {key}: {live[key]}, but {assumed.data[key]} is rendered"
            yield FlagDifference(key=key, level=level, text=text, help=way_out)


_EMPTY = re.compile(
    r'failed to allocate ipv[46] address for node "[^"]*" from pool "([^"]*)": pool empty'
).search
UNKNOWN = re.compile(r"allocator not configured for the requested CIDR (\S+)").search


class Run(Struct, frozen=True, kw_only=True):
    """The objects that an apply changed and rendered: errors are judged by them."""

    before: Mapping[str, str] = field(default_factory=dict)  # the operator's errors before the apply, by node
    nodes: Collection[str] = ()
    """Nodes of which this run changed an object that the operator allocates by: not a Node."""
    pools: Collection[str] = ()  # the CiliumPodIPPools that this run changed
    own_pools: Collection[str] = ()  # the CiliumPodIPPools of single nodes
    given: Mapping[str, Collection[Block]] = field(default_factory=dict)
    """With `adopt`, the blocks that are rendered for each node."""
    operator_list: Sequence[Block] = ()  # with `adopt`, the rendered CIDRs that the operator may give out


class Judgement(Struct, frozen=True, kw_only=True):
    """The errors by node. Only `failures` fail the job."""

    failures: Mapping[str, str]
    before: Mapping[str, str]  # earlier errors, on nodes that this run did not change
    restart: Mapping[str, str]  # nodes that are right once the operator restarts with its list


def judge(errors: Mapping[str, str], run: Run) -> Judgement:
    """Classify errors. An error has a line for each of its causes; the most severe one decides."""
    failures, before, restart = {}, {}, {}
    for node, text in errors.items():
        causes = [line.strip() for line in text.splitlines() if line.strip()]
        left = [cause for cause in causes if not _is_harmless(cause, node, run)]
        changed = node in run.nodes or any(f'"{pool}"' in text for pool in run.pools)
        unknown = [_unknown(cause) for cause in left]
        if not left:
            continue
        if run.before.get(node) == text and not changed:
            before[node] = text
        elif all(block is not None and covers(run.operator_list, block) for block in unknown):
            restart[node] = text  # the operator reads its list when it starts
        else:
            failures[node] = text
    return Judgement(failures=failures, before=before, restart=restart)


def _is_harmless(cause: str, node: str, run: Run) -> bool:
    """Return whether a cause is no error: the node's own pool is used up, or ipamc alone manages the block.
    A node shall have no more than the blocks of its own pool. The operator's list has no block of ipamc's.
    """
    empty, block = _EMPTY(cause), _unknown(cause)
    if empty and empty[1] in run.own_pools and empty[1].partition(".")[2] == node:
        return True
    return block is not None and block in run.given.get(node, ()) and not covers(run.operator_list, block)


def _unknown(cause: str) -> Block | None:
    match = UNKNOWN(cause)
    return next(iter(read_blocks([match[1]])[0]), None) if match else None
