"""From CLUSTER arguments to folders, and from a folder to what a compile depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ipamc.model.diagnostics import Refused
from ipamc.workspace import disk

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ipamc.model.lock import Consent
    from ipamc.pipeline import Inputs

Function = TypeVar("Function", bound=Callable[..., Any])


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    from click.shell_completion import CompletionItem

    try:
        names = [PurePath(each).name for each in disk.clusters()]
    except (disk.Trouble, OSError):
        names = []
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="dir")]


def clusters_argument(function: Function) -> Function:
    """Add the argument [CLUSTER]..., as `clusters`."""
    return click.argument("clusters", nargs=-1, metavar="[CLUSTER]...", shell_complete=_complete)(function)


def find(given: Sequence[str]) -> list[str]:
    """Give the folder of each CLUSTER, once, in order of name; of all below clusters/ where none is given. An unknown one is a usage error."""
    folders = [_folder(each) for each in given] if given else disk.clusters()
    return sorted(
        {Path(folder).resolve(): folder for folder in reversed(folders)}.values(),
        key=lambda folder: (name_of(folder), folder),
    )


def name_of(folder: str) -> str:
    """Give a folder's own name, also of `.` and `..`; a link has the name that the user typed."""
    return (
        Path(folder).absolute().name
        if PurePath(folder).name not in {"", ".."}
        else Path(folder).resolve().name
    )


def _folder(text: str) -> str:
    """Give the folder that is meant: clusters/TEXT for a plain name, else TEXT itself."""
    below = f"{disk.CLUSTERS}/{text}"
    if text not in {"", ".", ".."} and PurePath(text).name == text and disk.is_folder(below):
        return below
    if text and disk.is_folder(text):
        return PurePath(text).as_posix()
    raise click.UsageError(
        f"there is no cluster {text!r}: no such folder, and none in {disk.CLUSTERS}/{_hint(text)}",
        click.get_current_context(silent=True),
    )


def _hint(text: str) -> str:
    from ipamc.model.wording import nearest

    try:
        names = [PurePath(each).name for each in disk.clusters()]
    except (disk.Trouble, OSError):
        return ""
    near = nearest(PurePath(text).name, names)
    return f". Did you mean {near!r}?" if near else f". There are: {', '.join(names[:10])}"


def inputs_of(folder: str, *, today: str, consent: Consent, locked: bool = False) -> Inputs:
    """Read everything that a compile of this folder depends on. Raises Refused for files that are no inputs, Trouble, OSError."""
    from ipamc.check.published import BINDING
    from ipamc.pipeline import Inputs

    sources, refused = disk.read_sources(folder)
    if refused:
        raise Refused(tuple(refused))
    published = {name: disk.read_bytes(f"{folder}/{disk.RENDERED}/{name}") for name in BINDING}
    return Inputs(
        name=name_of(folder),
        folder=folder,
        sources=sources,
        lock_path=(PurePath(folder) / disk.LOCK).as_posix(),
        lock=disk.read_lock(folder),
        rendered=disk.is_folder(f"{folder}/{disk.RENDERED}"),
        published={name: data for name, data in published.items() if data is not None},
        schemas=disk.assets("schemas"),
        templates=disk.assets("templates"),
        consent=consent,
        today=today,
        locked=locked,
    )
