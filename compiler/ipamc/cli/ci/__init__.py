"""`ipamc ci`: pipelines from templates, and the steps of their jobs.

A step is a command and not shell in a template, so that it is tested.
"""

from __future__ import annotations

import click

from ipamc.cli.command import Lazy

STEPS = {
    "gitlab": ("ci.pipelines", "Write .gitlab-ci.yml."),
    "github": ("ci.pipelines", "Write .github/workflows/ipamc.yml."),
    "argocd": ("ci.pipelines", "Print an ApplicationSet of Argo CD."),
    "flux": ("ci.pipelines", "Print Kustomizations of Flux."),
    "requirements": ("ci.install", "Print what a job installs, with hashes."),
    "rbac": ("ci.pipelines", "Print the smallest roles for the jobs of a cluster."),
    "matrix": ("ci.matrix", "List the clusters that changed, as jobs."),
    "applied": ("ci.apply", "Move the refs of what was applied last."),
    "refresh": ("ci.scheduled", "Open a request for a newer inventory, from a dump."),
    "audit": ("ci.scheduled", "Audit a cluster from a dump, and keep an issue open."),
    "token": ("ci.forge", "Print the job's id token for kubectl."),
    "comment": ("ci.forge", "Post a plan as a comment, or update the comment."),
    "consent": ("ci.forge", "Print the ipamc labels of a merge group."),
    "merge": ("compile", "Merge a revision and its locks, and compile."),
}
"""By name: the module, and the line of `ipamc ci --help`."""
FORMER = {"apply": "ci.apply", "dump": "ci.scheduled"}
"""Steps that are verbs now: pipelines of users have them, help does not show them."""


class Steps(Lazy):
    """The steps."""

    lines = {name: line for name, (_, line) in STEPS.items()}  # noqa: RUF012 - never written to
    examples = (
        ("ipamc ci gitlab", "write .gitlab-ci.yml, unless another program wrote it"),
        ("ipamc ci github --write -", "print the workflow"),
        ("ipamc ci matrix --output names --base origin/main", "the clusters that this branch changes"),
    )
    exits = ("done", "refused, or an I/O or environment error")
    former = FORMER

    def where(self, name: str) -> tuple[str, str]:
        """Return a step's module and its name there."""
        return FORMER.get(name) or STEPS[name][0], name


@click.group(cls=Steps)
def command() -> None:
    """Write CI pipelines and objects of Argo CD and Flux, and run the steps of the pipelines.

    Run it at the top of the repository, which contains clusters/.
    """
