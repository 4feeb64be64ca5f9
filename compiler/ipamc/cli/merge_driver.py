"""`ipamc merge-driver`: git calls it to merge a lock."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.terminal import say
from ipamc.report.dropped_lines import dropped_lines
from ipamc.report.terminal_text import visible
from ipamc.workspace import disk, git


@click.command(
    "merge-driver",
    cls=Verb,
    examples=(("ipamc merge-driver %O %A %B %P", "git runs this once 'ipamc init' has configured it"),),
    done="merged",
    refused="conflicts, which stay between markers for a person; or an I/O or environment error",
)
@click.argument("base", metavar="%O")
@click.argument("ours", metavar="%A")
@click.argument("theirs", metavar="%B")
@click.argument("path", metavar="%P")
def command(*, base: str, ours: str, theirs: str, path: str) -> int:
    """Merge two versions of a lock; called by git.

    The result is written to %A. Of two newcomers that overlap, the one in the trunk's lock stays (git config
    ipamc.trunk, origin/HEAD by default), else the one whose name comes first. The other is named on stderr,
    and the next compile places it again.

    Until the merge is done %A has both sides between conflict markers: whatever ends it before leaves them.
    """
    from ipamc.lock.merge import merge, unmerged

    texts = [disk.read_bytes(version) or b"" for version in (base, ours, theirs)]
    disk.put(ours, unmerged(texts[1], texts[2]))
    merged = merge(texts[0], texts[1], texts[2], git.show(".", git.trunk("."), path))
    disk.put(ours, merged.text)
    for line in dropped_lines(path, merged.dropped, "the trunk"):
        say(line)
    for conflict in merged.conflicts:
        say(visible(f"{path}: conflict: {conflict}"))
    return REFUSED if merged.conflicts else DONE
