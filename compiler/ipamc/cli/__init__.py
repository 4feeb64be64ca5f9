"""The command line: one module a verb, imported when it is asked for; exit codes; nothing else knows that there is a terminal.

A verb is a module of this package with a `command` that gives its exit code, and an entry of VERBS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc import __version__
from ipamc.cli.command import BUG, INTERRUPTED, REFUSED, USAGE, Lazy, write_exits

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS = {
    "compile": "Write the lock, and render the manifests.",
    "lock": "Write the lock alone; give consent.",
    "plan": "Say what changes, against a git revision or the disk.",
    "show": "Show how full the pools are.",
    "which": "Show who holds an address, or which blocks a node has.",
    "why": "Show why a node has the blocks that it has.",
    "ci": "Write the pipelines; what their jobs run.",
    "init": "Start a cluster, and prepare the repository.",
    "schema": "Print the JSON Schemas, for editors.",
    "explain": "Explain a finding by its code.",
    "completion": "Print the completion script of a shell.",
    "merge-driver": "Merge two versions of a lock; git calls it.",
}
"""By name, in the order of `ipamc --help`, which prints these lines."""


class Verbs(Lazy):
    """The verbs."""

    lines = VERBS

    def where(self, name: str) -> tuple[str, str]:
        """Give a verb's module, of which it is the `command`."""
        return name.replace("-", "_"), "command"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do as click does, and name the verb that may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            from ipamc.model.wording import nearest

            near = nearest(args[0], VERBS)
            raise click.UsageError(
                f"No such command '{args[0]}'." + (f" Did you mean '{near}'?" if near else ""), ctx
            ) from problem

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs, without importing them, then options."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(
                [
                    ("ipamc init lab", "start a cluster in clusters/lab/"),
                    ("ipamc compile", "lock and render every cluster below clusters/"),
                    ("ipamc compile --check", "what CI runs: exit 1 if anything on disk would change"),
                    ("ipamc plan --base origin/main", "what this branch changes, renumbers above all"),
                    ("ipamc show lab", "how full its pools are"),
                    ("ipamc which 10.0.0.7", "who holds an address, in every cluster"),
                    ("ipamc why node-7", "how a node came to its blocks"),
                    ("ipamc explain IPC0207", "what a finding means, and what to do"),
                ]
            )
        write_exits(
            formatter,
            "done",
            "refused: input, policy, a stale lock; or the surroundings failed",
            "something changes: only plan --detailed-exitcode",
        )


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="ipamc", message="%(prog)s %(version)s")
def ipamc() -> None:
    """Compile IP pools and a node inventory into a lock and manifests that Cilium accepts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ipamc with these arguments, or the process's own; give the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lives
    try:
        code: int | None = ipamc.main(arguments, "ipamc", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as problem:
        problem.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # or the interpreter complains when it flushes at exit
        return REFUSED
    except Exception as problem:  # noqa: BLE001 - the last line of defence: nothing leaves as a bare traceback
        return _failed(problem)
    return code or 0


def _failed(problem: Exception) -> int:
    from ipamc.cli.terminal import trouble

    if text := trouble(problem):
        click.echo(f"error: {text}", err=True)
        return REFUSED
    import traceback

    traceback.print_exception(problem)
    click.echo(
        f"\nipamc {__version__} failed: this is a bug of ipamc, not of your input. Please report this with the lines above.",
        err=True,
    )
    return BUG
