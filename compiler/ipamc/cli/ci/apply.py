"""`ipamc apply`: the apply after a merge, and the scheduled `--repair`; `ipamc ci applied`: its refs.

Here are the options and the choice of clusters; `apply_cluster` has the steps of one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from ipamc.cli.ci.apply_cluster import Options, apply_cluster
from ipamc.cli.ci.jobs import is_name, touched
from ipamc.cli.command import BUG, DONE, REFUSED, Verb
from ipamc.cli.findings import print_findings, problem_of, tell_bugs
from ipamc.cli.options import Function, context_option, trunk_option
from ipamc.cli.runner import ClusterRun, compile_all, conclude
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import Refused, count, names
from ipamc.model.limits import LONGEST_WAIT
from ipamc.read.parts import FIRST, is_part, shards_of
from ipamc.workspace import disk, git
from ipamc.workspace.environment import today
from ipamc.workspace.rendered import lacking, read_receipts, write_receipt
from ipamc.workspace.revision import commit_named, require_top
from ipamc.workspace.spaces import not_space
from ipamc.workspace.tree import parts_of


class Seconds(click.FloatRange):
    """A finite number of seconds. click's own range check accepts `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Fails for infinity and `nan`."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return found


def _seconds(name: str, kind: Any, default: int, **more: Any) -> Callable[[Function], Function]:
    return click.option(name, type=kind, default=default, show_default=True, metavar="SECONDS", **more)


@click.command(cls=Verb)
@click.argument("targets", nargs=-1, required=True, metavar="CLUSTER[/PART]...")
@_seconds("--wait", Seconds(min=0, max=LONGEST_WAIT), 10, envvar="IPAMC_WAIT", show_envvar=True)
@_seconds("--timeout", click.IntRange(min=1, max=LONGEST_WAIT), 120)
@trunk_option
@click.option("--check", is_flag=True)
@click.option("--repair", is_flag=True)
@click.option("--prune", is_flag=True)
@click.option("--before-flags", is_flag=True)
@context_option
@click.option("--receipt", default="", metavar="FOLDER")
def apply(*, targets: tuple[str, ...], trunk: str, receipt: str, check: bool, **flags: Any) -> int:
    """Apply the manifests of clusters, or of shards of them.

    CLUSTER is a name below clusters/. The context of the kubeconfig is the cluster's spec.context, by default
    its name; the current context is never used, because it may be another cluster's. First the parts must
    have the objects that the lock gives, as a compile tells; then every part is built, and must have as many
    objects as its files. ConfigMap cilium-config and the arguments of Deployment cilium-operator must be what
    the compile assumed. Then admission/ is applied, if there is one, and an answer of the apiserver must show
    its policies at work; then cilium/, then shard by shard, server-side as ipamc; the objects that the
    apiserver took are counted. Only a CiliumNode that keeps its blocks and gets more is applied with
    --force-conflicts, where somebody else wrote its podCIDRs.

    An object is withheld, and the others are applied, where it would take a block away from a node whose
    pods still use it, or give a node a block that another CiliumNode has. One that the apiserver refuses is
    named, and stops no other. Before Cilium 1.18, a planned node gets its block when its agent waits for it.

    At the end no CiliumNode may have an error of the operator that this apply caused: of a shard none of its
    nodes, of a whole cluster none at all. One watch tells of them; a role without the verb watch does, too,
    but then CiliumNodes are listed again. For a whole cluster, objects that ipamc applied once and that left
    the tree are named; --prune deletes those that nothing uses.

    With --check a cluster is applied only where 'ipamc compile --locked --check' finds it up to date. Another
    one is named, and the next cluster is applied.

    With --repair only what is missing or differs is applied. With --trunk, a job that is run again later does
    not undo a newer state. Builds with $KUSTOMIZE or kustomize, else with kubectl; runs $KUBECTL or kubectl.
    Each of their runs may take 10 minutes. Programs are not looked for in relative folders of the PATH.

    Options:
        --wait: How long to watch for errors of the operator.
        --timeout: How long to wait for Cilium's CRDs, and for each kube-apiserver to use the policies.
        --check: Apply no cluster whose files are not as they are compiled.
        --repair: Apply only objects that are missing in the cluster or differ.
        --prune: Delete objects of ipamc that left the tree and that nothing uses.
        --before-flags: Apply although cilium-config or the operator's arguments are not as rendered.
        --receipt: Write what was applied completely into this folder, for 'ipamc ci applied'.
    Examples:
        ipamc apply lab
            # cilium/, then every shard, in the cluster that the context 'lab' of the kubeconfig leads to
        ipamc apply lab/nodes/000 lab/nodes/001  # cilium/, then these two shards
        ipamc apply lab --repair  # only the objects that are missing there or differ
        ipamc apply lab --context kubernetes-admin@lab  # a context with another name
        ipamc apply lab --prune  # then delete what ipamc applied once and does not render any more
    Exit codes:
        0: applied, and the operator reports no error that this apply caused
        1: an object was lost, refused or withheld, flags are not as rendered, the operator reports an error,
            or an I/O or environment error
    """
    if flags["context"] and len({target.partition("/")[0] for target in targets}) > 1:
        raise click.UsageError("--context is of one cluster: name one")
    wanted: dict[str, list[str]] = {}
    for target in targets:
        name, _, part = target.partition("/")
        there = is_name(name) and disk.is_folder(f"{disk.CLUSTERS}/{name}")
        if not there:
            require_top()
        if not there or (part and not is_part(part)):
            what = "CLUSTER, or CLUSTER/PART such as lab/nodes/000"
            raise click.UsageError(f"there is no target {target!r}: {what}")
        not_space(f"{disk.CLUSTERS}/{name}")
        wanted.setdefault(name, []).append(part)
    options, done, bugs = Options(**flags), True, []
    for name, given in wanted.items():
        try:
            if trunk and is_old(name, trunk):
                say(f"{name}: skipped, because {trunk} has a newer state, which its own job applies")
                continue
            if check and not is_up_to_date(name):
                done = False
                continue
            parts = [] if "" in given else given
            well = apply_cluster(name, parts, options)
            done &= well
            whole = well and not options.repair and not options.before_flags
            if receipt and whole and (reason := write_receipt(receipt, name, parts)):
                say(f"{name}: no receipt is written: {reason}")
        except Refused as refused:  # the next cluster is applied
            print_findings(refused.diagnostics, "full")
            unknown = "so it is not known what must be there; nothing was applied"
            say(f"error: {name}: a compile refuses it, {unknown}")
            done = False
        except Exception as exception:  # noqa: BLE001 - a bug in one cluster stops no other
            problem = problem_of(exception)
            say(f"error: {name}: {problem.line}")
            bugs.append((name, problem.trace))
            done = False
    if tell_bugs(bugs):
        return BUG
    return DONE if done else REFUSED


