"""The steps of a runbook, in phases and waves of nodes, and the template that appends them.

JSON has the fields of these structs, in their order, but for those of runbooks with loops. A template of
`templates/runbooks/` appends to the runbook by the methods of `_Made`:

    {{ title(TEXT) }} {{ about(TEXT) }} {{ way_back(TEXT) }} {{ phase(TITLE) }}
    {% call(nodes, number) phase(TITLE, waves) %}     the steps of each wave
    {% call step(KEY, TITLE, WHY, nodes=…, …) %}      commands, a line each
    {% call(node) step(KEY, TITLE, nodes=…, …) %}     a command, done for each of the nodes
    {% call edit(KEY, TITLE, WHY, …) %}               what to change in a file

Text of arguments is prose, and stays as it is. What a template prints is for a shell: each value is quoted,
except in the body of `edit`. A line that ends with a backslash goes on in the next one.
"""

from __future__ import annotations

import enum
import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import count, names
from ipamc.model.limits import NODES_WITHOUT_LOOP

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context, Macro


class Where(enum.StrEnum):
    """The place where a step is done."""

    HERE = "here"
    """In a shell in the top folder of the repository, with a kubeconfig that has the cluster's context."""
    NODE = "node"  # in a shell on the node
    PIPELINE = "pipeline"
    """The pipeline runs the commands after a merge; without a pipeline, a person does, in a shell `here`."""
    FORGE = "forge"  # a merge request is opened and merged; then the commands are run `here`
    EDITOR = "editor"  # a file is edited as `Step.edit` says


class Check(Struct, frozen=True, omit_defaults=True):
    """How to verify a step; the result may take a minute."""

    command: str  # reads only
    expect: str
    """The expected stdout, where one blank stands for any white space; "" is nothing."""
    each: bool = False  # with loops: whether it prints this once for each node, as `$node`


class Step(Struct, frozen=True, kw_only=True):
    """One step. A user's values are quoted with `shlex.quote` in commands, and unchanged elsewhere."""

    key: str  # an identifier for programs, stable when titles change
    title: str  # one clause, in the imperative
    why: str = ""
    nodes: tuple[str, ...] = ()  # the nodes that the step changes; () if it changes none
    where: Where = Where.HERE
    only_if: str = ""  # when the step is needed; "" is always
    edit: str = ""  # what to change in a file
    commands: tuple[str, ...] = ()
    """Lines for a POSIX shell, one after the other; the step failed if one fails."""
    check: Check | None = None
    if_not: str = ""  # what to do if the step failed or the check prints something else


class Wave(Struct, frozen=True):
    """Steps for nodes that change together. A wave is finished before the next one begins."""

    name: str  # the label's value, if waves are made by label; "" in a phase without nodes
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]


