"""`ipamc ci`: pipelines from templates, and the steps that their jobs run. What a job does is a verb here, not shell in a template: it is tested as code is."""

from __future__ import annotations

import click

from ipamc.cli.command import Lazy, write_exits

STEPS = {
    "gitlab": ("ci.pipelines", "Write .gitlab-ci.yml."),
    "github": ("ci.pipelines", "Write .github/workflows/ipamc.yml."),
    "argocd": ("ci.pipelines", "Print an ApplicationSet of Argo CD."),
    "flux": ("ci.pipelines", "Print Kustomizations of Flux."),
    "matrix": ("ci.matrix", "List the clusters that changed, as jobs."),
    "apply": ("ci.apply", "Apply what is rendered, and see what the operator says."),
    "comment": ("ci.comment", "Post a plan as the one comment that is kept up to date."),
    "merge": ("ci.merge", "Merge a revision in, locks by rule, and compile."),
}
"""By name: the module, and the line of `ipamc ci --help`."""


class Steps(Lazy):
    """The steps."""

    lines = {name: line for name, (_, line) in STEPS.items()}  # noqa: RUF012 - never written to

    def where(self, name: str) -> tuple[str, str]:
        """Give a step's module, in which it has its own name."""
        return STEPS[name][0], name

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(
                [
                    ("ipamc ci gitlab", "write .gitlab-ci.yml; never over a file that ipamc did not write"),
                    ("ipamc ci github --output -", "print the workflow"),
                    (
                        "ipamc ci matrix --format names --base origin/main",
                        "the clusters that this branch changes",
                    ),
                    ("ipamc ci apply lab", "what the pipeline does after the merge"),
                ]
            )
        write_exits(formatter, "done", "refused, or the surroundings failed")


@click.group(cls=Steps)
def command() -> None:
    """Write the pipelines of a forge, or what Argo CD and Flux read; and what the jobs of these pipelines run.

    Run it at the top of the repository, where clusters/ is.
    """
