"""`ipamc ci token`: the id token of a job, for kubectl."""

from __future__ import annotations

import json

import click

from ipamc.cli.command import DONE, Verb
from ipamc.workspace.trouble import Trouble


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci token",
            "what kubectl runs, for a user of the kubeconfig with: exec: {command: ipamc, ...}",
        ),
        (
            "ipamc ci token --audience lab",
            "for a cluster that trusts tokens for this audience alone; on GitHub",
        ),
    ),
    refused="this job may have no id token, or an I/O or environment error",
)
@click.option(
    "--audience",
    default="ipamc",
    show_default=True,
    metavar="NAME",
    help="For whom the token is: one of the audiences that the cluster accepts. GitLab's is in the pipeline.",
)
def token(*, audience: str) -> int:
    """Print the id token (OIDC) of this job as an ExecCredential, which kubectl reads.

    It is a step of kubectl, not of people: what it prints is a secret, until it ends after some minutes. The
    kubeconfig needs no secret then, only this user:

        exec: {apiVersion: client.authentication.k8s.io/v1, command: ipamc, args: [ci, token], interactiveMode: Never}

    GitHub needs the permission id-token: write, and is asked for a new token each time. GitLab gives the token
    for the whole job as IPAMC_ID_TOKEN. The pipelines of 'ipamc ci github|gitlab --oidc' have both.
    """
    from ipamc.workspace.forge import Nowhere, id_token

    try:
        found = id_token(audience)
    except Nowhere as problem:
        raise Trouble(str(problem)) from None
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": found},
    }
    click.echo(json.dumps(credential))
    return DONE
