"""What every verb's help ends with: examples, and exit codes."""

from __future__ import annotations

from typing import Any

import click

DONE, REFUSED, CHANGED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 64, 70, 130


class Verb(click.Command):
    """A command whose help teaches: `examples` are (line, what it does); `done`, `refused` and `changed` say what 0, 1 and 2 mean here."""

    def __init__(
        self, *args: Any, examples: tuple[tuple[str, str], ...], done: str = "done", refused: str, changed: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.done = done
        self.refused = refused
        self.changed = changed

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(self.examples)
        write_exits(formatter, self.done, self.refused, self.changed)


def write_exits(formatter: click.HelpFormatter, done: str, refused: str, changed: str = "") -> None:
    """Write the table of exit codes."""
    with formatter.section("Exit codes"):
        formatter.write_dl(
            [
                (str(DONE), done),
                (str(REFUSED), refused),
                *([(str(CHANGED), changed)] if changed else []),
                (str(USAGE), "usage: an unknown option, cluster, kind or code"),
                (str(BUG), "a bug of ipamc"),
                (str(INTERRUPTED), "interrupted"),
            ]
        )
