"""`ipamc ci gitlab|github|argocd|flux|rbac`: files of templates/ci for CI, GitOps controllers, clusters.

Argo CD and Flux are steps of their own, not formats of `matrix`: their files are committed and list all
clusters, while a matrix is made for one change and exists only in its pipeline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

import click

from ipamc import __version__
from ipamc.cli.ci.install import Install, install_options, put
from ipamc.cli.ci.jobs import is_name, of_environments
from ipamc.cli.ci.runners import for_template, runner_options
from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import FORMER, Function, checked, clusters_argument, gates, several, write_option
from ipamc.law.change import Gate
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read.parts import BEFORE_SHARDS, KINDS, shards_of
from ipamc.review import GATES
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.revision import require_top
from ipamc.workspace.spaces import not_space
from ipamc.workspace.tree import parts_of

JOBS = ("plan", "apply", "refresh", "audit")
_TEXT = re.compile(r"[!-~]{1,253}").fullmatch
REQUIREMENTS = {"github": ".github/ipamc-requirements.txt", "gitlab": ".gitlab/ipamc-requirements.txt"}
"""Where the jobs of each forge find what to install."""
ACTION = ".github/actions/ipamc/action.yml"
"""What each job of GitHub does first."""
OWN = {"github": ".github/actions/ipamc-setup/action.yml", "gitlab": ".gitlab/ipamc-own.yml"}
"""A file of the user, which a pipeline includes if it is there."""
file_option = write_option("Write this file instead. - is stdout.")


def _asked(words: Collection[str]) -> str:
    """Return the gates for which a request needs a label, in their order, with commas; "" for `none`."""
    found = gates(words, "none")
    return ",".join(gate for gate in GATES if gate in found)


_GATE: dict[str, Any] = {
    "default": [_asked(GATES.keys() - {Gate.LEAVE, "capacity"})],
    "help": "Changes that need a label ipamc/WORD: words of 'ipamc plan --fail-on', or none.",
}
gate_option = click.option(
    "--gate", "gates", multiple=True, callback=checked(_asked), show_default=True, metavar="WORD,…", **_GATE
)

_OF_THE_SCHEDULE = {
    "--refresh": "On schedule, also open a request for each cluster whose nodes differ from git "
    "('ipamc ci refresh').",
    "--audit": "On schedule, also audit each cluster after its repair, and keep an issue open while "
    "something is wrong ('ipamc ci audit').",
    "--oidc": "Jobs log in to clusters with an id token of the forge, which 'ipamc ci token' passes to "
    "kubectl: the kubeconfig has no secret.",
    "--unattended": "Scheduled jobs use their own environments NAME-unattended, without approval; they "
    "repair only clusters in which no change waits to be applied.",
}


def _environments(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Return the text if every job can parse its patterns of environments."""
    try:
        of_environments(text, ())
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from None
    return text


def _schedule_options(command: Function) -> Function:
    names = "Forge environments that clusters share, as in 'ipamc ci matrix'."
    command = click.option(
        "--environments", default="", metavar="NAME=PATTERN,...", callback=_environments, help=names
    )(command)
    for option, help in reversed(_OF_THE_SCHEDULE.items()):
        command = click.option(option, is_flag=True, help=help)(command)
    return command


@click.command(cls=Verb, former=FORMER)
@gate_option
@_schedule_options
@runner_options("tag", "tag")
@install_options(image=True)
@file_option
def gitlab(*, path: str | None, install: Install, **chosen: Any) -> int:
    """Write the pipeline for GitLab: a small parent, and a child pipeline that 'ipamc ci matrix' writes.

    Also writes .gitlab/ipamc-requirements.txt, with versions and hashes of all that the jobs install. The
    jobs need one of --wheel, --git, --sha256 and --image; by default they use the wheel of this ipamc in ci/.
    The same version of ipamc writes the same bytes.

    Put your own jobs and settings into .gitlab/ipamc-own.yml, and those of the child pipeline into
    .gitlab/ipamc-own-child.yml; the pipelines include them.

    Examples:
        ipamc ci gitlab  # write or update .gitlab-ci.yml
        ipamc ci gitlab --refresh  # also keep the inventories up to date
        ipamc ci gitlab --wheel ci/ipamc-0.1.0-py3-none-any.whl  # install a committed wheel
        ipamc ci gitlab --tag office --apply-tag 'prod-*=prod,linux'  # for runners in private networks
        ipamc ci gitlab --oidc --audit  # with a kubeconfig without a secret, and with a scheduled audit
        ipamc ci gitlab --write ci/ipamc.yml
            # for a pipeline of your own with: include: [{local: ci/ipamc.yml}]
    Exit codes:
        1: the file is not one that ipamc wrote, or an I/O or environment error
    """
    return _pipeline("gitlab", path or ".gitlab-ci.yml", install, dict(chosen))


