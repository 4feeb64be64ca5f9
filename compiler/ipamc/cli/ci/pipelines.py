"""`ipamc ci gitlab|github|argocd|flux`: files that are committed, and say what CI or a GitOps controller is to do.

Argo CD and Flux are steps of their own, not formats of `matrix`: their files are committed and list all that there is, while a matrix is an answer about one
change, and gone with its pipeline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipamc import __version__
from ipamc.cli.command import DONE, Verb
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import clusters_argument, find, name_of
from ipamc.workspace.disk import Trouble

MARK = "# Written by 'ipamc ci "
"""How the first line of a file begins that may be written again."""

output_option = click.option("--output", metavar="FILE|-", help="Write this file instead; -: print.")


@click.command(
    cls=Verb,
    examples=(
        ("ipamc ci gitlab", "write .gitlab-ci.yml, or bring it up to date"),
        (
            "ipamc ci gitlab --output ci/ipamc.yml",
            "beside a pipeline of your own, which has: include: [{local: ci/ipamc.yml}]",
        ),
    ),
    refused="the file is not ipamc's, or the surroundings failed",
)
@output_option
def gitlab(*, output: str | None) -> int:
    """Write the pipeline for GitLab: a small parent, whose child 'ipamc ci matrix' writes.

    The first lines of the file say what has to be set up once. The same version of ipamc writes the same bytes.
    """
    return write("gitlab", output or ".gitlab-ci.yml", {"version": __version__})


@click.command(
    cls=Verb,
    examples=(
        ("ipamc ci github", "write .github/workflows/ipamc.yml, or bring it up to date"),
        ("ipamc ci github --branch trunk", "the branch that is applied is not called main"),
    ),
    refused="the file is not ipamc's, or the surroundings failed",
)
@click.option(
    "--branch", default="main", show_default=True, metavar="NAME", help="The branch that is applied."
)
@output_option
def github(*, branch: str, output: str | None) -> int:
    """Write the workflow for GitHub Actions.

    The first lines of the file say what has to be set up once. The same version of ipamc writes the same bytes.
    """
    return write(
        "github", output or ".github/workflows/ipamc.yml", {"version": __version__, "branch": branch}
    )


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci argocd --repo ssh://git@example.org/fleet.git --output argocd.yaml",
            "an ApplicationSet for every cluster",
        ),
    ),
    refused="the file is not ipamc's, or the surroundings failed",
)
@click.option("--repo", required=True, metavar="URL", help="This repository, as Argo CD reads it.")
@click.option(
    "--revision", default="main", show_default=True, metavar="NAME", help="The branch that is applied."
)
@click.option("--project", default="default", show_default=True, metavar="NAME", help="The AppProject.")
@output_option
def argocd(*, repo: str, revision: str, project: str, output: str | None) -> int:
    """Print an ApplicationSet that makes an Application of each shard, also of those to come: it looks for folders itself."""
    return write("argocd", output or "-", {"repo": repo, "revision": revision, "project": project})


@click.command(
    cls=Verb,
    examples=(
        ("ipamc ci flux lab", "for the Flux that runs in the cluster lab"),
        (
            "ipamc ci flux --remote --output flux.yaml",
            "for one Flux that reaches every cluster through the Secret CLUSTER-kubeconfig",
        ),
    ),
    refused="the file is not ipamc's, or the surroundings failed",
)
@clusters_argument
@click.option("--source", default="flux-system", show_default=True, metavar="NAME", help="The GitRepository.")
@click.option(
    "--namespace",
    default="flux-system",
    show_default=True,
    metavar="NAME",
    help="Where the Kustomizations are to be.",
)
@click.option(
    "--remote",
    is_flag=True,
    help="Flux runs elsewhere, and reaches each cluster through the Secret CLUSTER-kubeconfig.",
)
@output_option
def flux(*, clusters: tuple[str, ...], source: str, namespace: str, remote: bool, output: str | None) -> int:
    """Print a Kustomization for each shard, after the one of cilium/.

    CLUSTER is a name below clusters/; without one, all of them, which takes --remote. Run it again when a cluster has new shards.
    """
    from ipamc.cli.ci.jobs import is_name
    from ipamc.render.parts import FIRST
    from ipamc.workspace.rendered import parts_of

    folders = find(clusters)
    if len(folders) > 1 and not remote:
        raise click.UsageError(
            "a Flux that runs in its cluster applies that one: name it, or give --remote",
            click.get_current_context(),
        )
    items: list[dict[str, str]] = []
    for folder in folders:
        name = name_of(folder)
        if not is_name(name) or folder != f"{disk.CLUSTERS}/{name}":
            raise Trouble(f"{folder} is no cluster below {disk.CLUSTERS}/")
        first = f"{name}-{FIRST}"
        for part in parts_of(folder):
            title = f"{name}-{part.replace('/', '-')}"
            path = f"./{folder}/{disk.RENDERED}/{part}"
            items.append(
                {
                    "name": title,
                    "path": path,
                    "after": first if part != FIRST else "",
                    "secret": f"{name}-kubeconfig" if remote else "",
                }
            )
    if not items:
        raise Trouble("nothing is rendered yet: run ipamc compile first")
    return write("flux", output or "-", {"source": source, "namespace": namespace, "items": items})


def write(template: str, output: str, values: dict[str, Any]) -> int:
    """Render one of templates/ci, and print it or write it: never over a file that does not begin with MARK."""
    at_top()
    text = rendered(template, values)
    if output == "-":
        click.echo(text, nl=False)
        return DONE
    put(output, text, f"ipamc ci {template}")
    return DONE


def at_top() -> None:
    """Raise Trouble where the working directory is not the top of its repository: the paths in pipelines begin there."""
    top = git.root(".")
    if top is not None and Path(top).resolve() != Path.cwd():
        raise Trouble(f"run it at the top of the repository: cd {top}")


def rendered(template: str, values: dict[str, Any]) -> str:
    """Render one of templates/ci. Every value is quoted as a YAML scalar."""
    from ipamc.render.yaml import compiled

    return compiled(disk.assets("templates/ci")[f"{template}.yaml.j2"])(values)


def put(path: str, text: str, command: str) -> None:
    """Write a file unless somebody else wrote it; say what was done."""
    before = disk.read_text(path)
    if before and not before.startswith(MARK):
        raise Trouble(
            f"{path} was not written by ipamc: move it away, or write another file with '{command} --output FILE' and include that from yours"
        )
    click.echo(f"{path}: {'written' if disk.replace(path, text) else 'unchanged'}", err=True)
