"""What is said of an exception that no finding explains: the environment failed, or ipamc has a bug."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import click
from msgspec import Struct

from ipamc import __version__
from ipamc.cli.terminal import show
from ipamc.model.diagnostics import names
from ipamc.report.terminal_text import visible
from ipamc.workspace.trouble import one_line


class Problem(Struct, frozen=True, kw_only=True):
    """An exception, as text: it crosses processes, and stays after its cluster."""

    line: str
    trace: str = ""
    """The traceback of a bug of ipamc; "" where the environment failed."""


def problem_of(exception: BaseException) -> Problem:
    """Return what to say of an exception."""
    usage = isinstance(exception, click.ClickException)
    if text := visible(str(exception)) if usage else one_line(exception):
        return Problem(line=text)
    import traceback

    what = traceback.format_exception_only(exception)[-1].strip()
    frames = traceback.extract_tb(exception.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return Problem(
        line=visible(f"a bug in ipamc: {what}{where}; please report it"),
        trace="".join(traceback.format_exception(exception)),
    )


def tell_bugs(found: Iterable[tuple[str, str]], style: str = "full") -> bool:
    """Print every bug and what to do about it, but not beside a document; tell whether there is one.

    `found` has the cluster, "" where it is about none, and the traceback, "" where it is no bug. A traceback
    that several clusters have is printed once.
    """
    from ipamc.report.findings import format_of

    clusters: dict[str, set[str]] = {}
    for cluster, trace in found:
        if trace:
            clusters.setdefault(trace, set()).add(cluster)
    for trace, some in clusters.items() if not format_of(style).document else ():
        on = f" on {visible(names(some))}" if any(some) else ""
        show(
            f"{trace}\nipamc {__version__} failed{on}: this is a bug in ipamc, not in your input."
            " Please report this with the lines above.\n",
            err=True,
        )
    return bool(clusters)
