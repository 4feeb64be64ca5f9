"""The steps of a runbook, in phases and waves of nodes, each with a check that it worked.

JSON has the fields of these structs, in their order, but for those of runbooks with loops.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Mapping

from msgspec import Struct

from ipamc.model.cluster import Cluster


class Where(enum.StrEnum):
    """The place where a step is done."""

    HERE = "here"
    """In a shell in the top folder of the repository, with a kubeconfig that has the cluster's context."""
    NODE = "node"  # in a shell on the node
    PIPELINE = "pipeline"
    """The pipeline runs the commands after a merge; without a pipeline, a person does, in a shell `here`."""
    FORGE = "forge"  # a merge request is opened and merged; then the commands are run `here`
    EDITOR = "editor"  # a file is edited as `Step.edit` says


class Check(Struct, frozen=True, omit_defaults=True):
    """How to verify a step; the result may take a minute."""

    command: str  # reads only
    expect: str
    """The expected stdout, where one blank stands for any white space; "" is nothing."""
    each: bool = False  # with loops: whether it prints this once for each node, as `$node`


class Step(Struct, frozen=True, kw_only=True):
    """One step. A user's values are quoted with `shlex.quote` in commands, and unchanged elsewhere."""

    key: str  # an identifier for programs, stable when titles change
    title: str  # one clause, in the imperative
    why: str = ""
    nodes: tuple[str, ...] = ()  # the nodes that the step changes; () if it changes none
    where: Where = Where.HERE
    only_if: str = ""  # when the step is needed; "" is always
    edit: str = ""  # what to change in a file
    commands: tuple[str, ...] = ()
    """Lines for a POSIX shell, one after the other; the step failed if one fails."""
    check: Check | None = None
    if_not: str = ""  # what to do if the step failed or the check prints something else


class Wave(Struct, frozen=True):
    """Steps for nodes that change together. A wave is finished before the next one begins."""

    name: str  # the label's value, if waves are made by label; "" in a phase without nodes
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]


class Phase(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a change with a purpose of its own."""

    title: str
    waves: tuple[Wave, ...]  # at least one
    file: str = ""
    """With loops: the file that has the nodes of a wave, a line each; `$wave` is the number of the wave."""


class Runbook(Struct, frozen=True, kw_only=True):
    """The steps of one change of one cluster."""

    cluster: str
    change: str  # a name of the enum in schemas/runbook.output.json
    title: str
    about: tuple[str, ...] = ()
    """What to know before the first step: limits, and the effect on the cluster meanwhile."""
    phases: tuple[Phase, ...]
    way_back: str = ""  # how the whole change is undone


MANY = 12  # a phase with more nodes may have loops
FEW = 25  # the most nodes whose blocks a check lists; for more, the audit is the check
SHORT = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "hostname": "kubernetes.io/hostname",
}
"""Short names of labels."""
SHARE = 10  # without a size, the cluster is divided into this many waves


class Split(Struct, frozen=True, kw_only=True):
    """How nodes are split into waves."""

    size: int = 0  # the most nodes in a wave; 0: a tenth of the cluster, or with `by` all nodes of a value
    by: str = ""
    """A label: nodes with different values are in different waves; "": waves are made by name alone."""


def waves(cluster: Cluster, nodes: Collection[str], split: Split) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the waves as (label's value, nodes), by value, then by name; nodes without the label last."""
    label = SHORT.get(split.by, split.by)
    labels: Mapping[str, Mapping[str, str]] = {node.name: node.labels for node in cluster.nodes}
    groups: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for node in sorted(nodes):
        value = labels.get(node, {}).get(label) if label else ""
        groups[value is None, value or ""].append(node)
    found = []
    for (lacks, value), members in sorted(groups.items()):
        size = split.size or (len(members) if label else max(1, len(cluster.nodes) // SHARE))
        name = f"without {label}" if lacks else value
        found += [(name, tuple(members[start : start + size])) for start in range(0, len(members), size)]
    return tuple(found)
