"""`ipamc ci token`, `comment` and `consent`: steps that ask the forge of the job."""

from __future__ import annotations

import json

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.terminal import say
from ipamc.model.limits import LONGEST_COMMENT
from ipamc.review import GATES
from ipamc.workspace import disk
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.forge import Nowhere, comments_of_this_job, id_token, labels_of_merge_group

MARK = "<!-- ipamc ci comment -->\n"
"""The first line of our comment: a comment that starts with it and that we wrote is replaced."""


@click.command(cls=Verb)
@click.option("--audience", default="ipamc", show_default=True, metavar="NAME")
def token(*, audience: str) -> int:
    """Print the id token (OIDC) of this job as an ExecCredential for kubectl.

    kubectl runs this step; the output is a secret until it expires after some minutes. The kubeconfig then
    needs no secret, only this user:

        exec: {apiVersion: client.authentication.k8s.io/v1, command: ipamc, args: [ci, token],
        interactiveMode: Never}

    On GitHub, the job needs the permission id-token: write; each call requests a new token. GitLab sets one
    token per job as IPAMC_ID_TOKEN. The pipelines of 'ipamc ci github|gitlab --oidc' have both.

    Options:
        --audience: An audience that the cluster accepts. On GitLab, the pipeline sets it.
    Examples:
        ipamc ci token  # what kubectl runs, for a user of the kubeconfig with: exec: {command: ipamc, ...}
        ipamc ci token --audience lab  # for a cluster that accepts only this audience; on GitHub
    Exit codes:
        1: this job may have no id token, or an I/O or environment error
    """
    head = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    click.echo(json.dumps({**head, "status": {"token": id_token(audience)}}))
    return DONE


@click.command(cls=Verb)
@click.argument("file")
def comment(*, file: str) -> int:
    """Post FILE, which is Markdown, as a comment, or replace the comment that was posted before.

    Replaces only a comment of the token's owner. If the forge does not show who that is, posts a new comment
    and says so.

    GitHub needs GITHUB_TOKEN with the permission pull-requests: write. GitLab needs IPAMC_TOKEN, an access
    token of the project with the scope api, because a job token cannot write notes. Without a token, posts
    nothing and says so.

    Examples:
        ipamc ci comment plan.md  # in a job of a merge request or pull request
    Exit codes:
        0: posted; or there is nowhere to post, and a line says so
        1: the forge refused, or an I/O or environment error
    """
    found = disk.read_bytes(file)
    if found is None:
        raise EnvironmentFailure(f"no file {file}")
    text = found.decode("utf-8", "replace")
    if len(text) > LONGEST_COMMENT:
        more = len(text) - LONGEST_COMMENT
        text = f"{text[:LONGEST_COMMENT]}\n\n… and {more:,} more characters: see the log of the job.\n"
    try:
        comments = comments_of_this_job()
    except Nowhere as problem:
        say(f"no comment posted: {problem}")
        return DONE
    before = None
    try:
        me = comments.forge.me()
    except EnvironmentFailure as problem:
        say(f"posting a new comment, because the token's owner is unknown: {problem}")
    else:
        before = max(comments.mine(me, MARK.strip()), key=lambda each: each.id, default=None)
    if before is None:
        comments.create(MARK + text)
    else:
        comments.replace(before, MARK + text)
    say("comment posted" if before is None else "comment updated")
    return DONE


@click.command(cls=Verb)
def consent() -> int:
    """Print the labels ipamc/WORD of a merge group's pull request, comma-separated, for 'ipamc plan --allow'.

    A merge group of GitHub has no labels, so this reads those of its pull request. Pull requests ahead in the
    queue belong to the base, so each is judged by its own labels. GitHub needs GITHUB_TOKEN with the
    permission pull-requests: read. On GitLab, the job of a merge train has its labels.

    Examples:
        labels=$(ipamc ci consent)  # in a job of a merge group of GitHub
    Exit codes:
        0: the labels were printed, if there are any
        1: this is no merge group, the forge refused, or an I/O or environment error
    """
    # Known labels alone: a line break in another one would write outputs of the step.
    labels = {*labels_of_merge_group()}
    click.echo(",".join(label for gate in GATES if (label := f"ipamc/{gate}") in labels))
    return DONE
