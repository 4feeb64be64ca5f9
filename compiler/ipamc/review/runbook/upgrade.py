"""Cilium goes up one minor after the other; `cilium.version` follows, because it is the lowest minor that runs."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.features import LAST
from ipamc.model.cilium.support import READ_AT, TABLE, Row
from ipamc.model.cluster import Cluster, Version
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import applied, audited, merged
from ipamc.review.runbook.values import Check, Phase, Runbook, Step, Where, alone

INSTEAD = {
    "METALLB": (
        "metallb",
        "bgp: control-plane with a CiliumBGPPeeringPolicy, whose exportPodCIDR announces the same blocks",
    ),
    "BGP_PEERING_POLICY": (
        "control-plane",
        "CiliumBGPClusterConfig and CiliumBGPAdvertisement, which every minor from 1.16 on has",
    ),
}
"""By the name of a capability that a minor no longer has: the value of `bgp` that uses it, and what takes its place."""


def upgrade(run: Commands, to: Version) -> Runbook:
    """Return the steps from the minor of the Cluster to another one, of which this ipamc knows."""
    _, start = run.cluster.cilium
    _, end = to
    return Runbook(
        cluster=run.name,
        change="upgrade",
        title=f"Cilium of {run.name}: 1.{start} to 1.{end}",
        about=(
            "Cilium supports one minor at a time, up and down; read its upgrade notes for what is not about addresses",
            "cilium.version is raised after the last agent runs the new minor: until then everything that is rendered suits both",
        ),
        phases=tuple(_minor(run, minor) for minor in range(start + 1, end + 1)),
        way_back="within a minor: helm rollback to the minor before, after cilium.version is that one again in git",
    )


def _minor(run: Commands, minor: int) -> Phase:
    edit = Step(
        key="edit-version",
        title=f"Set cilium.version to 1.{minor} in the Cluster document",
        where=Where.EDITOR,
        edit=f'spec:\n  cilium:\n    version: "1.{minor}"',
    )
    return alone(
        f"1.{minor - 1} to 1.{minor}",
        *_before(run.cluster, minor),
        _notes(run.cluster, minor),
        *_programs(run, minor),
        *merged(
            run,
            f"cilium-1.{minor}",
            f"Cilium 1.{minor}",
            edits=[edit],
            if_not=f"a rule refuses what 1.{minor} no longer has: ipamc explain CODE says what takes its place",
        ),
        applied(run, if_not="a conflict names the field manager: see the message; nothing is taken by force"),
        audited(run, f"before the next minor, everything runs 1.{minor} and is as git says"),
    )


def rows(cluster: Cluster, minor: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return what a minor gains and what it loses, of that which concerns a cluster's mode."""
    about = [row for row in TABLE if cluster.mode.value in row.modes.split(", ")]
    return (
        tuple(row for row in about if row.since == minor),
        tuple(row for row in about if row.until == minor - 1 and (1, row.until) < LAST),
    )


def _before(cluster: Cluster, minor: int) -> Iterator[Step]:
    """Yield what must be changed before a minor runs that no longer has it."""
    for row in rows(cluster, minor)[1]:
        used_by, instead = INSTEAD.get(row.capability.name, ("", ""))
        if cluster.bgp == used_by:
            yield Step(
                key="before",
                title=f"Before 1.{minor} runs, replace {row.capability.value.partition(',')[0]}",
                why=f"1.{minor} no longer has it, and would announce nothing",
                where=Where.EDITOR,
                edit=instead,
                if_not="compare the routes that the routers have, before and after",
            )


def _notes(cluster: Cluster, minor: int) -> Step:
    gained, lost = rows(cluster, minor)
    new = [f"from now on: {row.capability.value}" for row in gained]
    gone = [f"no longer: {row.capability.value}" for row in lost]
    return Step(
        key="note",
        title=f"What 1.{minor} changes for addresses in {cluster.mode} mode",
        why="; ".join((*new, *gone)) or "nothing that ipamc knows of",
    )


def _programs(run: Commands, minor: int) -> Iterator[Step]:
    cluster = run.cluster
    commands: tuple[str, ...] = ()
    if cluster.managed_by == "helm":
        commands = (run.helm("--reset-then-reuse-values", run.values, version=READ_AT[minor]),)
        why = (
            f"{READ_AT[minor]} is the release whose source ipamc was written by; take the newest patch level"
        )
    else:
        commands, why = (), f"{READ_AT[minor]} is the release whose source ipamc was written by"
    yield Step(
        key="upgrade",
        title=f"Let operator and agents go to 1.{minor}, with the flags as they are",
        why=why,
        where=Where.HERE if commands else Where.EDITOR,
        commands=commands,
        edit=""
        if commands
        else f"the images of daemonset/cilium and deployment/cilium-operator: v{READ_AT[minor]}",
        if_not=f"helm --namespace={cluster.namespace} rollback cilium" if commands else "set the images back",
    )
    for what in ("deployment/cilium-operator", "daemonset/cilium"):
        kind, _, name = what.partition("/")
        word = "daemon set" if kind == "daemonset" else kind
        yield Step(
            key="rolled-out",
            title=f"Wait for {what}",
            check=Check(
                command=run.of_cilium("rollout", "status", what, "--timeout=60m", "--watch=false"),
                expect=f'{word} "{name}" successfully rolled out',
            ),
            if_not="one agent after the other restarts; see the log of one that does not become ready, and do not go on",
        )
