"""`ipamc ci apply`: what a pipeline does after the merge.

Every rendered object is applied, or the job fails; no field is taken by force.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ipamc.cli.ci.jobs import is_name, touched
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count, names
from ipamc.render.parts import FIRST, is_part
from ipamc.workspace import disk, git
from ipamc.workspace.kubectl import Kube
from ipamc.workspace.rendered import documents, nodes_of, objects_of, parts_of
from ipamc.workspace.revision import known
from ipamc.workspace.trouble import Trouble

CRDS = {
    "CiliumNode": "ciliumnodes.cilium.io",
    "CiliumPodIPPool": "ciliumpodippools.cilium.io",
    "CiliumNodeConfig": "ciliumnodeconfigs.cilium.io",
}


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci apply lab",
            "cilium/, then every shard, in the cluster that the context 'lab' of the kubeconfig leads to",
        ),
        ("ipamc ci apply lab/nodes/000 lab/nodes/001", "cilium/, then these two shards"),
    ),
    done="applied, and the operator reports no error",
    refused="an object was lost or refused, the operator reports an error, or an I/O or environment error",
)
@click.argument("targets", nargs=-1, required=True, metavar="CLUSTER[/PART]...")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=10,
    envvar="IPAMC_WAIT",
    show_envvar=True,
    show_default=True,
    metavar="SECONDS",
    help="How long to watch for errors of the operator.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for Cilium's CRDs.",
)
@click.option(
    "--trunk",
    default="",
    metavar="REV",
    help="Skip clusters that are newer in this revision than in HEAD.",
)
def apply(*, targets: tuple[str, ...], wait: float, timeout: int, trunk: str) -> int:
    """Apply the manifests of clusters, or of shards of them.

    CLUSTER is a name below clusters/ and the name of a context in the kubeconfig; the current context is
    never used, because it may be another cluster's. First every part is built, and must have as many objects
    as its files. Then cilium/ is applied, then shard by shard, server-side as ipamc, without
    --force-conflicts; the objects that the apiserver took are counted. At the end no CiliumNode may have an
    error of the operator: of a shard none of its nodes, of a whole cluster none at all. With --trunk, a job
    that is run again later does not undo a newer state. Builds with $KUSTOMIZE or kustomize, else with
    kubectl; runs $KUBECTL or kubectl.
    """
    wanted: dict[str, list[str]] = {}
    for target in targets:
        name, _, part = target.partition("/")
        known = is_name(name) and disk.is_folder(f"{disk.CLUSTERS}/{name}")
        if not known or (part and not is_part(part)):
            raise click.UsageError(
                f"there is no target {target!r}: CLUSTER, or CLUSTER/PART such as lab/nodes/000",
                click.get_current_context(),
            )
        wanted.setdefault(name, []).append(part)
    done = True
    for name, given in wanted.items():
        try:
            if trunk and _is_old(name, trunk):
                say(f"{name}: skipped, because {trunk} has a newer state, which its own job applies")
                continue
            done &= _apply(name, [] if "" in given else given, wait, timeout)
        except Trouble as trouble:  # clusters stand alone
            say(f"error: {name}: {trouble}")
            done = False
    return DONE if done else REFUSED


def _is_old(name: str, trunk: str) -> bool:
    """Tell whether a revision is a descendant of HEAD in which a cluster has changed."""
    newer, head = known(".", trunk), known(".", "HEAD")
    differ = git.changed(".", newer) or []
    return git.merge_base(".", newer, head) == head and name in touched(differ, f"{disk.CLUSTERS}/")


def _apply(name: str, given: Sequence[str], wait: float, timeout: int) -> bool:
    folder = f"{disk.CLUSTERS}/{name}"
    there = parts_of(folder)
    if FIRST not in there:
        raise Trouble(f"nothing is rendered in {folder}: run ipamc compile {name}")
    if missing := sorted(set(given) - set(there)):
        raise Trouble(f"there is no {', '.join(missing)} in {folder}/{disk.RENDERED}")
    chosen = [part for part in there if part in {FIRST, *given} or not given]
    kube = Kube(context=name)
    built = [(part, *_built(kube, folder, part)) for part in chosen]
    kinds = {document["kind"] for _, _, objects in built for document in objects}
    kube.wait_for_crds(sorted(CRDS[kind] for kind in kinds & CRDS.keys()), timeout)
    refused = []
    for part, text, objects in built:
        if problem := _send(kube, text, len(objects)):
            refused.append(part)
            say(f"error: {name}/{part}: {problem}")
            if part == FIRST:  # pools and flags, which the shards need
                return False
        else:
            say(
                f"{name}/{part}: {count(len(objects), 'object')} applied"
                if objects
                else f"{name}/{part}: nothing to apply"
            )
    if refused:
        say(f"error: {name}: {count(len(refused), 'part')} of {len(built)} not applied: {', '.join(refused)}")
    return (
        _operator_reports_none(kube, name, nodes_of(folder, given) if given else None, wait) and not refused
    )


def _built(kube: Kube, folder: str, part: str) -> tuple[str, list[dict[str, Any]]]:
    """Build a part. Raises Trouble unless it builds to exactly the objects of its files."""
    text = kube.build(f"{folder}/{disk.RENDERED}/{part}")
    out, into = documents(text), objects_of(folder, part)
    came, meant = set(map(_identity, out)), set(map(_identity, into))
    if len(out) != len(into) or came != meant:
        raise Trouble(
            f"{folder}/{disk.RENDERED}/{part}: {count(len(into), 'object')} in its files, {len(out)} built"
            + (f"; lost: {names(meant - came)}" if meant - came else "")
            + ". Nothing was applied: run ipamc compile, and keep everybody from editing rendered/"
        )
    return text, out


def _identity(document: dict[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    parts = (document.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return " ".join(str(part) for part in parts if part)


def _send(kube: Kube, text: str, objects: int) -> str:
    """Apply the objects of a part; return what went wrong, or "".

    Each part is a stream of its own, so that no object of another part is lost.
    """
    if not objects:
        return ""
    done = kube.apply(text)
    if done.problem:
        advice = (
            "; another field manager owns these fields, and ipamc does not use force: find out which one, and remove the fields there"
            if done.conflict
            else ""
        )
        return f"{done.problem}{advice}"
    return "" if done.objects == objects else f"{count(objects, 'object')} sent, {done.objects} applied"


def _operator_reports_none(kube: Kube, name: str, only: set[str] | None, wait: float) -> bool:
    """Watch the CiliumNodes for `wait` seconds; print the operator's errors; return whether none is left."""
    errors = kube.operator_errors(only, wait)
    for node, error in sorted(errors.items())[:20]:
        say(f"error: {name}: CiliumNode {node}: {error}")
    if errors:
        say(f"error: {name}: the operator reports errors for {count(len(errors), 'node')}: {names(errors)}")
    return not errors
