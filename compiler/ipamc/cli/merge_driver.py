"""`ipamc merge-driver`: what git calls to merge a lock."""

from __future__ import annotations

from pathlib import Path

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.terminal import say
from ipamc.report.dropped_lines import dropped_lines
from ipamc.report.terminal_text import visible
from ipamc.workspace import disk, git


@click.command(
    "merge-driver",
    cls=Verb,
    examples=(("ipamc merge-driver %O %A %B %P", "what git runs once ipamc init has told it to"),),
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
    from ipamc.lock.merge.merge import merge

    texts = [disk.read_bytes(each) or b"" for each in (base, ours, theirs)]
    merged = merge(texts[0], texts[1], texts[2], git.show(".", git.trunk("."), path))
    disk.put(Path(ours), merged.text)
    for line in dropped_lines(path, merged.dropped, "the trunk"):
        say(line)
    for conflict in merged.conflicts:
        say(visible(f"{path}: conflict: {conflict}"))
    return REFUSED if merged.conflicts else DONE
