"""What verbs have in common: help that ends with examples and exit codes, and groups that import late."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

DONE, REFUSED, CHANGED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 64, 70, 130


class Verb(click.Command):
    """A command whose help teaches: `examples` are (line, what it does); `done`, `refused` and `changed` say what 0, 1 and 2 mean here."""

    def __init__(
        self,
        *args: Any,
        examples: tuple[tuple[str, str], ...],
        done: str = "done",
        refused: str,
        changed: str = "",
        **kwargs: Any,
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


class Lazy(click.Group):
    """Commands of which each is imported when it is asked for: help and completion stay quick. `lines` are those of the help, by name."""

    lines: Mapping[str, str]

    def where(self, name: str) -> tuple[str, str]:
        """Give the module below `ipamc.cli` of a command, and what it is called there."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Give the names of the commands."""
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Give a command, or None for a name that is none."""
        if cmd_name not in self.lines:
            return None
        module, attribute = self.where(cmd_name)
        command: click.Command = getattr(importlib.import_module(f"ipamc.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))


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
