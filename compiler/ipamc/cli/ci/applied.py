"""`ipamc ci applied`: the refs that say which commit of each cluster was applied last, and completely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ipamc.cli.ci.apply import is_old
from ipamc.cli.ci.jobs import is_name
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.options import trunk_option
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count, names
from ipamc.workspace import disk
from ipamc.workspace.git import APPLIED

if TYPE_CHECKING:
    from ipamc.workspace.git_remote import Move, Remote


@click.command(
    cls=Verb,
    examples=(
        (
            'ipamc ci applied receipts --remote "$CI_PROJECT_URL.git" --trunk origin/main',
            "what the last job of a pipeline does",
        ),
        (
            "ipamc ci apply lab --receipt receipts && ipamc ci applied receipts --remote /srv/fleet.git",
            "the same by hand",
        ),
    ),
    done="the refs are moved; or they need not be, or the token may not push, and a line says so",
    refused="a ref stayed as it is, or an I/O or environment error",
)
@click.argument("folder")
@click.option(
    "--remote",
    "url",
    required=True,
    metavar="URL",
    help="The repository that has the refs: a URL of https without a user, or the absolute path of a folder.",
)
@trunk_option
def applied(*, folder: str, url: str, trunk: str) -> int:
    """Let refs/ipamc/applied/CLUSTER name HEAD, for each cluster that was applied completely.

    FOLDER has what the jobs of this pipeline wrote by 'ipamc ci apply --receipt FOLDER'. A cluster counts when
    these have all its parts. A ref only moves on: a job that is run again later moves none back. 'ipamc audit'
    compares the cluster with this commit, too; without the ref it compares with git alone.

    A token must be allowed to push: GITHUB_TOKEN with the permission contents: write, or IPAMC_TOKEN with the
    scope write_repository and the role Developer; without one, CI_JOB_TOKEN, where the project lets job tokens
    push. Where none may, nothing is moved, and a line says so.
    """
    from ipamc.read.parts import FIRST
    from ipamc.workspace.applied import lacking, read_receipts
    from ipamc.workspace.forge import Nowhere, push_credentials
    from ipamc.workspace.git_remote import MayNotPush, remote
    from ipamc.workspace.revision import known, require_top
    from ipamc.workspace.tree import parts_of

    require_top()
    head, found = known(".", "HEAD"), read_receipts(folder)
    complete = []
    for name in sorted({receipt.cluster for receipt in found}):
        if not is_name(name) or not disk.is_folder(f"{disk.CLUSTERS}/{name}"):
            say(f"{name}: skipped, because there is no such cluster in HEAD")
            continue
        parts = [part for part in parts_of(f"{disk.CLUSTERS}/{name}") if part != FIRST]
        if missing := lacking(found, name, head, parts or [FIRST]):
            say(f"{name}: not applied completely: {count(len(missing), 'part')} missing: {names(missing)}")
        elif trunk and is_old(name, trunk):
            say(f"{name}: skipped, because {trunk} has a newer state, which its own job applies")
        else:
            complete.append(name)
    if not complete:
        say("no cluster was applied completely: no ref is moved")
        return DONE
    try:
        with remote(".", url, push_credentials(url)) as there:
            moves = list(_moves(there, complete, head))
            stayed = there.push(moves) if moves else {}
    except (MayNotPush, Nowhere) as problem:
        say(f"skipped: {problem}; an audit works without these refs")
        return DONE
    for move in moves:
        said = stayed.get(move.ref)
        say(f"error: {move.ref}: {said}" if said else f"{move.ref}: {head[:12]}")
    return REFUSED if stayed else DONE


def _moves(there: Remote, complete: list[str], head: str) -> Iterator[Move]:
    """Yield the refs of complete clusters that are to name HEAD: those that do not name it or a newer commit."""
    from ipamc.workspace.git_remote import Move

    refs = there.refs(f"{APPLIED}*")
    for name in complete:
        ref = f"{APPLIED}{name}"
        old = refs.get(ref, "")
        if old == head or (old and there.has(head, ref, old)):
            say(f"{name}: {ref} stays at {old[:12]}{'' if old == head else ', which is newer'}")
        else:
            yield Move(ref=ref, old=old, new=head)
