"""`ipamc which`: who holds an address, or which blocks a node has, in every cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, print_findings
from ipamc.cli.query import Asked, asked
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import count
from ipamc.model.lock import State
from ipamc.workspace import disk
from ipamc.workspace.clusters import clusters_argument, find, inputs_of, name_of
from ipamc.workspace.history import Past, at_option, look_back

if TYPE_CHECKING:
    from ipamc.report.holders import InputAnswer, LockAnswer


@click.command(
    cls=Verb,
    examples=(
        ("ipamc which 100.162.224.7", "who has this address, in every cluster below clusters/"),
        ("ipamc which 100.162.224.0/24 zones", "all lines over a CIDR, in one cluster"),
        ("ipamc which bj-001", "the blocks of a node"),
        ("ipamc which 100.162.224.7 --at 2026-11-21", "who had it at the end of that day, UTC"),
    ),
    done="a line of a lock lies over it",
    refused="nobody does: it is free, released, reserved, excluded or in no pool; or a lock could not be read",
)
@click.argument("target", metavar="IP|CIDR|NODE")
@clusters_argument
@at_option
@click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="What goes to stdout.",
)
@format_option
def command(*, target: str, clusters: tuple[str, ...], at: str, output: str, style: str) -> int:
    """Show who holds an address, or which blocks a node has, by the locks as they stand. Writes nothing.

    An address or a CIDR gives every line over it, whether held, pending, quarantined or released. Where there is none, the pools are read: is it free, reserved,
    excluded or pinned? CLUSTER is a folder, or a name below clusters/; without one, all of them.
    """
    from ipamc.report import holders as report_holders
    from ipamc.report.findings import format_of

    question = asked(target)
    look = _Look(question, look_back(at, clusters) if at else None)
    answers: list[LockAnswer | InputAnswer] = list(look.holders(clusters))
    held = any(each.line.state is not State.RELEASED for each in look.found)
    if not answers and question.block:
        with progress("reading the pools"):
            answers = list(look.vacant())
    if output == "json":
        past = {"at": look.past.record()} if look.past else {}
        click.echo(
            json.dumps(
                {
                    "version": report_holders.VERSION,
                    "asked": target,
                    **past,
                    "held": held,
                    **report_holders.records(answers),
                },
                indent=2,
            )
        )
    elif answers:
        click.echo(report_holders.table(answers), nl=False)
    if not held and not format_of(style).document:
        say(look.nobody(answers))
    print_findings(
        list(dict.fromkeys(look.problems.findings)), style, look.problems.failures
    )  # a lock that is refused is so twice
    return DONE if held and not look.problems else REFUSED


class _Look:
    """A look through clusters. What one of them refuses does not keep the others from answering."""

    def __init__(self, question: Asked, past: Past | None) -> None:
        self.question = question
        self.past = past
        self.folders: list[str] = []
        self.found: list[LockAnswer] = []
        self.problems = Problems()
        self.unread = False
        """Some lock could not be read."""

    def holders(self, clusters: tuple[str, ...]) -> list[LockAnswer]:
        """Give the lines that answer, a cluster after the other. Reads locks only, and of these only what answers."""
        self.folders = list(self.past.folders if self.past else find(clusters))
        locks = self.past.locks() if self.past else {}
        for folder in self.folders:
            with self.problems.of(folder):
                path, text = locks[folder] if self.past else (f"{folder}/{disk.LOCK}", disk.read_lock(folder))
                if text is not None:
                    self.found += self._holders(name_of(folder), path, text)
        self.unread = bool(self.problems)
        return self.found

    def _holders(self, name: str, path: str, text: bytes) -> Iterator[LockAnswer]:
        from ipamc.lock.file import named
        from ipamc.lock.lookup import of, over
        from ipamc.lock.rules import row_at
        from ipamc.report.holders import LockAnswer

        found = set(over(text, path, self.question.block) if self.question.block else ())
        found.update(of(text, path, self.question.node) if self.question.node else ())
        if named(text) != name:
            raise disk.Trouble(
                f"{path} is the lock of cluster {named(text)!r}, not of {name!r}: restore this cluster's, or delete the copied one"
            )
        for line, number in sorted(found, key=lambda each: each.number):
            yield LockAnswer(cluster=name, line=line, at=row_at(path, number, b""))

    def vacant(self) -> Iterator[InputAnswer]:
        """Yield what the inputs say of a block that no lock has a line over."""
        from ipamc.cli.show import survey
        from ipamc.model.lock import Consent
        from ipamc.read.locate import Texts
        from ipamc.report.holders import InputAnswer
        from ipamc.review.explain_address import explain_address

        for folder in self.folders if self.question.block else ():
            with self.problems.of(folder):
                inputs = (
                    self.past.inputs(folder) if self.past else inputs_of(folder, today="", consent=Consent())
                )
                cluster, lock = survey(inputs)
                some = explain_address(cluster, lock, self.question.block) if self.question.block else []
                texts = Texts(inputs.sources, [each.at for each in some])
                yield from (
                    InputAnswer(cluster=name_of(folder), unheld=unheld, at=texts.span(unheld.at))
                    for unheld in some
                )

    def nobody(self, answers: list[LockAnswer | InputAnswer]) -> str:
        """Say that nobody holds it."""
        text, where = self.question.text, count(len(self.folders), "cluster")
        unread = ", as far as locks could be read" if self.unread else ""
        if self.question.block is None:
            return f"no lock of {where} has a line of {text}{unread}; what it would get, and why: ipamc why {text}"
        return f"nobody holds {text}{unread}" + (
            "" if answers or self.problems else f", and no pool of {where} has it"
        )
