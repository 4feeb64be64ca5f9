"""`ipamc ci apply`: what a pipeline does after the merge, and what its scheduled job does (`--repair`).

Here are the options and the choice of clusters; `apply_cluster` has the steps of one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import click

from ipamc.cli.bugs import problem_of, tell_bugs
from ipamc.cli.ci.apply_cluster import Options, apply_cluster
from ipamc.cli.ci.jobs import is_name, touched
from ipamc.cli.command import BUG, DONE, REFUSED, Verb
from ipamc.cli.findings import print_findings
from ipamc.cli.interrupted import accounted, of_apply
from ipamc.cli.options import trunk_option
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import Refused
from ipamc.read.parts import is_part
from ipamc.workspace import disk, git
from ipamc.workspace.revision import known, require_top

DAY = 86_400
"""The longest time to wait, in seconds."""


class Seconds(click.FloatRange):
    """A number of seconds; `nan` is none, although no comparison refuses it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Fails for what is not finite."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return found


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci apply lab",
            "cilium/, then every shard, in the cluster that the context 'lab' of the kubeconfig leads to",
        ),
        ("ipamc ci apply lab/nodes/000 lab/nodes/001", "cilium/, then these two shards"),
        ("ipamc ci apply lab --repair", "only the objects that are missing there or differ"),
        ("ipamc ci apply lab --prune", "then delete what ipamc applied once and does not render any more"),
    ),
    done="applied, and the operator reports no error that this apply caused",
    refused="an object was lost, refused or withheld, flags are not as rendered, the operator reports an error, or an I/O or environment error",
)
@click.argument("targets", nargs=-1, required=True, metavar="CLUSTER[/PART]...")
@click.option(
    "--wait",
    type=Seconds(min=0, max=DAY),
    default=10,
    envvar="IPAMC_WAIT",
    show_envvar=True,
    show_default=True,
    metavar="SECONDS",
    help="How long to watch for errors of the operator.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1, max=DAY),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for Cilium's CRDs.",
)
@trunk_option
@click.option("--repair", is_flag=True, help="Apply only objects that are missing in the cluster or differ.")
@click.option(
    "--prune", is_flag=True, help="Delete objects of ipamc that left the tree and that nothing uses."
)
@click.option(
    "--before-flags",
    is_flag=True,
    help="Apply although cilium-config or the operator's arguments are not as rendered.",
)
@click.option(
    "--receipt",
    default="",
    metavar="FOLDER",
    help="Write what was applied completely into this folder, for 'ipamc ci applied'.",
)
def apply(*, targets: tuple[str, ...], trunk: str, receipt: str, **flags: Any) -> int:
    """Apply the manifests of clusters, or of shards of them.

    CLUSTER is a name below clusters/ and the name of a context in the kubeconfig; the current context is
    never used, because it may be another cluster's. First the parts must have the objects that the lock
    gives, as a compile tells; then every part is built, and must have as many objects as its files. ConfigMap
    cilium-config and the arguments of Deployment cilium-operator must be what the compile assumed. Then
    cilium/ is applied, then shard by shard, server-side as ipamc, without --force-conflicts; the objects that
    the apiserver took are counted.

    An object is withheld, and the others are applied, where it would take a block away from a node whose
    pods still use it, or give a node a block that another CiliumNode has. One that the apiserver refuses is
    named, and stops no other. Before Cilium 1.18, a planned node gets its block when its agent waits for it.

    At the end no CiliumNode may have an error of the operator that this apply caused: of a shard none of its
    nodes, of a whole cluster none at all. One watch tells of them; a role without the verb watch does, too,
    but then CiliumNodes are listed again. For a whole cluster, objects that ipamc applied once and that left
    the tree are named; --prune deletes those that nothing uses.

    With --repair only what is missing or differs is applied. With --trunk, a job that is run again later does not undo a newer state. Builds with $KUSTOMIZE or
    kustomize, else with kubectl; runs $KUBECTL or kubectl. Each of their runs may take 10 minutes. Programs
    are not looked for in relative folders of the PATH.
    """
    wanted: dict[str, list[str]] = {}
    for target in targets:
        name, _, part = target.partition("/")
        known = is_name(name) and disk.is_folder(f"{disk.CLUSTERS}/{name}")
        if not known:
            require_top()
        if not known or (part and not is_part(part)):
            raise click.UsageError(
                f"there is no target {target!r}: CLUSTER, or CLUSTER/PART such as lab/nodes/000"
            )
        wanted.setdefault(name, []).append(part)
    sent: dict[str, bool] = {}
    with accounted(lambda: of_apply(sent)):
        return _apply(wanted, trunk, receipt, Options(**flags), sent)


def _apply(
    wanted: Mapping[str, list[str]], trunk: str, receipt: str, options: Options, sent: dict[str, bool]
) -> int:
    done, bugs = True, []
    for name, given in wanted.items():
        try:
            if trunk and is_old(name, trunk):
                say(f"{name}: skipped, because {trunk} has a newer state, which its own job applies")
                continue
            parts = [] if "" in given else given
            well = apply_cluster(name, parts, options, sent)
            done &= well
            if receipt and well and not options.repair and not options.before_flags:
                _write_receipt(receipt, name, parts)
        except Refused as refused:  # clusters stand alone
            print_findings(refused.diagnostics, "full")
            say(
                f"error: {name}: a compile refuses it, so it is not known what must be there; nothing was applied"
            )
            done = False
        except Exception as exception:  # noqa: BLE001 - clusters stand alone, a bug in one stops no other
            problem = problem_of(exception)
            say(f"error: {name}: {problem.line}")
            bugs.append((name, problem.trace))
            done = False
    if tell_bugs(bugs):
        return BUG
    return DONE if done else REFUSED


def _write_receipt(folder: str, name: str, parts: list[str]) -> None:
    from ipamc.workspace.applied import write_receipt

    if reason := write_receipt(folder, name, parts):
        say(f"{name}: no receipt is written: {reason}")


def is_old(name: str, trunk: str) -> bool:
    """Tell whether a revision is a descendant of HEAD in which a cluster has changed."""
    newer, head = known(".", trunk), known(".", "HEAD")
    differ = git.changed(".", newer) or []
    return git.merge_base(".", newer, head) == head and name in touched(differ, f"{disk.CLUSTERS}/")
