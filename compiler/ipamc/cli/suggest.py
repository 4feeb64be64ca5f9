"""`ipamc suggest`: what could be written into the inputs."""

from __future__ import annotations

import click

from ipamc.cli.command import Lazy, write_exits


class Kinds(Lazy):
    """What can be suggested."""

    lines = {"pool": "Free space for a pool, in the whole address space."}  # noqa: RUF012 - never written to

    def where(self, name: str) -> tuple[str, str]:
        """Return the module of a kind, and its name there."""
        return f"suggest_{name}", "command"

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write an example and the exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl([("ipamc suggest pool lab --size 19", "a /19 for a new pool of lab")])
        write_exits(formatter, "suggested", "nothing is free, or an input was refused")


@click.group(cls=Kinds)
def command() -> None:
    """Suggest what could be written into the inputs. Writes nothing."""
