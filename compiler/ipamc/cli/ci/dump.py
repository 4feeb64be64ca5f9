"""`ipamc ci dump`: what a refresh or an audit reads of a cluster, and nothing else."""

from __future__ import annotations

import click

from ipamc.cli.ci.jobs import is_name
from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import FORMER, write_option
from ipamc.cli.terminal import say
from ipamc.workspace import disk
from ipamc.workspace.clusters import folder_of


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        ("ipamc ci dump lab --write lab.json", "what 'ipamc audit lab lab.json' reads"),
        ("ipamc ci dump lab --for refresh | ipamc import lab --refresh -", "bring the inventory up to date"),
    ),
    refused="the cluster cannot be read, or an I/O or environment error; nothing is written",
)
@click.argument("cluster")
@click.option(
    "--for",
    "job",
    type=click.Choice(["refresh", "audit"]),
    default="audit",
    show_default=True,
    help="Who reads it: a refresh reads Nodes and CiliumNodes alone.",
)
@write_option("Write this file.  [default: -, which is stdout]", default="-")
def dump(*, cluster: str, job: str, path: str) -> int:
    """Read a cluster by kubectl, and write one List in JSON.

    CLUSTER is a name below clusters/ and the name of a context in the kubeconfig; the current context is
    never used. Of ConfigMaps and Deployments it reads only those that ipamc needs, by name: the roles that
    'ipamc ci rbac' prints allow this and nothing else. Pods are written without environment variables, and
    those of applications without command lines. Runs $KUBECTL or kubectl.
    """
    from ipamc.review.live.rights import dumped
    from ipamc.workspace.kubectl import Kube
    from ipamc.workspace.live_dump import dump as read
    from ipamc.workspace.rendered import manifests

    folder = folder_there(cluster)
    namespace = manifests(folder).flags.namespace
    wanted = dumped(job, namespace)
    data, missing = read(Kube(context=cluster), wanted, {"kube-system", namespace})
    for line in missing:
        say(f"{cluster}: {line}")
    if path == "-":
        click.echo(data, nl=False)
    else:
        disk.replace(path, data.decode())
    return DONE


def folder_there(cluster: str) -> str:
    """Return the folder of a cluster that a job names. Raises UsageError where there is none."""
    folder = folder_of(cluster)
    if not is_name(cluster) or not disk.is_folder(folder):
        raise click.UsageError(f"there is no cluster {cluster!r} below clusters/")
    return folder
