"""`ipamc ci rbac`: the smallest roles for the jobs of a pipeline, for one cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from ipamc.cli.ci.pipelines import file_option, write
from ipamc.cli.command import Verb
from ipamc.cli.options import FORMER, clusters_argument
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.workspace.clusters import find, name_of

JOBS = ("plan", "apply", "refresh", "audit")
_TEXT = re.compile(r"[!-~]{1,253}").fullmatch


class Subject(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """Who gets a role: `User:NAME`, `Group:NAME` or `ServiceAccount:NAMESPACE/NAME`."""

    name = "KIND:NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        """Return the subject, as a binding has it."""
        if isinstance(value, dict):
            return value
        kind, _, name = str(value).partition(":")
        namespace = ""
        if kind == "ServiceAccount":
            namespace, _, name = name.partition("/")
            known = not subdomain_problem(namespace) and not subdomain_problem(name)
        else:
            known = kind in {"User", "Group"} and bool(_TEXT(name))
        if not known:
            self.fail(
                f"{value!r} is none of User:NAME, Group:NAME, ServiceAccount:NAMESPACE/NAME", param, ctx
            )
        return {"kind": kind, "namespace": namespace, "name": name}


@click.command(
    cls=Verb,
    former=FORMER,
    examples=(
        (
            "ipamc ci rbac lab | kubectl --context lab apply -f -",
            "a ServiceAccount with its roles for each job",
        ),
        ("ipamc ci rbac lab --job apply --prune", "for 'ipamc ci apply --prune', which deletes objects"),
        (
            "ipamc ci rbac lab --job audit --subject User:https://example.org#audit",
            "for somebody whom the cluster knows already",
        ),
    ),
    refused="nothing is rendered yet, the file is not one that ipamc wrote, or an I/O or environment error",
)
@clusters_argument
@click.option(
    "--job",
    "chosen",
    type=click.Choice(JOBS),
    multiple=True,
    help="Only the roles of this job. Repeatable.  [default: all]",
)
@click.option("--prune", is_flag=True, help="Let the job apply delete what left the tree.")
@click.option(
    "--subject",
    type=Subject(),
    help="Who gets the roles, instead of a ServiceAccount that is made for each job.",
)
@file_option
def rbac(
    *,
    clusters: tuple[str, ...],
    chosen: tuple[str, ...],
    prune: bool,
    subject: dict[str, str] | None,
    path: str | None,
) -> int:
    """Print the smallest ClusterRoles and Roles for the jobs of a pipeline in one cluster, and their bindings.

    They follow from what is rendered for this cluster. The job plan needs no access to a cluster. The job
    apply may read what 'ipamc ci apply' compares, and write the kinds that are rendered; only with --prune may
    it delete. It may not create a Node. The jobs refresh and audit may read what 'ipamc ci dump' reads: of the
    ConfigMaps and Deployments those alone that ipamc needs, by name.
    """
    from ipamc.review.live.rights import apply_rights, dump_rights, dumped
    from ipamc.workspace.rendered import manifests

    folders = find(clusters)
    if len(folders) != 1:
        raise click.UsageError("each cluster has roles of its own: name one cluster")
    folder = folders[0]
    there = manifests(folder)
    flags = there.flags
    namespace = flags.namespace
    wanted = [job for job in JOBS[1:] if job in chosen or not chosen]
    rights = {job: dump_rights(dumped(job, namespace)) for job in ("refresh", "audit")}
    if "apply" in wanted:
        objects = [document for part in there.parts for document in there.objects_of(part)]
        rights["apply"] = apply_rights(objects, namespace, flags.data.get("ipam", ""), prune=prune)
    values = {
        "cluster": name_of(folder),
        "namespace": namespace,
        "accounts": subject is None,
        "jobs": [
            {
                "title": f"ipamc-{job}",
                "roles": _roles(rights[job]),
                "subject": subject
                or {"kind": "ServiceAccount", "namespace": namespace, "name": f"ipamc-{job}"},
            }
            for job in wanted
        ],
    }
    return write("rbac", path or "-", values)


def _roles(rules: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a ClusterRole for the rules of the whole cluster, and a Role for each namespace."""
    return [
        {
            "kind": "Role" if namespace else "ClusterRole",
            "namespace": namespace,
            "rules": [rule for rule in rules if rule.namespace == namespace],
        }
        for namespace in sorted({rule.namespace for rule in rules})
    ]
