"""`ipamc ci consent`: what the labels of a merge group's pull request agree to, as options of `ipamc plan`."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb
from ipamc.workspace.trouble import Trouble

OPTIONS = {"ipamc/delete-cluster": "--allow-deleted", "ipamc/release": "--allow-released"}
"""By label."""


@click.command(
    cls=Verb,
    examples=(("allow=$(ipamc ci consent)", "in a job of a merge group of GitHub"),),
    done="the options were printed, if there are any",
    refused="this is no merge group, the forge refused, or an I/O or environment error",
)
def consent() -> int:
    """Print the options of 'ipamc plan' to which the labels of a merge group's pull request agree.

    A merge group of GitHub has no labels of its own: those of the pull request that it was made for are asked
    for. Pull requests before it in the queue are part of the base, so each is judged by its own labels. GitHub
    needs GITHUB_TOKEN with the permission pull-requests: read. GitLab gives a merge train's job its labels.
    """
    from ipamc.workspace.forge import Nowhere, labels_of_merge_group

    try:
        labels = labels_of_merge_group()
    except Nowhere as problem:
        raise Trouble(str(problem)) from None
    click.echo(" ".join(option for label, option in OPTIONS.items() if label in labels))
    return DONE
