"""What every verb's help ends with: examples, and exit codes."""

from __future__ import annotations

from typing import Any

import click

DONE, REFUSED, USAGE, BUG, INTERRUPTED = 0, 1, 64, 70, 130


class Verb(click.Command):
    """A command whose help teaches: `examples` are (line, what it does); `done` and `refused` say what 0 and 1 mean here."""

    def __init__(self, *args: Any, examples: tuple[tuple[str, str], ...], done: str = "done", refused: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.done = done
        self.refused = refused

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(self.examples)
        write_exits(formatter, self.done, self.refused)


def write_exits(formatter: click.HelpFormatter, done: str, refused: str) -> None:
    """Write the table of exit codes."""
    with formatter.section("Exit codes"):
        formatter.write_dl(
            [
                (str(DONE), done),
                (str(REFUSED), refused),
                (str(USAGE), "usage: an unknown option, cluster, kind or code"),
                (str(BUG), "a bug of ipamc"),
                (str(INTERRUPTED), "interrupted"),
            ]
        )