@click.command(cls=Verb, former=FORMER)
@click.option("--branch", default="main", show_default=True, metavar="NAME")
@click.option("--schedule", default="17 * * * *", show_default=True, metavar="CRON")
@gate_option
@_schedule_options
@runner_options("runner", "label")
@click.option("--server", is_flag=True)
@install_options(image=True)
@file_option
def github(*, branch: str, schedule: str, path: str | None, install: Install, **chosen: Any) -> int:
    """Write the workflow for GitHub Actions.

    Also writes .github/ipamc-requirements.txt, with versions and hashes of all that the jobs install. The
    jobs need one of --wheel, --git, --sha256 and --image; by default they use the wheel of this ipamc in ci/.
    The same version of ipamc writes the same bytes.

    Put your own steps into .github/actions/ipamc-setup/action.yml; each job runs them before ipamc.

    Options:
        --branch: The branch that is applied.
        --schedule: When the workflow repairs what is missing in the clusters or differs, in UTC.
        --server: For GitHub Enterprise Server, which refuses 'queue' in workflows and needs v3 of the
            artifact actions.
    Examples:
        ipamc ci github  # write or update .github/workflows/ipamc.yml
        ipamc ci github --refresh  # also keep the inventories up to date
        ipamc ci github --wheel ci/ipamc-0.1.0-py3-none-any.whl  # install a committed wheel
        ipamc ci github --runner self-hosted,office --apply-runner 'prod-*=self-hosted,prod'
            # for runners in private networks
        ipamc ci github --oidc --audit  # with a kubeconfig without a secret, and with a scheduled audit
        ipamc ci github --branch trunk  # apply a branch that is not called main
        ipamc ci github --schedule "*/15 * * * *"  # repair the clusters every 15 minutes
    Exit codes:
        1: the file is not one that ipamc wrote, or an I/O or environment error
    """
    if re.search(r"\$\{[A-Z]", install.index):  # pip needs a variable of the job
        raise click.UsageError(
            "jobs of a pull request have no secret, so pip cannot log in to this --index: "
            "use an index without login, or --wheel, --git or --image"
        )
    if chosen["server"] and chosen["unattended"]:
        raise click.UsageError(
            "with --server only one run waits, so a scheduled run could replace a merge "
            "and with --unattended not apply it: omit --unattended"
        )
    # A schedule and a run by hand may be of any branch or tag; what reaches a cluster runs for this one.
    quoted = branch.replace("'", "''")
    chosen["on_branch"] = f"github.ref == 'refs/heads/{quoted}'"
    chosen["runner"] = chosen["runner"] or ("ubuntu-24.04",)
    values = {"branch": branch, "schedule": schedule, **chosen}
    return _pipeline("github", path or ".github/workflows/ipamc.yml", install, values)


def _wave(number: int, key: str, value: str) -> dict[str, str]:
    """Return a kustomize patch that sets the Argo CD sync wave of the objects that a key selects."""
    meta = {"name": "any", "annotations": {"argocd.argoproj.io/sync-wave": str(number)}}
    text = json.dumps({"apiVersion": "v1", "kind": "any", "metadata": meta})
    return {"key": key, "value": value, "text": text}


_WAVES = (
    _wave(-2, "group", "admissionregistration.k8s.io"),
    _wave(-1, "kind", "ConfigMap|CiliumNodeConfig|CiliumPodIPPool"),
)
"""Policies come before the objects that they check, and pools before the nodes that use them. Without
waves Argo CD applies objects of these kinds in the order of their names (gitops-engine, sync_tasks.go)."""


