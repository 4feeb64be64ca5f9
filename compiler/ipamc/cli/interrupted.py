"""What to print when a signal ends a run: the work in progress, the state of the disk, and what to run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from ipamc.cli.terminal import say
from ipamc.report.terminal_text import visible
from ipamc.workspace.signals import Stopped


class Account(Struct, frozen=True):
    """What an interrupted run has completed."""

    said: str
    then: str = ""  # the command that completes it; "": the same command again


NOTHING = Account("nothing was written")


@contextmanager
def accounted(account: Callable[[], Account]) -> Iterator[None]:
    """Attach `account()` to the signal that ends the block. Of nested blocks the outermost one counts."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as end:
        with suppress(Exception):  # the disk fails, too: the line then says less
            found = account()
            end.__notes__ = [found.said, found.then]
        raise


def tell(end: BaseException, head: str, phase: str, arguments: Sequence[str]) -> None:
    """Print a line: `interrupted while reading nodes.yaml: nothing was written; run again: ipamc plan`."""
    said, then = getattr(end, "__notes__", ("", ""))
    line = f"{head} while {phase}" if phase else head
    if said:
        run = f"run: {then}" if then else f"run again: {shlex.join(('ipamc', *arguments))}"
        line += f": {said}; {run}"
    say(visible(line))
