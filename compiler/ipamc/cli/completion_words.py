"""What a shell offers for the value of an argument or option: by what the value is called in the help, `NODE` or `REV`.

It is quick, as a person waits with a finger on the key: nodes and pools come from locks, which are searched and not
parsed; no inventory is read. It says nothing when something fails. A name of a branch or of a dump goes onto a command
line that a shell reads: what has other characters than names have is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/=@+:,-]{0,252}").fullmatch
_NODE = re.compile(rb'"node":"([A-Za-z0-9.-]{1,253})"').search
_MOST_BYTES = 64 << 20
"""Of locks that are searched."""
_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)


def prepare(params: Sequence[click.Parameter]) -> None:
    """Let the parameters of a command be completed. For a run that completes, and nothing else."""
    for param in params:
        name = max(param.opts, key=len)
        called = (param.metavar or (param.name or "").upper()).strip("[]").removesuffix("...").rstrip("]")
        find = _BY_OPTION.get(name) or _BY_VALUE.get(called)
        if find and not isinstance(param.type, click.Choice | click.Path):
            param.type = Offered(find)


class Offered(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """A text for which words are offered."""

    name = "text"

    def __init__(self, find: Callable[[click.Context, str], Iterable[str | CompletionItem]]) -> None:
        self.find = find

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return what begins with what is typed; nothing where something fails."""
        try:
            found = list(self.find(ctx, incomplete))
        except Exception:  # noqa: BLE001 - a shell must not print a traceback into a line that is typed
            return []
        items = [each for each in found if isinstance(each, CompletionItem)]
        words = {each for each in found if isinstance(each, str)}
        return [
            *(
                CompletionItem(word)
                for word in sorted(words)
                if word.startswith(incomplete) and _HARMLESS(word)
            ),
            *items,
        ]


def _folders(ctx: click.Context) -> list[str]:
    """Return the folders of the clusters on the line, else of all.

    An option without its value, which is completed, keeps click from reading the arguments before it.
    """
    from ipamc.workspace import disk
    from ipamc.workspace.clusters import find, known_names

    given: Any = ctx.params.get("clusters") or ctx.params.get("cluster") or ()
    known = known_names()
    words = [word for word in (*([given] if isinstance(given, str) else given), *ctx.args) if word in known]
    return find(words) if words else disk.clusters()


def _locks(ctx: click.Context) -> Iterable[bytes]:
    from ipamc.workspace import disk

    left = _MOST_BYTES
    for folder in _folders(ctx):
        text = disk.read_lock(folder) or b""
        left -= len(text)
        if left < 0:
            return
        yield text


def _in_locks(ctx: click.Context, kind: bytes, start: str = "") -> set[str]:
    pattern = re.compile(rb'"%s":"(%s[A-Za-z0-9.-]{0,252})"' % (kind, re.escape(start.encode())))
    return {name.decode() for text in _locks(ctx) for name in pattern.findall(text)}


def _nodes(ctx: click.Context, start: str) -> Iterable[str]:
    return _in_locks(ctx, b"node", start)


def _pools(ctx: click.Context, start: str) -> Iterable[str]:
    return _in_locks(ctx, b"pool", start)


def _in_state(*states: bytes) -> Callable[[click.Context, str], Iterable[str]]:
    keys = [b'"%s":' % state for state in states]

    def find(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
        rows = (row for text in _locks(ctx) for row in text.split(b"\n") if any(key in row for key in keys))
        return {found[1].decode() for row in rows if (found := _NODE(row))}

    return find


def _to_renumber(ctx: click.Context, start: str) -> Iterable[str]:
    if start.startswith("pool/"):
        return {f"pool/{name}" for name in _pools(ctx, start.removeprefix("pool/"))}
    return {*_nodes(ctx, start), "pool/"}


def _clusters(ctx: click.Context, start: str) -> Iterable[str | CompletionItem]:  # noqa: ARG001 - as the others
    from ipamc.workspace.clusters import known_names

    found = [name for name in known_names() if name.startswith(start) and _HARMLESS(name)]
    return found or [CompletionItem(start, type="dir")]


def _revisions(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    from ipamc.workspace.git import names_of_revisions

    return {*names_of_revisions("."), "HEAD"}


def _formats(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    from ipamc.report.findings import NAMES

    return [] if "=" in start else [f"{name}=" for name in NAMES]


def _plans(ctx: click.Context, start: str) -> Iterable[str | CompletionItem]:
    from ipamc.cli.plan_formats import FORMATS

    if ctx.info_name != "plan":
        return [CompletionItem(start, type="dir" if ctx.info_name == "schema" else "file")]
    return [] if "=" in start else [f"{name}=" for name in FORMATS]


def _gates(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    from ipamc.review import GATES

    head = start.rpartition(",")[0]
    return [f"{head},{gate}" if head else gate for gate in GATES]


def _kinds(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    from ipamc.cli.schema import by_kind

    return by_kind()


def _minors(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    from ipamc.model.cilium.versions import minors, text

    return map(text, minors())


def _explained(ctx: click.Context, start: str) -> Iterable[str]:  # noqa: ARG001 - as the others
    """Codes, where one is begun."""
    if start.upper().startswith("I") and start.upper().startswith("IPC"[: len(start)]):
        from ipamc.workspace.disk import assets

        return [name.removesuffix(".md") for name in assets("rules")]
    from ipamc.cli import VERBS
    from ipamc.cli.schema import by_kind
    from ipamc.report.concepts import CONCEPTS
    from ipamc.report.fields import fields_of

    paths = fields_of(by_kind())
    names = {each.name for each in CONCEPTS if " " not in each.name} | {"versions", "concepts", *VERBS}
    return {*names, *paths} if "." in start else {*names, *(path.rpartition(".")[2] for path in paths), "IPC"}


_Find = Callable[[click.Context, str], Iterable[str | CompletionItem]]

_BY_OPTION: Mapping[str, _Find] = {
    "--pool": _pools,
    "--node": _nodes,
    "--report": _formats,
    "--write": _plans,
    "--settle": _in_state(b"pending"),
    "--release": _in_state(b"pending", b"quarantined"),
}
_BY_VALUE: Mapping[str, _Find] = {
    "CLUSTER": _clusters,
    "CLUSTER[/PART": _clusters,
    "NODE": _nodes,
    "NODE|all": lambda ctx, start: {*_nodes(ctx, start), "all"},
    "NODE|CIDR|pool/NAME": _to_renumber,
    "IP|CIDR|NODE": _nodes,
    "OLD=NEW": lambda ctx, start: [] if "=" in start else {f"{name}=" for name in _nodes(ctx, start)},
    "REV": _revisions,
    "REV|DATE": _revisions,
    "WORD,…": _gates,
    "KIND": _kinds,
    "WORD": _explained,
    "VERSION": _minors,
    "MINOR": _minors,
    "LABEL": lambda *_: _LABELS,
    "KEY": lambda *_: _LABELS,
    "FILE": lambda _, start: [CompletionItem(start, type="file")],
    "DIR": lambda _, start: [CompletionItem(start, type="dir")],
    "FOLDER": lambda _, start: [CompletionItem(start, type="dir")],
}
"""By what a value is called in the help."""