large_option = click.option("--large", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")


@click.command(cls=Verb, former=FORMER)
@click.option("--repo", required=True, metavar="URL")
@click.option("--revision", default="main", show_default=True, metavar="NAME")
@click.option("--project", default="default", show_default=True, metavar="NAME")
@large_option
@file_option
def argocd(*, repo: str, revision: str, project: str, large: int, path: str | None) -> int:
    """Print an ApplicationSet that makes an Application for each shard.

    It finds folders by itself, also future shards. With --large, a cluster with at most N shards has one
    Application for all of them; run it again when a cluster grows beyond that.

    Options:
        --repo: The URL with which Argo CD reads this repository.
        --revision: The branch that is applied.
        --project: The AppProject.
        --large: The most shards of a cluster that one Application applies; 0: each shard has its own.
    Examples:
        ipamc ci argocd --repo ssh://git@example.org/fleet.git --write argocd.yaml
            # an ApplicationSet for all clusters
        ipamc ci argocd --repo ssh://git@example.org/fleet.git --large 4 --write argocd.yaml
            # one Application per cluster of up to about 1,000 nodes
    Exit codes:
        1: the file is not one that ipamc wrote, or an I/O or environment error
    """
    values: dict[str, Any] = {"repo": repo, "revision": revision, "project": project, "waves": _WAVES}
    shards = {"name": "ipamc", "whole": False}
    if not large:
        return write("argocd", path or "-", values | {"whole": False, "sets": [shards]})
    require_top()
    more = [name_of(folder) for folder in find() if len(shards_of(parts_of(folder))) > large]
    sets = [{"name": "ipamc-clusters", "whole": True}, *([shards] if more else [])]
    parts = (*BEFORE_SHARDS, *(f"{kind}/*" for kind in KINDS))
    return write("argocd", path or "-", values | {"whole": True, "sets": sets, "large": more, "parts": parts})


@click.command(cls=Verb, former=FORMER)
@clusters_argument
@click.option("--source", default="flux-system", show_default=True, metavar="NAME")
@click.option("--namespace", default="flux-system", show_default=True, metavar="NAME")
@click.option("--remote", is_flag=True)
@large_option
@file_option
def flux(
    *, clusters: tuple[str, ...], source: str, namespace: str, remote: bool, large: int, path: str | None
) -> int:
    """Print a Kustomization for cilium/, and one for each shard, which depends on it.

    Run it again when a cluster has new shards. With --large, a cluster with at most N shards has one
    Kustomization for all shards of a kind, which finds new ones by itself. CLUSTER is a name below clusters/;
    by default all clusters, which needs --remote.

    Options:
        --source: The GitRepository.
        --namespace: The namespace of the Kustomizations.
        --remote: Flux runs elsewhere, and reaches each cluster by the Secret CLUSTER-kubeconfig.
        --large: The most shards of a cluster that one Kustomization applies; 0: each shard has its own.
    Examples:
        ipamc ci flux lab  # for the Flux that runs in the cluster lab
        ipamc ci flux --remote --write flux.yaml
            # for one Flux that reaches all clusters by the Secrets CLUSTER-kubeconfig
    Exit codes:
        1: the file is not one that ipamc wrote, or an I/O or environment error
    """
    require_top()
    folders = find(clusters)
    for folder in folders if clusters else ():
        not_space(folder)
    if len(folders) > 1 and not remote:
        only = "name the cluster, or give --remote"
        raise click.UsageError(f"a Flux in a cluster applies only that cluster: {only}")
    items: list[dict[str, str]] = []
    for folder in folders:
        name = name_of(folder)
        if not is_name(name) or folder != f"{disk.CLUSTERS}/{name}":
            raise EnvironmentFailure(f"{folder} is not a cluster below {disk.CLUSTERS}/")
        secret = f"{name}-kubeconfig" if remote else ""
        parts = parts_of(folder)
        if len(shards_of(parts)) <= large:
            # Of a folder without a kustomization Flux builds those below (pkg/kustomize_generator.go).
            parts = tuple(dict.fromkeys(part.partition("/")[0] for part in parts))
        for part in parts:
            before = [each for each in parts[: parts.index(part)] if each in BEFORE_SHARDS]
            title, after = f"{name}-{part.replace('/', '-')}", f"{name}-{before[-1]}" if before else ""
            path_of = f"./{folder}/{disk.RENDERED}/{part}"
            items.append({"name": title, "path": path_of, "after": after, "secret": secret})
    if not items:
        raise EnvironmentFailure("nothing is rendered yet: run ipamc compile")
    return write("flux", path or "-", {"source": source, "namespace": namespace, "items": items})


def _subject(value: str | None) -> dict[str, str] | None:
    """Return the subject of a binding: of `User:NAME`, `Group:NAME` or `ServiceAccount:NAMESPACE/NAME`."""
    if value is None:
        return None
    kind, _, name = value.partition(":")
    namespace = ""
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        known = not subdomain_problem(namespace) and not subdomain_problem(name)
    else:
        known = kind in {"User", "Group"} and bool(_TEXT(name))
    if not known:
        one = "User:NAME, Group:NAME, ServiceAccount:NAMESPACE/NAME"
        raise click.BadParameter(f"{value!r} is not one of {one}")
    return {"kind": kind, "namespace": namespace, "name": name}


@click.command(cls=Verb, former=FORMER)
@clusters_argument
@several("--job", "chosen", type=click.Choice(JOBS), metavar="JOB,…")
@click.option("--prune", is_flag=True)
@click.option("--subject", callback=checked(_subject), metavar="KIND:NAME")
@file_option
def rbac(
    *,
    clusters: tuple[str, ...],
    chosen: tuple[str, ...],
    prune: bool,
    subject: dict[str, str] | None,
    path: str | None,
) -> int:
    """Print the smallest roles, with their bindings, for the jobs of a pipeline in one cluster.

    They follow from what is rendered for this cluster. apply may read what 'ipamc apply' compares, write the
    rendered kinds, and delete only with --prune; it cannot create a Node. refresh and audit may read what
    'ipamc dump' reads, only the named ConfigMaps and Deployments. plan needs no access to a cluster.

    Options:
        --job: Only the roles of these jobs.  [default: all]
        --prune: Let the job apply delete objects that left the tree.
        --subject: Who gets the roles.  [default: a new ServiceAccount for each job]
    Examples:
        ipamc ci rbac lab | kubectl --context lab apply -f -  # a ServiceAccount with its roles for each job
        ipamc ci rbac lab --job apply --prune  # for 'ipamc apply --prune', which deletes objects
        ipamc ci rbac lab --job audit --subject User:https://example.org#audit
            # for a user that the cluster knows already
    Exit codes:
        1: nothing is rendered yet, the file is not one that ipamc wrote, or an I/O or environment error
    """
    from ipamc.review.live.rights import apply_rights, dump_rights, dumped
    from ipamc.workspace.rendered import manifests

    folders = find(clusters)
    if len(folders) != 1:
        raise click.UsageError("each cluster has its own roles: name one cluster")
    folder = not_space(*folders)
    there = manifests(folder)
    flags, namespace = there.flags, there.flags.namespace
    jobs = []
    for job in JOBS[1:]:
        if chosen and job not in chosen:
            continue
        if job == "apply":
            objects = [document for part in there.parts for document in there.objects_of(part)]
            rights = apply_rights(objects, namespace, flags.data.get("ipam", ""), prune=prune)
        else:
            rights = dump_rights(dumped(job, namespace))
        # A ClusterRole for the rules of the whole cluster, and a Role for each namespace.
        roles = [
            {
                "kind": "Role" if name else "ClusterRole",
                "namespace": name,
                "rules": [rule for rule in rights if rule.namespace == name],
            }
            for name in sorted({rule.namespace for rule in rights})
        ]
        account = {"kind": "ServiceAccount", "namespace": namespace, "name": f"ipamc-{job}"}
        jobs.append({"title": f"ipamc-{job}", "roles": roles, "subject": subject or account})
    values = {"cluster": name_of(folder), "namespace": namespace, "accounts": subject is None, "jobs": jobs}
    return write("rbac", path or "-", values)


def _pipeline(forge: str, output: str, install: Install, values: dict[str, Any]) -> int:
    require_top()
    path, own = REQUIREMENTS[forge], OWN[forge]
    # It is refused where jobs could not get ipamc: no file is written then.
    text = "" if install.image else install.requirements(disk.read_text(path), forge)
    values |= for_template(values["runner"], values["apply_runner"])
    values |= {
        "version": __version__,
        "image": install.image,
        "source": install.source,
        "own": own if disk.read_bytes(own) is not None else "",
    }
    action = rendered("github-action", values) if forge == "github" else ""
    put(output, rendered(forge, values), f"ipamc ci {forge}")
    for name, content in ((ACTION, action), (path, text)):
        if content and output != "-":
            put(name, content, f"ipamc ci {forge}")
    return DONE


def write(template: str, output: str, values: dict[str, Any]) -> int:
    """Render one of templates/ci; print it, or write it unless the file is another program's."""
    require_top()
    put(output, rendered(template, values), f"ipamc ci {template}")
    return DONE


def rendered(template: str, values: dict[str, Any]) -> str:
    """Render one of templates/ci. Every value is quoted as a YAML scalar."""
    from ipamc.render.yaml import compiled

    return compiled(disk.assets("templates/ci")[f"{template}.yaml.j2"])(values)
