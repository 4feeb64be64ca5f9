"""`ipamc ci apply`: what a pipeline does after the merge. Every object that was rendered arrives, or the job fails; nothing is taken by force."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from ipamc.cli.ci.jobs import is_name, touched
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count, names
from ipamc.render.parts import FIRST, is_part
from ipamc.workspace import disk, git
from ipamc.workspace.disk import Trouble
from ipamc.workspace.kubectl import Kube
from ipamc.workspace.rendered import documents, nodes_of, objects_of, parts_of
from ipamc.workspace.revision import known

CRDS = {
    "CiliumNode": "ciliumnodes.cilium.io",
    "CiliumPodIPPool": "ciliumpodippools.cilium.io",
    "CiliumNodeConfig": "ciliumnodeconfigs.cilium.io",
}
PATIENCE = 3
"""How many times `--wait` an error may stay: operators since 1.19 report some that they mend themselves."""


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci apply lab",
            "cilium/, then every shard, in the cluster that the context 'lab' of the kubeconfig leads to",
        ),
        ("ipamc ci apply lab/nodes/000 lab/nodes/001", "cilium/, then these two shards"),
    ),
    done="applied, and the operator finds nothing wrong",
    refused="an object was lost or refused, the operator finds something wrong, or the surroundings failed",
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
    help="How long the operator has to object.",
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
    help="Leave clusters alone that this revision has in a newer state than HEAD.",
)
def apply(*, targets: tuple[str, ...], wait: float, timeout: int, trunk: str) -> int:
    """Apply what is rendered for clusters, or for shards of them.

    CLUSTER is a name below clusters/, and a context of that name in the kubeconfig: never the current one, which may be another cluster's. Every part
    is built first, and has to have as many objects as its files. Then cilium/ is applied, then shard by shard, server-side as ipamc, without
    --force-conflicts; what the apiserver took is counted too. At last no CiliumNode may have an error of the operator: of a shard its nodes', of a
    whole cluster any. With --trunk, a job that is run again later takes nothing back. Builds with $KUSTOMIZE or kustomize, else kubectl; runs $KUBECTL or kubectl.
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
                say(f"{name}: {trunk} has a newer state, which its own job applies: left alone")
                continue
            done &= _apply(name, [] if "" in given else given, wait, timeout)
        except Trouble as trouble:  # clusters stand alone
            say(f"error: {name}: {trouble}")
            done = False
    return DONE if done else REFUSED


def _is_old(name: str, trunk: str) -> bool:
    """Tell whether a revision goes on from HEAD, and changed a cluster since."""
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
    kinds = {each["kind"] for _, _, objects in built for each in objects}
    kube.wait_for_crds(sorted(CRDS[kind] for kind in kinds & CRDS.keys()), timeout)
    refused = []
    for part, text, objects in built:
        if problem := _send(kube, text, len(objects)):
            refused.append(part)
            say(f"error: {name}/{part}: {problem}")
            if part == FIRST:  # pools and flags, on which shards build
                return False
        else:
            say(
                f"{name}/{part}: {count(len(objects), 'object')} applied"
                if objects
                else f"{name}/{part}: nothing to apply"
            )
    if refused:
        say(f"error: {name}: {count(len(refused), 'part')} of {len(built)} not applied: {', '.join(refused)}")
    return _heard(kube, name, nodes_of(folder, given) if given else None, wait) and not refused


def _built(kube: Kube, folder: str, part: str) -> tuple[str, list[dict[str, Any]]]:
    """Build a part; raise Trouble unless exactly the objects of its files come out."""
    text = kube.build(f"{folder}/{disk.RENDERED}/{part}")
    out, into = documents(text), objects_of(folder, part)
    came, meant = {_identity(each) for each in out}, {_identity(each) for each in into}
    if len(out) != len(into) or came != meant:
        raise Trouble(
            f"{folder}/{disk.RENDERED}/{part}: {count(len(into), 'object')} in its files, {len(out)} built"
            + (f"; lost: {names(meant - came)}" if meant - came else "")
            + ". Nothing was applied: run ipamc compile, and see that nobody edits rendered/"
        )
    return text, out


def _identity(document: dict[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    return " ".join(
        str(each) for each in (document.get("kind"), metadata.get("namespace"), metadata.get("name")) if each
    )


def _send(kube: Kube, text: str, objects: int) -> str:
    """Apply the objects of a part; give what went wrong, or "". Each part is a stream of its own: none can swallow the first object of the next."""
    if not objects:
        return ""
    code, said, complaint = kube.apply(text)
    taken = sum(line.endswith("serverside-applied") for line in said.splitlines())
    if code:
        advice = (
            "; somebody else owns these fields, and ipamc takes nothing by force: find out who, and make them stop"
            if "onflict" in complaint
            else ""
        )
        return f"{complaint.strip() or f'kubectl exits with {code}'}{advice}"
    return "" if taken == objects else f"{count(objects, 'object')} sent, {taken} applied"


def _heard(kube: Kube, name: str, only: set[str] | None, wait: float) -> bool:
    """Listen to the operator for `wait` seconds; tell whether it finds nothing wrong, and print what it does. Some errors go by themselves: wait longer for these."""
    start = time.monotonic()
    while True:
        errors = {
            node: error for node, error in kube.verdicts().items() if error and (only is None or node in only)
        }
        passed = time.monotonic() - start
        if passed >= (wait * PATIENCE if errors else wait):
            break
        time.sleep(min(2.0, max(0.1, wait - passed)))
    for node, error in sorted(errors.items())[:20]:
        say(f"error: {name}: CiliumNode {node}: {error}")
    if errors:
        say(
            f"error: {name}: the operator finds something wrong with {count(len(errors), 'node')}: {names(errors)}"
        )
    return not errors
