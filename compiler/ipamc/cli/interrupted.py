"""What is said where a signal ends a run: in the middle of what, what is on the disk now, and what to run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.cli.terminal import say
from ipamc.model.diagnostics import names
from ipamc.report.terminal_text import visible
from ipamc.workspace.clusters import name_of
from ipamc.workspace.signals import Stopped

if TYPE_CHECKING:
    from ipamc.cli.runner import ClusterRun, Outcome


class Account(Struct, frozen=True):
    """What a run that was ended has done."""

    said: str
    then: str = ""
    """The command that completes it; "": the same command again."""


NOTHING = Account("nothing was written")


@contextmanager
def accounted(account: Callable[[], Account]) -> Iterator[None]:
    """Where a signal ends the block, say what `account` returns then. The outermost block decides."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as end:
        with suppress(Exception):  # a disk that fails now, too: less is said
            found = account()
            end.__notes__ = [found.said, found.then]
        raise


def of_compile(tasks: Sequence[ClusterRun], outcomes: Mapping[int, Outcome]) -> Account:
    """Return what the disk has of clusters that were to be compiled; `outcomes` are by the number of the task."""
    if tasks[0].check:
        return NOTHING
    if len(tasks) == 1:
        return _of_one(tasks[0], outcomes.get(0))
    parts = of_outcomes(outcomes.values())
    rest = [name_of(task.folder) for index, task in enumerate(tasks) if index not in outcomes]
    rest += [each.name for each in outcomes.values() if each.left and each.left.nothing]
    return Account("; ".join((*parts, *([f"as before: {names(rest)}"] if rest else []))))


def _of_one(task: ClusterRun, outcome: Outcome | None) -> Account:
    from ipamc.model.cilium.versions import text
    from ipamc.model.lock import Consent
    from ipamc.workspace.output import Left

    if outcome is None or not (outcome.done or outcome.trouble or outcome.left):
        return Account(str(Left()))  # not begun, or refused
    said = str(outcome.left) if outcome.left else outcome.line
    if (outcome.left and outcome.left.nothing) or (task.render and task.consent == Consent()):
        return Account(said)
    # The lock has what was consented to. From then on a compile does the rest.
    assumed = f" --assume {text(task.assume)}" if task.assume else ""
    return Account(said, f"ipamc compile {shlex.quote(task.folder)}{assumed}")


def of_outcomes(outcomes: Iterable[Outcome]) -> list[str]:
    """Return what became of several clusters, without those that are as they were."""
    groups: dict[str, list[str]] = {"done": [], "refused": [], "failed, perhaps incomplete": []}
    unfinished = []
    for each in outcomes:
        if each.left and not (each.left.nothing or each.left.complete):
            unfinished.append(f"{each.name}: {each.left}")
        elif each.done or (each.left and each.left.complete and not each.left.nothing):
            groups["done"].append(each.name)
        elif not each.left:
            groups["failed, perhaps incomplete" if each.trouble else "refused"].append(each.name)
    return [*(f"{word}: {names(found)}" for word, found in groups.items() if found), *unfinished]


def imported_so_far(folder: str, files: Mapping[str, str]) -> Account:
    """Return what the disk has of a cluster that was being imported, with these input files."""
    from ipamc.workspace.output import left, there_now

    there = there_now(folder, files)
    if not there:
        return NOTHING
    if len(there) < len(files):
        return Account(
            f"{folder}/ has {len(there)} of {len(files)} input files, from this dump: give it again"
        )
    rest = left(folder)
    said = "ipam.lock and rendered/ are as they were" if rest.nothing else str(rest)
    return Account(
        f"{folder}/ has all input files, {said}", f"ipamc init && ipamc compile {shlex.quote(folder)}"
    )


def refreshed_so_far(folder: str, files: Mapping[str, str]) -> Account:
    """Return what the disk has of an inventory that was being written again."""
    from ipamc.workspace.output import there_now

    there = there_now(folder, files)
    parts = (f"{file} is {'as it is to be' if file in there else 'as it was'}" for file in sorted(files))
    return Account(f"in {folder}/ {', '.join(parts)}")


def of_apply(sent: Mapping[str, bool]) -> Account:
    """Return what a cluster has got, where an apply is ended: parts by name, with whether kubectl was done."""
    if not sent:
        return Account("nothing was applied")
    done = [part for part, whole in sent.items() if whole]
    parts = [f"{part}: some of its objects may be applied" for part, whole in sent.items() if not whole]
    return Account("; ".join(([f"sent: {names(done)}"] if done else []) + parts))


def tell(end: BaseException, head: str, phase: str, arguments: Sequence[str]) -> None:
    """Print the line: `interrupted while reading nodes.yaml: nothing was written; run again: ipamc compile lab`."""
    said, then = getattr(end, "__notes__", ("", ""))
    line = f"{head} while {phase}" if phase else head
    if said:
        line += f": {said}; " + (
            f"run: {then}" if then else f"run again: {shlex.join(('ipamc', *arguments))}"
        )
    say(visible(line))
