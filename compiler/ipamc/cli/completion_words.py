"""Words that a shell offers for a value, by its name in the help, such as `NODE` or `REV`.

A person waits for them: nodes and pools come from locks, which are searched and not parsed, and no inventory
is read. Errors are silent. A shell reads the command line: words with unusual characters are not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from ipamc.cli.shown import STATES
from ipamc.model.limits import LOCKS_FOR_COMPLETION

_Find = Callable[[click.Context, str], Iterable[Any]]  # returns words, or items of click, for the typed text
_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/=@+:,-]{0,252}").fullmatch
_NODE = re.compile(rb'"node":"([A-Za-z0-9.-]{1,253})"').search
_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)


def prepare(params: Sequence[click.Parameter]) -> None:
    """Attach completion words to the parameters of a command. Only runs that complete call this."""
    for param in params:
        called = (param.metavar or (param.name or "").upper()).strip("[]").removesuffix("...").rstrip("]")
        of_value = _BY_VALUE.get(called) or _BY_VALUE.get(called.replace(",…", ""))
        if (find := _BY_OPTION.get(max(param.opts, key=len)) or of_value) and not isinstance(
            param.type, click.Choice | click.Path
        ):
            param.type = Offered(find, several=",…" in called)


class Offered(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click
    """The type of a parameter whose words are completed."""

    name = "text"

    def __init__(self, find: _Find, *, several: bool) -> None:
        self.find, self.several = find, several

    def shell_complete(self, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the words that begin with the typed text; none after any error."""
        try:
            head, comma, last = incomplete.rpartition(",") if self.several else ("", "", incomplete)
            found = [
                f"{head}{comma}{each}" if isinstance(each, str) else each for each in self.find(ctx, last)
            ]
        except Exception:  # noqa: BLE001 - a shell must not print a traceback into a line that is typed
            return []
        items = [each for each in found if isinstance(each, CompletionItem)]
        words = sorted({each for each in found if isinstance(each, str) and each.startswith(incomplete)})
        return [*map(CompletionItem, filter(_HARMLESS, words)), *items]


def _locks(ctx: click.Context) -> Iterable[bytes]:
    """Yield the locks of the clusters on the command line, or of all clusters, up to LOCKS_FOR_COMPLETION.
    The option being completed has no value yet, so click does not parse the arguments before it.
    """
    from ipamc.workspace import disk
    from ipamc.workspace.clusters import find, known_names

    given: Any = ctx.params.get("clusters") or ctx.params.get("cluster") or ()
    known = known_names()
    words = [word for word in (*([given] if isinstance(given, str) else given), *ctx.args) if word in known]
    left = LOCKS_FOR_COMPLETION
    for folder in find(words):
        text = disk.read_lock(folder) or b""
        left -= len(text)
        if left < 0:
            return
        yield text


def _in_locks(kind: bytes) -> _Find:
    """Return a function that finds names of this kind, node or pool, in locks."""

    def find(ctx: click.Context, start: str) -> Iterable[str]:
        pattern = re.compile(rb'"%s":"(%s[A-Za-z0-9.-]{0,252})"' % (kind, re.escape(start.encode())))
        return {name.decode() for text in _locks(ctx) for name in pattern.findall(text)}

    return find


_nodes, _pools = _in_locks(b"node"), _in_locks(b"pool")


def _in_state(*states: bytes) -> _Find:
    keys = [b'"%s":' % state for state in states]

    def find(ctx: click.Context, _: str) -> Iterable[str]:
        rows = (row for text in _locks(ctx) for row in text.split(b"\n") if any(key in row for key in keys))
        return {found[1].decode() for row in rows if (found := _NODE(row))}

    return find


def _to_renumber(ctx: click.Context, start: str) -> Iterable[str]:
    if start.startswith("pool/"):
        return {f"pool/{name}" for name in _pools(ctx, start.removeprefix("pool/"))}
    return {*_nodes(ctx, start), "pool/"}


def _clusters(_: click.Context, start: str) -> Iterable[Any]:
    from ipamc.workspace.clusters import known_names

    found = [name for name in known_names() if name.startswith(start) and _HARMLESS(name)]
    return found or [CompletionItem(start, type="dir")]


def _revisions(_: click.Context, __: str) -> Iterable[str]:
    from ipamc.workspace.git import names_of_revisions

    return {*names_of_revisions("."), "HEAD"}


def _gates(_: click.Context, __: str) -> Iterable[str]:
    from ipamc.review import GATES

    return GATES


def _kinds(_: click.Context, __: str) -> Iterable[str]:
    from ipamc.workspace.disk import schemas

    return schemas()


def _minors(_: click.Context, __: str) -> Iterable[str]:
    from ipamc.model.cilium.versions import minors, text

    return map(text, minors())


def _explained(ctx: click.Context, start: str) -> Iterable[str]:
    """Return the codes if the typed text begins one; else words, verbs and fields."""
    from ipamc.workspace.disk import assets, schemas

    if start.upper().startswith("I") and start.upper().startswith("IPC"[: len(start)]):
        return [name.removesuffix(".txtar") for name in assets("rules") if name.startswith("IPC")]
    from ipamc.report.explain import concepts, fields_of

    program = ctx.find_root().command
    verbs = program.list_commands(ctx) if isinstance(program, click.Group) else []
    paths = fields_of(schemas())
    words = (each.name for each in concepts(assets("rules/words")) if " " not in each.name)
    names = {*words, "versions", "concepts", *verbs}
    return {*names, *paths} if "." in start else {*names, *(path.rpartition(".")[2] for path in paths), "IPC"}


_BY_OPTION: Mapping[str, _Find] = {
    "--pool": _pools,
    "--node": _nodes,
    "--settle": _in_state(b"pending"),
    "--release": _in_state(b"pending", b"quarantined"),
}
_BY_VALUE: Mapping[str, _Find] = {
    "CLUSTER": _clusters,
    "CLUSTER[/PART": _clusters,
    "NODE": _nodes,
    "NODE|all": lambda ctx, start: {*_nodes(ctx, start), "all"},
    "NODE|CIDR|pool/NAME|SELECTOR": _to_renumber,
    "IP|CIDR|NODE|CLUSTER/POOL": _nodes,
    "NODE|CLUSTER/POOL": _nodes,
    "OLD=NEW": lambda ctx, start: [] if "=" in start else {f"{name}=" for name in _nodes(ctx, start)},
    "REV": _revisions,
    "REV|DATE": _revisions,
    "WORD,…": _gates,
    "STATE,…": lambda *_: STATES,
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
"""Functions that find words, by the name of the value in the help."""
