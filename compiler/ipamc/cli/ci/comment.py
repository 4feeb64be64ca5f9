"""`ipamc ci comment`: one comment on a merge request or pull request, which is updated in place."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.terminal import say
from ipamc.workspace import disk
from ipamc.workspace.trouble import Trouble

MARK = "<!-- ipamc ci comment -->\n"
"""The first line of our comment: a comment that starts with it and that we wrote is replaced."""
LONGEST = 65_000
"""Characters of a comment: GitHub takes 65,536, GitLab more. `ipamc plan` stays below this by itself."""


@click.command(
    cls=Verb,
    examples=(("ipamc ci comment plan.md", "in a job of a merge request or pull request"),),
    done="posted; or there is nowhere to post, and a line says so",
    refused="the forge refused, or an I/O or environment error",
)
@click.argument("file")
def comment(*, file: str) -> int:
    """Post FILE, which is Markdown, as a comment, or replace the comment that was posted before.

    Only a comment that the owner of the token wrote is replaced, whoever else writes one like it. Where the
    forge does not tell who that is, a new comment is posted, and a line says so.

    GitHub needs GITHUB_TOKEN with the permission pull-requests: write. GitLab needs IPAMC_TOKEN, an access
    token of the project with the scope api, because a job's own token may not write notes. Without a token
    nothing is posted, and a line says so.
    """
    from ipamc.workspace.forge import Nowhere, comments_of_this_job

    found = disk.read_bytes(file)
    if found is None:
        raise Trouble(f"there is no file {file}")
    text = found.decode("utf-8", "replace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n\n… and {len(text) - LONGEST:,} more characters: see the log of the job.\n"
    try:
        comments = comments_of_this_job()
    except Nowhere as problem:
        say(f"no comment posted: {problem}")
        return DONE
    before = None
    try:
        me = comments.forge.me()
    except Trouble as problem:
        say(f"no comment from before is replaced, because it is not known which ones are ours: {problem}")
    else:
        before = max(comments.mine(me, MARK.strip()), key=lambda each: each.id, default=None)
    if before is None:
        comments.create(MARK + text)
    else:
        comments.replace(before, MARK + text)
    say("comment posted" if before is None else "comment updated")
    return DONE
