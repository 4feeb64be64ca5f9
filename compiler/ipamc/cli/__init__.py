"""The command line: arguments come in; text on stdout and stderr and an exit code go out.

Only this room prints. Its only other I/O is that `terminal` asks what the terminal can show.

Each verb is an entry in VERBS and a function that returns the exit code: `command` in a module of its name,
or one of its name in a module of ELSEWHERE. A verb is imported when it is called.
"""

from __future__ import annotations

import contextlib
import keyword
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc import __version__
from ipamc.cli.command import BUG, INTERRUPTED, REFUSED, USAGE, Lazy
from ipamc.model.progress import Progress, current, watched
from ipamc.workspace.signals import Stopped, discard_stdout, open_closed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Start": {
        "check": "Check the addresses of a running cluster from a dump.",
        "init": "Start a cluster and prepare the repository.",
        "import": "Import a running cluster into git from a dump.",
    },
    "Every day": {
        "compile": "Write the lock and render the manifests.",
        "plan": "Show what a compile changes, compared with git or the disk.",
        "lock": "Write only the lock, and give consent.",
        "apply": "Apply the manifests and check the operator's status.",
        "audit": "Compare a running cluster with git, from a dump.",
    },
    "Ask": {
        "show": "Show how full the pools are.",
        "which": "Show which node has an address, or which blocks a node has.",
        "why": "Show why a node has its blocks.",
        "report": "Write the address plan as an HTML page with maps and history.",
        "forecast": "Show how long the pools last, or simulate other nodes.",
        "explain": "Explain a code, a concept, a field or a verb.",
        "test": "Run only the address-plan tests.",
    },
    "Change": {
        "runbook": "Print the steps of a change that needs more than an apply.",
        "resize": "Give nodes more blocks, and take unused ones back.",
        "suggest": "Suggest free space for a pool.",
    },
    "For other tools": {
        "ci": "Write CI pipelines, and run the steps of their jobs.",
        "verify": "Check locks and rendered files with an independent program.",
        "dump": "Dump a cluster for an import, a refresh or an audit.",
        "aggregates": "Show the fewest prefixes in use, also as router prefix lists.",
        "export": "Export addresses to NetBox, OpenTofu, Helm or Cluster API.",
    },
}
"""The verbs of `ipamc --help`, in its order, with their lines."""
RARE = {
    "fn": "Compile as a KRM function for kpt and kustomize.",
    "schema": "Print the JSON Schemas for editors.",
    "completion": "Print the completion script of a shell.",
    "merge-driver": "Merge two versions of a lock; git calls it.",
    "version": "Show the versions of ipamc and its parts.",
}
"""Verbs that only `ipamc help --all` shows."""
VERBS = {name: line for group in (*GROUPS.values(), RARE) for name, line in group.items()}
ELSEWHERE = {
    **dict.fromkeys(("schema", "version", "completion", "explain"), "about"),
    **dict.fromkeys(("lock", "fn", "merge-driver"), "compile"),
    "apply": "ci.apply",
    "dump": "ci.scheduled",
    "report": "export",
    "why": "which",
}
"""The modules of verbs that have none of their own, by verb."""


_ALL = "ipamc.all"  # in the metadata of a context: the help shows all verbs


class Verbs(Lazy):
    """The group of all verbs."""

    lines = VERBS
    examples = (
        ("ipamc check dump.json", "find problems with the addresses of a running cluster"),
        ("ipamc import lab dump.json", "start from a running cluster, with its blocks"),
        ("ipamc init lab", "start a new cluster in clusters/lab/"),
        ("ipamc compile", "lock and render all clusters below clusters/"),
        ("ipamc compile --check", "what CI runs: exit 1 if a file would change"),
        ("ipamc plan --base origin/main", "what this branch changes, and which nodes it renumbers"),
        ("ipamc show lab", "how full its pools are"),
        ("ipamc apply lab", "apply it, and check that the operator reports no error"),
        ("ipamc which 10.0.0.7", "which node has an address, in all clusters"),
        ("ipamc why node-7", "why a node has its blocks"),
        ("ipamc explain IPC0207", "what a finding means and what to do"),
        ("ipamc explain quarantine", "what a word or a field means"),
        ("ipamc help plan", "options, examples and exit codes of a verb"),
        ("ipamc help --all", "also the verbs for editors, shells, git and kpt"),
    )
    exits = (
        "done",
        "refused: input, policy or a stale lock; or an I/O or environment error",
        "something changes: only plan --detailed-exitcode",
    )

    def where(self, name: str) -> tuple[str, str]:
        """Return the module of a verb, and the name of its function there."""
        if name in ELSEWHERE:
            return ELSEWHERE[name], name.replace("-", "_")
        return (f"{name}_" if keyword.iskeyword(name) else name), "command"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line as click does; read `help` as `--help`."""
        if args[:1] == ["help"]:
            ctx.meta[_ALL] = args[1:] == ["--all"]
            args = [*([] if ctx.meta[_ALL] else args[1:]), "--help"]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in groups, without importing them."""
        rare = {"For editors, shells, git and kpt": RARE} if ctx.meta.get(_ALL) else {}
        for title, lines in {**GROUPS, **rare}.items():
            with formatter.section(title):
                formatter.write_dl(list(lines.items()), col_max=12)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options, and verbs without importing their modules."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=VERBS[name]) for name in VERBS if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="ipamc", message="%(prog)s %(version)s")
def ipamc() -> None:
    """Compile IP pools and a node inventory into a lock and manifests that Cilium accepts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ipamc with these arguments, or those of the process; return the exit code, as shells have it."""
    if None in {sys.stdout, sys.stderr}:
        open_closed()
    nested = current() is not None
    progress = Progress()
    try:
        with watched(progress):
            code: int | None = ipamc.main(arguments, "ipamc", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as problem:
        from ipamc.cli.usage import tell

        tell(problem)
        return USAGE
    except (click.Abort, KeyboardInterrupt, Stopped) as problem:
        end = problem.__cause__ or problem
        if nested:  # a verb called this one, and knows more
            raise end from None
        from ipamc.cli.terminal import say
        from ipamc.report.terminal_text import visible

        head = str(end) if isinstance(end, Stopped) else "interrupted"
        during = f" while {progress.now.text}" if progress.now.text else ""
        again = shlex.join(("ipamc", *(sys.argv[1:] if arguments is None else arguments)))
        with contextlib.suppress(OSError):  # SIGHUP: the terminal is gone
            say(visible(f"{head}{during}: every file is whole; run again: {again}"))
        return 128 + end.number if isinstance(end, Stopped) else INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return REFUSED
    except SystemExit:
        raise
    except BaseException as exception:  # noqa: BLE001 - every failure has its line and exit code
        from ipamc.cli.findings import problem_of, tell_bugs
        from ipamc.cli.terminal import say

        found = problem_of(exception)
        if tell_bugs([("", found.trace)]):
            return BUG
        say(f"error: {found.line}")
        return REFUSED
    return code or 0
