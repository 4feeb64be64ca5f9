"""`ipamc ci gitlab|github|argocd|flux`: files for CI or a GitOps controller, which are committed.

Argo CD and Flux are steps of their own, not formats of `matrix`: their files are committed and list all
clusters, while a matrix is made for one change and exists only in its pipeline.
"""

from __future__ import annotations

from typing import Any

import click

from ipamc import __version__
from ipamc.cli.ci.install import Install, in_variables, install_options, lacking, put
from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import FORMER, clusters_argument, write_option
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.revision import require_top
from ipamc.workspace.trouble import Trouble

REQUIREMENTS = {"github": ".github/ipamc-requirements.txt", "gitlab": ".gitlab/ipamc-requirements.txt"}
"""Where the jobs of each forge find what to install."""
file_option = write_option("Write this file instead. - is stdout.")


refresh_option = click.option(
    "--refresh",
    is_flag=True,
    help="The schedule also opens a request for each cluster whose nodes are not those of git ('ipamc ci refresh').",
)
audit_option = click.option(
    "--audit",
    is_flag=True,
    help="The schedule also audits each cluster, after its repair, and keeps an issue open while something is wrong ('ipamc ci audit').",
)
oidc_option = click.option(
    "--oidc",
    is_flag=True,
    help="Jobs log in to clusters by an id token of the forge, which 'ipamc ci token' gives to kubectl: the kubeconfig has no secret.",
)
unattended_option = click.option(
    "--unattended",
    is_flag=True,
    help="The schedule's jobs use environments of their own, NAME-unattended, in which nobody has to approve; they repair only clusters in which nothing waits to be applied.",
)


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        ("ipamc ci gitlab", "write or update .gitlab-ci.yml"),
        ("ipamc ci gitlab --refresh", "the same, and keep the inventories up to date"),
        ("ipamc ci gitlab --wheel ci/ipamc-0.1.0-py3-none-any.whl", "install a wheel that is committed"),
        (
            "ipamc ci gitlab --oidc --audit",
            "without a kubeconfig's secret, and with an audit by the schedule",
        ),
        (
            "ipamc ci gitlab --write ci/ipamc.yml",
            "for a pipeline of your own with: include: [{local: ci/ipamc.yml}]",
        ),
    ),
    refused="the file is not one that ipamc wrote, or an I/O or environment error",
)
@refresh_option
@audit_option
@oidc_option
@unattended_option
@install_options(image=True)
@file_option
def gitlab(*, path: str | None, install: Install, **chosen: bool) -> int:
    """Write the pipeline for GitLab: a small parent, whose child pipeline is written by 'ipamc ci matrix'.

    The first lines of the file say what must be set up once. The same version of ipamc writes the same bytes.
    Beside it, .gitlab/ipamc-requirements.txt has the versions and hashes of all that the jobs install.
    """
    return _pipeline("gitlab", path or ".gitlab-ci.yml", install, dict(chosen))


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        ("ipamc ci github", "write or update .github/workflows/ipamc.yml"),
        ("ipamc ci github --refresh", "the same, and keep the inventories up to date"),
        ("ipamc ci github --wheel ci/ipamc-0.1.0-py3-none-any.whl", "install a wheel that is committed"),
        (
            "ipamc ci github --oidc --audit",
            "without a kubeconfig's secret, and with an audit by the schedule",
        ),
        ("ipamc ci github --branch trunk", "apply a branch that is not called main"),
        (
            'ipamc ci github --schedule "*/15 * * * *"',
            "look for what is missing in the clusters every 15 minutes",
        ),
    ),
    refused="the file is not one that ipamc wrote, or an I/O or environment error",
)
@click.option(
    "--branch", default="main", show_default=True, metavar="NAME", help="The branch that is applied."
)
@click.option(
    "--schedule",
    default="17 * * * *",
    show_default=True,
    metavar="CRON",
    help="When the workflow repairs what is missing in the clusters or differs, in UTC.",
)
@refresh_option
@audit_option
@oidc_option
@unattended_option
@click.option(
    "--server",
    is_flag=True,
    help="For GitHub Enterprise Server, which refuses workflows with 'queue' and has the artifacts of v3.",
)
@install_options(image=True)
@file_option
def github(*, branch: str, schedule: str, path: str | None, install: Install, **chosen: bool) -> int:
    """Write the workflow for GitHub Actions.

    The first lines of the file say what must be set up once. The same version of ipamc writes the same bytes.
    Beside it, .github/ipamc-requirements.txt has the versions and hashes of all that the jobs install.
    """
    if in_variables(install):
        raise click.UsageError(
            "jobs of a pull request have no secret, so pip could not log in to this --index: name one that runners read without it, or choose --wheel, --git or --image"
        )
    if chosen["server"] and chosen["unattended"]:
        raise click.UsageError(
            "with --server, one run waits at most: a scheduled one would take the place of a merge, and with --unattended not apply it; omit --unattended"
        )
    # A schedule runs on the default branch, whichever branch is applied.
    quoted = branch.replace("'", "''")
    condition = (
        "github.event_name == 'pull_request' || github.event_name == 'merge_group' || github.event_name == 'push'"
        f" || github.event_name == 'schedule' && github.ref_name == '{quoted}'"
        " || github.event_name == 'workflow_dispatch' && github.ref_name == github.event.repository.default_branch"
    )
    values = {"branch": branch, "schedule": schedule, "condition": condition, **chosen}
    return _pipeline("github", path or ".github/workflows/ipamc.yml", install, values)


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        (
            "ipamc ci argocd --repo ssh://git@example.org/fleet.git --write argocd.yaml",
            "an ApplicationSet for all clusters",
        ),
    ),
    refused="the file is not one that ipamc wrote, or an I/O or environment error",
)
@click.option(
    "--repo", required=True, metavar="URL", help="The URL with which Argo CD reads this repository."
)
@click.option(
    "--revision", default="main", show_default=True, metavar="NAME", help="The branch that is applied."
)
@click.option("--project", default="default", show_default=True, metavar="NAME", help="The AppProject.")
@file_option
def argocd(*, repo: str, revision: str, project: str, path: str | None) -> int:
    """Print an ApplicationSet that makes an Application for each shard.

    It looks for folders itself, and so finds future shards too.
    """
    return write("argocd", path or "-", {"repo": repo, "revision": revision, "project": project})


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        ("ipamc ci flux lab", "for the Flux that runs in the cluster lab"),
        (
            "ipamc ci flux --remote --write flux.yaml",
            "for one Flux that reaches all clusters by the Secrets CLUSTER-kubeconfig",
        ),
    ),
    refused="the file is not one that ipamc wrote, or an I/O or environment error",
)
@clusters_argument
@click.option("--source", default="flux-system", show_default=True, metavar="NAME", help="The GitRepository.")
@click.option(
    "--namespace",
    default="flux-system",
    show_default=True,
    metavar="NAME",
    help="The namespace of the Kustomizations.",
)
@click.option(
    "--remote",
    is_flag=True,
    help="Flux runs elsewhere, and reaches each cluster by the Secret CLUSTER-kubeconfig.",
)
@file_option
def flux(*, clusters: tuple[str, ...], source: str, namespace: str, remote: bool, path: str | None) -> int:
    """Print a Kustomization for cilium/, and one for each shard, which depends on it.

    CLUSTER is a name below clusters/; without one, all of them, which needs --remote. Run it again when a
    cluster has new shards.
    """
    from ipamc.cli.ci.jobs import is_name
    from ipamc.read.rendered import FIRST
    from ipamc.workspace.tree import parts_of

    require_top()
    folders = find(clusters)
    if len(folders) > 1 and not remote:
        raise click.UsageError(
            "a Flux that runs in a cluster applies that cluster only: name the cluster, or give --remote"
        )
    items: list[dict[str, str]] = []
    for folder in folders:
        name = name_of(folder)
        if not is_name(name) or folder != f"{disk.CLUSTERS}/{name}":
            raise Trouble(f"{folder} is not a cluster below {disk.CLUSTERS}/")
        first = f"{name}-{FIRST}"
        for part in parts_of(folder):
            title = f"{name}-{part.replace('/', '-')}"
            built = f"./{folder}/{disk.RENDERED}/{part}"
            items.append(
                {
                    "name": title,
                    "path": built,
                    "after": first if part != FIRST else "",
                    "secret": f"{name}-kubeconfig" if remote else "",
                }
            )
    if not items:
        raise Trouble("nothing is rendered yet: run ipamc compile first")
    return write("flux", path or "-", {"source": source, "namespace": namespace, "items": items})


def _pipeline(forge: str, output: str, install: Install, values: dict[str, Any]) -> int:
    values |= {"version": __version__, "image": install.image, "source": install.source}
    code = write(forge, output, values)
    if output != "-" and not install.image:
        path = REQUIREMENTS[forge]
        text = install.requirements(disk.read_text(path), forge)
        put(path, text, f"ipamc ci {forge}")
        lacking(text, path)
    return code


def write(template: str, output: str, values: dict[str, Any]) -> int:
    """Render one of templates/ci; print it or write it.

    A file that does not start with MARK is not overwritten.
    """
    require_top()
    text = rendered(template, values)
    if output == "-":
        click.echo(text, nl=False)
        return DONE
    put(output, text, f"ipamc ci {template}")
    return DONE


def rendered(template: str, values: dict[str, Any]) -> str:
    """Render one of templates/ci. Every value is quoted as a YAML scalar."""
    from ipamc.render.yaml import compiled

    return compiled(disk.assets("templates/ci")[f"{template}.yaml.j2"])(values)
