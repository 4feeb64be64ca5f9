"""`ipamc merge-driver`: what git calls to merge a lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipamc import disk, git
from ipamc.cli.terminal import say
from ipamc.cli.verb import DONE, REFUSED, Verb

if TYPE_CHECKING:
    from ipamc.judge import Dropped


@click.command(
    "merge-driver",
    cls=Verb,
    examples=(("git config merge.ipamc.driver 'ipamc merge-driver %O %A %B %P'", "what ipamc init sets"),),
    done="merged",
    refused="conflicts are left between markers, for a person",
)
@click.argument("base", metavar="%O")
@click.argument("ours", metavar="%A")
@click.argument("theirs", metavar="%B")
@click.argument("path", metavar="%P")
def command(*, base: str, ours: str, theirs: str, path: str) -> int:
    """Merge two versions of a lock; git calls it.

    The result goes to %A. Newcomers that clash are told apart by the trunk's lock (git config ipamc.trunk, origin/HEAD by default), else by name; who gives
    way is named, and placed again by the next compile.
    """
    from ipamc.merge import merge

    texts = [disk.read_bytes(each) or b"" for each in (base, ours, theirs)]
    merged = merge(texts[0], texts[1], texts[2], git.show(".", git.trunk("."), path))
    disk.put(Path(ours), merged.text)
    for line in told(path, merged.dropped):
        say(line)
    for conflict in merged.conflicts:
        say(f"{path}: conflict: {conflict}")
    return REFUSED if merged.conflicts else DONE


def told(path: str, dropped: tuple[Dropped, ...]) -> list[str]:
    """Say which newcomers gave way, a line each."""
    return [
        f"{path}: dropped {each.line.block} of node {each.line.node}, "
        f"{f'which {each.holder.node} has' if each.holder.node != each.line.node else f'which has {each.holder.block}'}; compile places it again"
        for each in dropped
    ]
