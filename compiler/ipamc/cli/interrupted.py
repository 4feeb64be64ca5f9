"""The account of a run that a signal ends: what it was doing, what is on the disk now, and what to run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from ipamc.cli.terminal import say
from ipamc.report.terminal_text import visible
from ipamc.workspace.signals import Stopped


class Account(Struct, frozen=True):
    """The work that an ended run has done."""

    said: str
    then: str = ""  # the command that completes it; "": the same command again


NOTHING = Account("nothing was written")


@contextmanager
def accounted(account: Callable[[], Account]) -> Iterator[None]:
    """Attach `account()` to the signal that ends the block. The outermost block decides."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as end:
        with suppress(Exception):  # a disk that fails now, too: less is said
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
