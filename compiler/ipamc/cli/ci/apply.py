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
    """Apply the manifests of clusters, or of some of their shards.

    Applies admission/, then cilium/, then each shard, server-side as ipamc, if the rendered files match the
    lock and the cluster's flags match cilium-config. An object that would take a block from a node whose pods
    use it, or give a node another node's block, is withheld; the others are applied. Conflicts are forced
    only to add blocks to a CiliumNode. Fails if this apply causes an operator error. Names objects
    that left the tree.

    Uses the kubeconfig context that spec.context of the Cluster names, by default the cluster's name, and
    never the current context. Builds with $KUSTOMIZE, kustomize or kubectl; applies with $KUBECTL or kubectl;
    each of their runs may take 10 minutes. CLUSTER is a name below clusters/.

    Options:
        --wait: How long to watch for errors of the operator.
        --timeout: How long to wait for Cilium's CRDs, and for each kube-apiserver to use the policies.
        --check: Skip clusters that 'ipamc compile --locked --check' finds out of date, and exit 1.
        --repair: Apply only objects that are missing in the cluster or differ.
        --prune: Delete objects of ipamc that left the tree and that nothing uses.
        --before-flags: Apply even if cilium-config or the operator's arguments do not match the rendered
            ones.
        --receipt: Write a receipt of each complete apply into this folder, for 'ipamc ci applied'.
    Examples:
        ipamc apply lab  # cilium/, then every shard, in the cluster of the kubeconfig context 'lab'
        ipamc apply lab/nodes/000 lab/nodes/001  # cilium/, then these two shards
        ipamc apply lab --repair  # only objects that are missing there or differ
        ipamc apply lab --context kubernetes-admin@lab  # a context with another name
        ipamc apply lab --prune  # then delete what ipamc applied before and no longer renders
    Exit codes:
        0: applied, and the operator reports no error that this apply caused
        1: an object was lost, refused or withheld, flags do not match the rendered ones, the operator reports
            an error, or an I/O or environment error
    """
    if flags["context"] and len({target.partition("/")[0] for target in targets}) > 1:
        raise click.UsageError("--context is for one cluster: name one cluster")
    wanted: dict[str, list[str]] = {}
    for target in targets:
        name, _, part = target.partition("/")
        there = is_name(name) and disk.is_folder(f"{disk.CLUSTERS}/{name}")
        if not there:
            require_top()
        if not there or (part and not is_part(part)):
            what = "CLUSTER, or CLUSTER/PART such as lab/nodes/000"
            raise click.UsageError(f"no target {target!r}: write {what}")
        not_space(f"{disk.CLUSTERS}/{name}")
        wanted.setdefault(name, []).append(part)
    options, done, bugs = Options(**flags), True, []
    for name, given in wanted.items():
        try:
            if trunk and is_old(name, trunk):
                say(f"{name}: skipped: {trunk} is newer, and its own job applies it")
                continue
            if check and not is_up_to_date(name):
                done = False
                continue
            parts = [] if "" in given else given
            well = apply_cluster(name, parts, options)
            done &= well
            whole = well and not options.repair and not options.before_flags
            if receipt and whole and (reason := write_receipt(receipt, name, parts)):
                say(f"{name}: no receipt written: {reason}")
        except Refused as refused:  # the next cluster is applied
            print_findings(refused.diagnostics, "full")
            say(f"error: {name}: not applied, because a compile refuses it")
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
    """Move refs/ipamc/applied/CLUSTER to HEAD for each cluster that was applied completely.

    FOLDER has the receipts of 'ipamc apply --receipt FOLDER' in this pipeline; they must cover all parts of a
    cluster. A ref never moves back, even if an old job runs again. 'ipamc audit' compares the cluster with
    this commit, too.

    Needs a token that may push: GITHUB_TOKEN with the permission contents: write; IPAMC_TOKEN with the scope
    write_repository and the role Developer; or CI_JOB_TOKEN, if the project lets job tokens push. Without
    one, moves nothing and says so.

    Options:
        --remote: The repository that has the refs: an https URL without a user, or the absolute path of a
            folder.
    Examples:
        ipamc ci applied receipts --remote "$CI_PROJECT_URL.git" --trunk origin/main
            # what the last job of a pipeline does
        ipamc apply lab --receipt receipts && ipamc ci applied receipts --remote /srv/fleet.git
            # the same by hand
    Exit codes:
        0: the refs moved, or did not need to; or the token may not push, and a line says so
        1: a ref did not move, or an I/O or environment error
    """
    from ipamc.workspace.forge import Nowhere, push_credentials
    from ipamc.workspace.remote import MayNotPush, Move, remote

    require_top()
    head, found = commit_named(".", "HEAD"), read_receipts(folder)
    complete = []
    for name in sorted({receipt.cluster for receipt in found}):
        if not is_name(name) or not disk.is_folder(f"{disk.CLUSTERS}/{name}"):
            say(f"{name}: skipped: HEAD has no such cluster")
            continue
        parts = shards_of(parts_of(f"{disk.CLUSTERS}/{name}"))
        if missing := lacking(found, name, head, parts or [FIRST]):
            say(f"{name}: not completely applied: {count(len(missing), 'part')} missing: {names(missing)}")
        elif trunk and is_old(name, trunk):
            say(f"{name}: skipped: {trunk} is newer, and its own job applies it")
        else:
            complete.append(name)
    if not complete:
        say("no ref moved: no cluster was completely applied")
        return DONE
    moves = []
    try:
        with remote(".", url, push_credentials(url)) as there:
            refs = there.refs(f"{git.APPLIED}*")
            for name in complete:
                ref = f"{git.APPLIED}{name}"
                old = refs.get(ref, "")
                if old == head or (old and there.has(head, ref, old)):
                    say(f"{name}: {ref} stays at {old[:12]}{'' if old == head else ', a newer commit'}")
                else:
                    moves.append(Move(ref=ref, old=old, new=head))
            stayed = there.push(moves) if moves else {}
    except (MayNotPush, Nowhere) as problem:
        say(f"skipped: {problem}; audits work without these refs")
        return DONE
    for move in moves:
        said = stayed.get(move.ref)
        say(f"error: {move.ref}: {said}" if said else f"{move.ref}: {head[:12]}")
    return REFUSED if stayed else DONE