def is_up_to_date(name: str) -> bool:
    """Compile a cluster without writing; print the problems; return whether there are none."""
    run = ClusterRun(folder=f"{disk.CLUSTERS}/{name}", today=today(), locked=True, check=True)
    (outcome,) = compile_all([run], 1)
    return conclude([outcome], "full") == DONE


def is_old(name: str, trunk: str) -> bool:
    """Return whether `trunk` descends from HEAD and changes the cluster's files."""
    newer, head = commit_named(".", trunk), commit_named(".", "HEAD")
    differ = git.changed(".", newer) or []
    return git.merge_base(".", newer, head) == head and name in touched(differ, f"{disk.CLUSTERS}/")


@click.command(cls=Verb)
@click.argument("folder")
@click.option("--remote", "url", required=True, metavar="URL")
@trunk_option
def applied(*, folder: str, url: str, trunk: str) -> int:
    """Let refs/ipamc/applied/CLUSTER name HEAD, for each cluster that was applied completely.

    FOLDER has what the jobs of this pipeline wrote by 'ipamc apply --receipt FOLDER'. A cluster counts
    when these have all its parts. A ref only moves on: a job that is run again later moves none back. 'ipamc
    audit' compares the cluster with this commit, too; without the ref it compares with git alone.

    A token must be allowed to push: GITHUB_TOKEN with the permission contents: write, or IPAMC_TOKEN with the
    scope write_repository and the role Developer; without one, CI_JOB_TOKEN, where the project lets job
    tokens push. Where none may, nothing is moved, and a line says so.

    Options:
        --remote: The repository that has the refs: a URL of https without a user, or the absolute path of a
            folder.
    Examples:
        ipamc ci applied receipts --remote "$CI_PROJECT_URL.git" --trunk origin/main
            # what the last job of a pipeline does
        ipamc apply lab --receipt receipts && ipamc ci applied receipts --remote /srv/fleet.git
            # the same by hand
    Exit codes:
        0: the refs are moved; or they need not be, or the token may not push, and a line says so
        1: a ref stayed as it is, or an I/O or environment error
    """
    from ipamc.workspace.forge import Nowhere, push_credentials
    from ipamc.workspace.remote import MayNotPush, Move, remote

    require_top()
    head, found = commit_named(".", "HEAD"), read_receipts(folder)
    complete = []
    for name in sorted({receipt.cluster for receipt in found}):
        if not is_name(name) or not disk.is_folder(f"{disk.CLUSTERS}/{name}"):
            say(f"{name}: skipped, because there is no such cluster in HEAD")
            continue
        parts = shards_of(parts_of(f"{disk.CLUSTERS}/{name}"))
        if missing := lacking(found, name, head, parts or [FIRST]):
            say(f"{name}: not applied completely: {count(len(missing), 'part')} missing: {names(missing)}")
        elif trunk and is_old(name, trunk):
            say(f"{name}: skipped, because {trunk} has a newer state, which its own job applies")
        else:
            complete.append(name)
    if not complete:
        say("no cluster was applied completely: no ref is moved")
        return DONE
    moves = []
    try:
        with remote(".", url, push_credentials(url)) as there:
            refs = there.refs(f"{git.APPLIED}*")
            for name in complete:
                ref = f"{git.APPLIED}{name}"
                old = refs.get(ref, "")
                if old == head or (old and there.has(head, ref, old)):
                    say(f"{name}: {ref} stays at {old[:12]}{'' if old == head else ', which is newer'}")
                else:
                    moves.append(Move(ref=ref, old=old, new=head))
            stayed = there.push(moves) if moves else {}
    except (MayNotPush, Nowhere) as problem:
        say(f"skipped: {problem}; an audit works without these refs")
        return DONE
    for move in moves:
        said = stayed.get(move.ref)
        say(f"error: {move.ref}: {said}" if said else f"{move.ref}: {head[:12]}")
    return REFUSED if stayed else DONE