class Phase(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a change with a purpose of its own."""

    title: str
    waves: tuple[Wave, ...]  # at least one
    file: str = ""
    """With loops: the file that has the nodes of a wave, a line each; `$wave` is the number of the wave."""


class Runbook(Struct, frozen=True, kw_only=True):
    """The steps of one change of one cluster."""

    cluster: str
    change: str  # a name of the enum in schemas/runbook.output.json
    title: str
    about: tuple[str, ...] = ()
    """What to know before the first step: limits, and the effect on the cluster meanwhile."""
    phases: tuple[Phase, ...]
    way_back: str = ""  # how the whole change is undone


SHORT = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "hostname": "kubernetes.io/hostname",
}
"""Short names of labels."""
_ROLES = {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
SHARE = 10  # without a size, the cluster is divided into this many waves


class Split(Struct, frozen=True, kw_only=True):
    """How nodes are split into waves."""

    size: int = 0  # the most nodes in a wave; 0: a tenth of the cluster, or with `by` all nodes of a value
    by: str = ""
    """A label: nodes with different values are in different waves; "": waves are made by name alone."""


def waves(cluster: Cluster, nodes: Collection[str], split: Split) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the waves as (label's value, nodes), by value, then by name; nodes without the label last.
    After them each node of the control plane is a wave of its own: etcd needs most of its members.
    """
    label = SHORT.get(split.by, split.by)
    labels: Mapping[str, Mapping[str, str]] = {node.name: node.labels for node in cluster.nodes}
    groups: dict[tuple[bool, str], list[str]] = defaultdict(list)
    alone = [node for node in sorted(nodes) if _ROLES & labels.get(node, {}).keys()]
    for node in sorted({*nodes} - {*alone}):
        value = labels.get(node, {}).get(label) if label else ""
        groups[value is None, value or ""].append(node)
    found = []
    for (lacks, value), members in sorted(groups.items()):
        size = split.size or (len(members) if label else max(1, len(cluster.nodes) // SHARE))
        name = f"without {label}" if lacks else value
        found += [(name, tuple(members[start : start + size])) for start in range(0, len(members), size)]
    return (*found, *(("control plane", (node,)) for node in alone))


WAVE, NODE, BREAK = "\1", "\2", "\3"
"""In values: what loops have a variable for, the number of a wave and a node. In commands: a line break."""
_BARE = str.maketrans({WAVE: "$wave", NODE: '"$node"'})
_QUOTED = str.maketrans({WAVE: "'\"$wave\"'", NODE: "'\"$node\"'", "\n": BREAK})
_CONTINUED = re.compile(r" \\\n *")


def runbook(
    templates: Mapping[str, str],
    template: str,
    cluster: str,
    change: str,
    values: Mapping[str, object],
    *,
    loops: bool = False,
) -> Runbook:
    """Return the runbook of a template. A bug in the template raises Jinja2's own errors, or TypeError.
    `loops`: steps of waves of many nodes have loops, so that waves that do the same have the same steps.
    """
    made = _Made(loops=loops)
    every = ("title", "about", "way_back", "phase", "step", "edit", "options")
    functions = {name: getattr(made, name) for name in every}
    filled = _environment(tuple(templates.items())).get_template(f"{template}.j2")
    filled.render(values, **functions, made=made)
    phases = []
    for title, file, waves in made.phases:
        some = [Wave(name, nodes, tuple(steps)) for name, nodes, steps in waves]
        phases.append(Phase(title=title, waves=tuple(some), file=file))
    return Runbook(
        cluster=cluster,
        change=change,
        title=made.heading,
        about=tuple(made.notes),
        phases=tuple(phases),
        way_back=made.back,
    )


class _Made:
    """What a template has appended so far."""

    def __init__(self, *, loops: bool) -> None:
        self.loops = loops
        self.plain = False  # whether values are printed as they are
        # Of the wave; and the file that has them where it has loops, else "".
        self.nodes: tuple[str, ...] = ()
        self.file = ""
        self.heading = self.back = ""
        self.notes: list[str] = []
        self.phases: list[tuple[str, str, list[tuple[str, tuple[str, ...], list[Step]]]]] = []

    def title(self, text: str) -> None:
        """Set the title of the runbook."""
        self.heading = text

    def about(self, text: str) -> None:
        """Append what to know before the first step."""
        self.notes.append(text)

    def way_back(self, text: str) -> None:
        """Set how the whole change is undone."""
        self.back = text

    def phase(
        self,
        title: str,
        waves: Sequence[tuple[str, tuple[str, ...]]] = (),
        caller: Macro | None = None,
    ) -> str:
        """Append a phase. `waves` have names and nodes; `caller` gets the nodes of each, its number, and
        whether it is the last one, and appends its steps. Without `waves` the steps come next.
        """
        many = self.loops and sum(len(nodes) for _, nodes in waves) > NODES_WITHOUT_LOOP
        self.nodes, file = (), f"wave-{chr(ord('a') + len(self.phases))}-{WAVE}.txt" if many else ""
        made: list[tuple[str, tuple[str, ...], list[Step]]] = []
        self.phases.append((title, _prose(file), made))
        for number, (name, nodes) in enumerate(waves, 1):
            made.append((name, nodes, []))
            self.nodes, self.file = nodes, file
            turn = (nodes, WAVE if many else number, number == len(waves))
            caller(*turn[: len(caller.arguments)]) if caller else None
        if not made:
            made.append(("", (), []))
        return ""  # a call prints what it returns

    def edit(self, key: str, title: str, why: str = "", *, caller: Macro) -> str:
        """Append a step that changes a file; `caller` prints how."""
        self.plain = True
        text = _lines(caller())
        self.plain = False
        return self.step(key, title, why, edit=text)

    def step(
        self,
        key: str,
        title: str,
        why: str = "",
        *,
        nodes: Sequence[str] = (),
        each: Sequence[str] = (),
        caller: Macro | None = None,
        **fields: Any,
    ) -> str:
        """Append a step with `fields` of `Step` and of `_check`; `caller` prints its commands.
        `each`: the nodes that `caller` is called for, if their commands differ in more than the node.
        """
        asked = {name: fields.pop(name, "") for name in ("check", "prints", "prints_each")}
        check = self._check(nodes, **asked)
        commands = self._commands(nodes, each, caller) if caller else ()
        where = fields.pop("where", "editor" if fields.get("edit") and not commands else "here")
        prose = {name: _prose(text) for name, text in {**fields, "title": title, "why": why}.items()}
        whose = () if self._have_file(nodes) else tuple(nodes)
        made = Step(key=key, nodes=whose, where=Where(where), commands=commands, check=check, **prose)
        self.phases[-1][2][-1][2].append(made)
        return ""

    def _check(self, nodes: Sequence[str], *, check: str, prints: object, prints_each: str) -> Check | None:
        """Return a check of what a command prints: `prints`, or `prints_each` with each node as `$node`."""
        if not check:
            return None
        file = self._have_file(nodes)
        each = [prints_each] if file else [prints_each.replace("$node", node) for node in nodes]
        expect = "\n".join(each) if prints_each else str(prints)
        return Check(_lines(check), expect, each=bool(prints_each) and file)

    def _commands(self, nodes: Sequence[str], each: Sequence[str], caller: Macro) -> tuple[str, ...]:
        if not caller.arguments:
            text = caller()
        elif not each and self._have_file(nodes):
            text = f"for node in {self.words(nodes)}; do {_lines(caller(NODE))} || break; done"
        else:
            text = "\n".join(map(caller, each or nodes))
        return tuple(line.replace(BREAK, "\n") for line in _joined(text).split("\n") if line.strip())

    def _have_file(self, nodes: object) -> bool:
        return bool(self.file) and isinstance(nodes, list | tuple) and tuple(nodes) == self.nodes

    def words(self, value: object) -> str:
        """Return a value as words of a shell; nodes that a file has as the command that prints them."""
        if self._have_file(value):
            return f"$(cat {_word(self.file)})"
        return " ".join(map(_word, value)) if type(value) is list or type(value) is tuple else _word(value)

    def options(self, option: str, values: Sequence[str]) -> _Shell:
        """Return an option with each of the values, for a shell."""
        if self._have_file(values):
            return _Shell(f"$(sed 's/^/{option} /' {_word(self.file)})")
        return _Shell(" ".join(f"{option} {_word(value)}" for value in values))


class _Shell(str):
    """Text for a shell, whose values are quoted."""

    __slots__ = ()
    __html__ = str.__str__  # what Jinja2 knows such text by


def _joined(text: str) -> str:
    return _CONTINUED.sub(" ", str(text)).strip("\n")


def _lines(text: str) -> str:
    return _joined(text).replace(BREAK, "\n")


def _prose(text: str) -> str:
    return str(text).replace(WAVE, "$wave")


def _word(value: object) -> str:
    text = str(value)
    bare = text.replace(WAVE, "0").replace(NODE, "0")
    return text.translate(_BARE) if quote(bare) == bare else quote(text).translate(_QUOTED)


def _rows(texts: Mapping[str, str], nodes: Sequence[str] = ()) -> str:
    """Return a line for each node: its name and its text."""
    return "\n".join(f"{node} {texts[node]}" for node in nodes or texts)


@lru_cache(maxsize=2)
def _environment(templates: tuple[tuple[str, str], ...]) -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined, pass_context  # noqa: PLC0415 - 60 ms

    @pass_context  # else Jinja2 escapes constants as HTML while it compiles
    def printed(context: Context, value: object) -> object:
        # With `autoescape`, a macro returns text that has `__html__`: its values are quoted already.
        if hasattr(value, "__html__"):
            return value
        made = context["made"]
        return _Shell(str(value).replace("\n", BREAK) if made.plain else made.words(value))

    environment = Environment(
        loader=DictLoader(dict(templates)),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": count,
        "json": lambda value: json.dumps(value, separators=(",", ":")),
        "names": names,
        "rows": _rows,
        "sh": quote,
    }
    return environment
