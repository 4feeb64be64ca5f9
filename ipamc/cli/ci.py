"""`ipamc ci`: pipelines from templates, and the steps that their jobs run. What a job does is a verb here, not shell in a template: it is tested as code is."""

from __future__ import annotations

import importlib
from typing import Any

import click

from ipamc.cli.verb import write_exits

STEPS = {
    "gitlab": ("ci_write", "Write .gitlab-ci.yml."),
    "github": ("ci_write", "Write .github/workflows/ipamc.yml."),
    "argocd": ("ci_write", "Print an ApplicationSet of Argo CD."),
    "flux": ("ci_write", "Print Kustomizations of Flux."),
    "matrix": ("ci_matrix", "List the clusters that changed, as jobs."),
    "apply": ("ci_apply", "Apply what is rendered, and see what the operator says."),
    "comment": ("ci_comment", "Post a plan as the one comment that is kept up to date."),
    "merge": ("ci_merge", "Merge a revision in, locks by rule, and compile."),
}
"""By name: the module, and the line of `ipamc ci --help`."""


class Steps(click.Group):
    """The steps, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Give the names of the steps."""
        return list(STEPS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Give a step's command, or None for a name that is no step."""
        if cmd_name not in STEPS:
            return None
        module: Any = importlib.import_module(f"ipamc.cli.{STEPS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the steps, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in STEPS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(
                [
                    ("ipamc ci gitlab", "write .gitlab-ci.yml; never over a file that ipamc did not write"),
                    ("ipamc ci github --output -", "print the workflow"),
                    ("ipamc ci matrix --format names --base origin/main", "the clusters that this branch changes"),
                    ("ipamc ci apply lab", "what the pipeline does after the merge"),
                ]
            )
        write_exits(formatter, "done", "refused, or the surroundings failed")


@click.group(cls=Steps)
def command() -> None:
    """Write the pipelines of a forge, or what Argo CD and Flux read; and what the jobs of these pipelines run.

    Run it at the top of the repository, where clusters/ is.
    """
