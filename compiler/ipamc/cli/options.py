"""Arguments and options that several verbs have: CLUSTER, --at, --output, --write.

`--output KIND` is for data, on stdout. `--format` is for findings, on stderr: `format_option` in `cli/findings.py`. `--write
FILE` says where a verb that writes one file writes it. Every verb has these names and these words of help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

if TYPE_CHECKING:
    from ipamc.model.cluster import Version
    from ipamc.workspace.source import Source

Function = TypeVar("Function", bound=Callable[..., Any])


clusters_argument = click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
cluster_argument = click.argument("cluster", metavar="CLUSTER")
clusters_from_option = click.option(
    "--clusters-from",
    "listed",
    metavar="FILE",
    help="Read the clusters from this file instead, a folder or name on a line; - is stdin. One run takes any number of them.",
)
"""None where it is not given."""


def clusters_of(clusters: tuple[str, ...], listed: str | None) -> tuple[str, ...]:
    """Return the clusters that were named, or those of the file of `clusters_from_option`.

    A file without names is refused: no cluster must not mean all of them. Raises Trouble.
    """
    if listed is None:
        return clusters
    if clusters:
        raise click.UsageError("name clusters, or give --clusters-from: both are too many")
    from ipamc.workspace.disk import read_argument
    from ipamc.workspace.trouble import Trouble

    found = tuple(line for line in read_argument(listed).split("\n") if line)
    if not found:
        raise Trouble(f"{listed} names no cluster: write a folder or a name on each line")
    return found


class Revision(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """A revision of git. An empty one is refused: a variable of a pipeline that is not set must not mean the disk."""

    name = "REV"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the revision."""
        text = str(value)
        if not text.strip():
            option = param.opts[0] if param else self.name
            self.fail(f"the revision is empty: name one, or omit {option}", param, ctx)
        return text


at_option = click.option(
    "--at",
    "at",
    type=Revision(),
    metavar="REV|DATE",
    help="Read the clusters of a commit: a git revision, or a date in UTC (2026-11-21, 2026-11-21T09:30), which means the last commit of HEAD's first parents until then.",
)
"""None where it is not given."""


class Minor(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """A minor of Cilium that ipamc knows, as (1, 20)."""

    name = "VERSION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return major and minor."""
        from ipamc.model.cilium.versions import minors, text

        known = {text(minor): minor for minor in minors()}
        found = known.get(str(value).removeprefix("v"))
        if found is None:
            first, *_, last = known
            self.fail(f"{value!r} is not known: {first} to {last} are", param, ctx)
        return found


assume_option = click.option(
    "--assume",
    "assume",
    type=Minor(),
    metavar="VERSION",
    help="Take a Cilium that is newer than what ipamc knows for this minor, in this run. Pipelines and other verbs follow `assume` in the Cluster instead.",
)
"""None where it is not given."""
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for several clusters.  [default: one for each processor]",
)
trunk_option = click.option(
    "--trunk", default="", metavar="REV", help="Skip clusters that are newer in this revision than in HEAD."
)


def output_option(*kinds: str, required: bool = False) -> Callable[[Function], Function]:
    """Return what adds the option --output, as `output`: what goes to stdout, by default the first kind."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(kinds),
        required=required,
        default=None if required else kinds[0],
        show_default=not required,
        help="What goes to stdout.",
    )


def write_option(help: str, **more: Any) -> Callable[[Function], Function]:
    """Return what adds the option --write, as `path`: where a verb that writes one file writes it."""
    return click.option("--write", "path", **{"metavar": "FILE", "help": help, **more})


FORMER = {"--output": "--write"}
"""What the steps of `ipamc ci` called --write before: pipelines of users have it, and help does not show it."""


def source_of(clusters: Sequence[str], at: str | None, assume: Version | None) -> Source:
    """Return the disk with these clusters, or the commit that `at` means; `assume` is that of `assume_option`.

    Says on stderr which commit a date means, and which clusters the commit does not have.
    """
    if at is None:
        from ipamc.workspace.clusters import find
        from ipamc.workspace.source import Disk

        return Disk(tuple(find(clusters)), assume=assume)
    from ipamc.cli.terminal import say
    from ipamc.workspace.revision import look_back

    commit = look_back(at, clusters)
    for note in commit.notes:
        say(note)
    return replace(commit, assume=assume)
