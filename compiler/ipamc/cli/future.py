"""The options of `ipamc show` that ask about the future: --what-if and --runway."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from ipamc.workspace.source import Source

Function = TypeVar("Function", bound=Callable[..., Any])

_WHAT_IF = (
    "Instead, what a compile would make of other nodes: '+40 rack=b', '+3 like NODE', '-rack=b', '-node NAME'. "
    "Repeatable. Exit code 1 where it would refuse them."
)
_RUNWAY = "Instead, for how many weeks the pools have room, by the history of the lock in git: a range, and how it was found."
_COMMON = {"clusters", "output", "at", "assume", "style", "report"}
"""Parameters of `show` that these questions have, too."""
_FORMATS = ("text", "json")


def future_options(function: Function) -> Function:
    """Add --what-if, as `changes`, and --runway, as `runway`."""
    return click.option("--what-if", "changes", multiple=True, metavar="CHANGE", help=_WHAT_IF)(
        click.option("--runway", is_flag=True, help=_RUNWAY)(function)
    )


def tell_future(
    source: Source,
    changes: tuple[str, ...],
    pools: tuple[str, ...],
    *,
    runway: bool,
    output: str,
    style: str,
) -> int:
    """Answer --what-if or --runway; return the exit code. Raises UsageError for options of other questions."""
    if runway and changes:
        raise click.UsageError("--runway and --what-if are two questions: ask one after the other")
    name = "--runway" if runway else "--what-if"
    _refuse_others(name, {"runway", "pools"} if runway else {"changes"}, output)
    if runway:
        from ipamc.cli.runway import tell_runway

        return tell_runway(source, pools, output, style)
    from ipamc.cli.what_if import tell_what_if

    return tell_what_if(source, changes, output, style)


def _refuse_others(name: str, own: set[str], output: str) -> None:
    """Raise UsageError where an option was given that would not count."""
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in own | _COMMON:
            raise click.UsageError(f"{name} takes no {param.opts[0]}")
    if output not in _FORMATS:
        raise click.UsageError(f"{name} is no --output {output}: {' or '.join(_FORMATS)}")
