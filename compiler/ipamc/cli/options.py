"""Arguments and options that several verbs have: CLUSTER, --at, --output, --write.

`--output KIND` is for data, on stdout. `--format` is for findings, on stderr: `format_option` in
`cli/findings.py`. `--write FILE` is the file of a verb that writes one. An option without a value is None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ipamc.workspace.source import Source

Function = TypeVar("Function", bound=Callable[..., Any])
Minor = tuple[int, int]  # a minor of Cilium, as (1, 20)


class Revision(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """A revision of git. An empty one is refused: an unset variable of a pipeline must not mean the disk."""

    name = "REV"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the revision."""
        text = str(value)
        if not text.strip():
            option = param.opts[0] if param else self.name
            self.fail(f"the revision is empty: name one, or omit {option}", param, ctx)
        return text


def checked(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a click callback that passes only the value of the option to `read`."""
    return lambda _, __, value: read(value)


def _minor(value: str | None) -> Minor | None:
    if value is None:  # most runs: nothing is imported for it
        return None
    from ipamc.model.cilium.versions import minors, text

    known = {text(minor): minor for minor in minors()}
    found = known.get(value.removeprefix("v"))
    if found is None:
        first, *_, last = known
        raise click.BadParameter(f"{value!r} is not a known minor: use {first} to {last}")
    return found


class _Several(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.3
    """Values with commas, each of a type."""

    def __init__(self, of: Any) -> None:
        self.of, self.name = of, of.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the values of one text, in order."""
        texts = value.split(",") if isinstance(value, str) else value
        return tuple(self.of.convert(text, param, ctx) for text in texts)


def several(*names: str, type: Any = str, **more: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds an option of several values: repeated, or with commas."""
    kind = _Several(click.types.convert_type(type))
    flat = checked(lambda found: tuple(value for values in found for value in values))
    return click.option(*names, multiple=True, type=kind, callback=flat, **more)


clusters_argument = click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
cluster_argument = click.argument("cluster", metavar="CLUSTER")
files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
_HELP = {
    "clusters-from": "Read any number of clusters from this file, one name or folder per line; - is stdin.",
    "at": "Read the clusters at a git revision, or at a date in UTC (2026-11-21, 2026-11-21T09:30), "
    "which selects the last first-parent commit of HEAD until then.",
    "assume": "Treat an unknown newer Cilium as this minor, in this run. "
    "To do so in pipelines and other verbs, set `assume` of the Cluster.",
    "jobs": "The number of processes for several clusters.  [default: one per processor]",
    "context": "The context of the kubeconfig.  [default: spec.context of the Cluster, or its name]",
    "trunk": "Skip clusters for which this revision is newer than HEAD.",
}
clusters_from_option = click.option("--clusters-from", "listed", metavar="FILE", help=_HELP["clusters-from"])
_at_option = click.option("--at", type=Revision(), metavar="REV|DATE", help=_HELP["at"])
assume_option = click.option("--assume", callback=checked(_minor), metavar="VERSION", help=_HELP["assume"])
jobs_option = click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=_HELP["jobs"])
context_option = click.option("--context", default="", metavar="NAME", help=_HELP["context"])
trunk_option = click.option("--trunk", default="", metavar="REV", help=_HELP["trunk"])

FORMER = {"--output": "--write"}
"""The former name of --write in `ipamc ci`: pipelines of users have it, help does not show it."""


def gates(words: Collection[str], *more: str) -> frozenset[str]:
    """Return the gates that texts name, with commas; `more` are words beside GATES. Raises BadParameter."""
    from ipamc.review import GATES

    found = frozenset(word for text in words for word in text.split(","))
    if unknown := sorted(found - GATES.keys() - {*more}):
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join((*GATES, *more))}")
    return found


def output_option(*kinds: str, required: bool = False) -> Callable[[Function], Function]:
    """Return a decorator that adds --output, as `output`: the data on stdout, by default the first kind."""
    default = None if required else kinds[0]
    shown, type = not required, click.Choice(kinds)
    help = "The output on stdout."
    return click.option(
        "-o", "--output", type=type, required=required, default=default, show_default=shown, help=help
    )


def write_option(help: str, **more: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds --write, as `path`: the file that the verb writes."""
    return click.option("--write", "path", **{"metavar": "FILE", "help": help, **more})


def clusters_of(clusters: tuple[str, ...], listed: str | None) -> tuple[str, ...]:
    """Return the clusters that were named, or those of the file of `clusters_from_option`.
    A file without names is refused: no cluster must not mean all of them. Raises EnvironmentFailure.
    """
    if listed is None:
        return clusters
    if clusters:
        raise click.UsageError("clusters and --clusters-from exclude each other: omit one of them")
    from ipamc.workspace.disk import read_argument
    from ipamc.workspace.failure import EnvironmentFailure

    found = tuple(line for line in map(str.strip, read_argument(listed).split("\n")) if line)
    if not found:
        raise EnvironmentFailure(f"{listed} names no cluster: write one name or folder per line")
    return found


def source_options(function: Function) -> Function:
    """Add what `source_of` takes: CLUSTER, --at and --assume."""
    return clusters_argument(_at_option(assume_option(function)))


def source_of(clusters: Sequence[str], at: str | None, assume: Minor | None) -> Source:
    """Return the disk, or the commit that `at` names, with these clusters.
    Arguments are named as the options. Prints the commit of a date, and the clusters that the commit lacks.
    """
    if at is None:
        from ipamc.workspace.clusters import find
        from ipamc.workspace.source import fleet

        return fleet(find(clusters), assume)
    from msgspec.structs import replace

    from ipamc.cli.terminal import say
    from ipamc.workspace.revision import look_back

    commit = look_back(at, clusters)
    for note in commit.notes:
        say(note)
    return replace(commit, assume=assume)
