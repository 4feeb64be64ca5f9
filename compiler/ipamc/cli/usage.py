"""Messages for a command line that ipamc cannot read: `error:`, the word, what is wrong, and what to run.

click finds the mistake; the sentences are ours, so that these errors look like all others.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import PurePath

import click
import msgspec

from ipamc.cli.command import NoCluster, NoVerb
from ipamc.model.wording import listing, near, nearest, shown, suggestion
from ipamc.workspace.disk import assets
from ipamc.workspace.failure import EnvironmentFailure

_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL).fullmatch
_NUMBERS = (click.types.IntParamType, click.types.FloatParamType)
_CODE = re.compile(r"(?:IPC)?\d{4}", re.IGNORECASE).fullmatch


class OtherTools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of other tools, and their counterparts in ipamc: an entry of `rules/words/tools/`."""

    words: tuple[str, ...]
    says: str = ""
    run: tuple[str, ...] = ()
    """Complete commands, with CLUSTER, NODE and POOL in place of names."""
    ours: tuple[str, ...] = ()
    """Options: the first that the verb has replaces the sentence."""


def of_other_tools(kind: str) -> dict[str, OtherTools]:
    """Return the known `verbs`, `options` or `ci` systems of other tools, by word."""
    entries = msgspec.yaml.decode(assets("rules/words/tools")[f"{kind}.yaml"], type=list[OtherTools])
    return {word: each for each in entries for word in each.words}


def tell(problem: click.UsageError) -> None:
    """Print what is wrong with a command line and what to run; without arguments, the help."""
    from ipamc.cli.terminal import columns, say, show

    if isinstance(problem, NoVerb) and problem.word is None and problem.ctx and problem.ctx.parent is None:
        show(f"{problem.ctx.get_help()}\n", err=True)
        return
    path = problem.ctx.command_path if problem.ctx else "ipamc"
    first, *more = _error_lines(problem, path)
    if not (more and isinstance(problem, NoVerb)):
        more.append(f"{path} --help")
    # What is wrong is wrapped where a terminal would break words; commands stay whole.
    width = max(columns(sys.stderr), 40) if sys.stderr.isatty() else sys.maxsize
    said = f"error: {first}"
    if len(said) > width:
        said = textwrap.fill(
            said, width, subsequent_indent="       ", break_long_words=False, break_on_hyphens=False
        )
    say("\n".join((said, *(f"  = help: {line}" for line in more))))


def _error_lines(problem: click.UsageError, path: str) -> Iterator[str]:
    match problem:
        case NoVerb(word=None, known=known):
            yield f"{path} needs one of: {', '.join(known)}"
        case NoVerb(word=str(word), known=known):
            yield from _no_such_verb(word, known, path)
        case NoCluster(word=word):
            yield problem.message
            yield from _no_cluster(word)
        case click.NoSuchOption(option_name=name):
            yield from _no_such_option(name, problem.ctx, path)
        case click.BadOptionUsage(option_name=name):
            option = _options(problem.ctx).get(name)
            if option is None or "requires" in problem.message:
                yield f"{name} needs a value: {path} {_spelled(option) if option else f'{name} VALUE'}"
            else:
                yield f"{name} takes no value: {path} {name}"
        case click.MissingParameter(param=click.Option() as option):
            yield f"{path} needs {_spelled(option)}"
            yield f"{_spelled(option)}: {option.help}"
        case click.MissingParameter(param=click.Parameter() as param):
            some = isinstance(param.type, click.Choice) and f" ({listing(map(str, param.type.choices))})"
            yield f"{path} needs {_name(param)}{some or ''}: {_line(problem.ctx, path)}"
        case click.BadParameter(param=click.Parameter() as param):
            yield from _bad_value(problem.message, param, problem.ctx)
        case _:
            if extra := _EXTRA(problem.message):
                yield f"unexpected argument {shown(extra['words'])}: {_line(problem.ctx, path)}"
            else:
                yield _lower(problem.format_message())


def _no_such_verb(word: str, known: list[str], path: str) -> Iterator[str]:
    if path != "ipamc":
        others = f"write {path} {known[0]} {shlex.quote(word)}" if len(known) == 1 else ", ".join(known)
        if path == "ipamc ci" and (found := of_other_tools("ci").get(word.lower())):
            yield f"{shown(word)}: {found.says}"
            yield from found.run
            return
        yield f"{shown(word)} is not a command of {path}: {suggestion(word, known) or others}"
        return
    what, run = _meaning(word)
    meant = "" if what or run else suggestion(word, known)
    yield f"{shown(word)} is {what or 'not a verb of ipamc'}" + (f": {meant}" if meant else "")
    yield from run


def _no_cluster(word: str) -> Iterator[str]:
    from ipamc.cli.query import is_address
    from ipamc.workspace import disk
    from ipamc.workspace.clusters import find, name_of

    name = shlex.quote(word)
    found: dict[str, str] = {}
    """The first cluster whose lock has a node or a pool of this name, by which of both."""
    with contextlib.suppress(EnvironmentFailure, OSError):
        for folder in find():
            text = disk.read_lock(folder) or b""
            for kind in ("node", "pool"):
                if f'"{kind}":{json.dumps(word)}'.encode() in text:
                    found.setdefault(kind, name_of(folder))
    for kind, of in sorted(found.items()):
        yield f"it is a {kind} of {of}: ipamc show {shlex.quote(of)} --{kind} {name}" + (
            f", ipamc why {name}, ipamc which {name}" if kind == "node" else ""
        )
    if not found and is_address(word):
        yield f"it is an address: ipamc which {name}"


def _meaning(word: str) -> tuple[str, tuple[str, ...]]:
    """Return what a word that is no verb means (a code, an address, a cluster), and commands to run."""
    if found := of_other_tools("verbs").get(word.lower()):
        return f"not a verb of ipamc: {found.says}" if found.says else "", found.run
    quoted = shlex.quote(word)
    if _CODE(word):
        return "a code, not a verb", (f"ipamc explain {quoted}",)
    from ipamc.cli.query import is_address

    if is_address(word):
        return "an address, not a verb", (f"ipamc which {quoted}",)
    from ipamc.workspace.clusters import known_names

    names = known_names()
    parts = reversed(PurePath(word).parts)  # of a file in it, too
    if cluster := next((part for part in parts if part in names), ""):
        name = shlex.quote(cluster)
        return "a cluster, not a verb", (f"ipamc compile {name}", f"ipamc plan {name}", f"ipamc show {name}")
    return "", ()


def _no_such_option(name: str, ctx: click.Context | None, path: str) -> Iterator[str]:
    ours, instead = _options(ctx), of_other_tools("options").get(name)
    if ctx and ctx.parent is None and (instead or not near(name, ours, 1)):
        yield f"{name} is not an option of {path}" + (
            ": --version, or -V, shows the version"
            if name == "-v"
            else ": write options of a verb after the verb"
        )
        return
    mine = [ours[option] for option in instead.ours if option in ours] if instead else []
    text = instead.says.replace("OPTION", name) if instead and not mine else ""
    meant = [] if mine or text else near(name, ours, 1)
    yield f"{name} is not an option of {path}" + (
        f": {text}" if text else f": did you mean {' or '.join(meant)}?" if meant else ""
    )
    yield from (f"{_spelled(option)}: {option.help}" for option in mine[:1])


def _options(ctx: click.Context | None) -> dict[str, click.Option]:
    params = ctx.command.get_params(ctx) if ctx else []
    return {
        name: param
        for param in params
        if isinstance(param, click.Option) and not param.hidden
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--")
    }


def _bad_value(message: str, param: click.Parameter, ctx: click.Context | None) -> Iterator[str]:
    name = _name(param)
    quoted = re.match(r"(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\") is not ", message)
    value = quoted["value"][1:-1] if quoted else None
    if isinstance(param.type, click.Choice) and value is not None:
        yield from _no_choice(value, name, [str(choice) for choice in param.type.choices], ctx)
    elif isinstance(param.type, click.IntRange | click.FloatRange) and (
        found := re.match(r"(-?(?:[\d.]+|inf)) is not in the range", message)
    ):
        least, most = param.type.min, param.type.max
        numbers = f"{least} or more" if most is None else f"{least} to {most}"
        yield f"{found[1].removesuffix('.0')} is not a value of {name}: use {numbers}"
    elif isinstance(param.type, _NUMBERS) and value is not None:
        number = re.search(r"\d{1,9}", value)
        better = f"{name} {number[0]}" if number else "a number"
        yield f"{shown(value)} is not a value of {name}: use {better}"
    else:
        text = _lower(message)
        yield text if name in text else f"{name}: {text}"


def _no_choice(value: str, name: str, choices: list[str], ctx: click.Context | None) -> Iterator[str]:
    other = {"--format": "--output", "--output": "--format"}.get(name, "")
    option = _options(ctx).get(other)
    if option and isinstance(option.type, click.Choice) and value in option.type.choices:
        what = "data" if name == "--format" else "findings"
        yield f"{shown(value)} is not a value of {name}: for {what}, use {other} {value}"
        return
    for_people = value in {"table", "human", "plain"} and "text" in choices
    meant = nearest(value, choices) or ("text" if for_people else "")
    instead = of_other_tools("options").get(value)
    better = f"did you mean {meant}?" if meant else instead.says.replace("OPTION", value) if instead else ""
    yield f"{shown(value)} is not a value of {name}: {better or f'use {listing(choices)}'}"
    if meant:
        yield f"{name}: {listing(choices)}"


def _name(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else _metavar(param)


def _metavar(param: click.Parameter) -> str:
    return (param.metavar or (param.name or "").upper()).strip("[].")


def _spelled(option: click.Option) -> str:
    """Return an option with the placeholder of its value, such as `--base REV`."""
    name = max(option.opts, key=len)
    if option.is_flag or option.count:
        return name
    if option.metavar:
        return f"{name} {option.metavar}"
    if isinstance(option.type, click.Choice):
        return f"{name} {'|'.join(map(str, option.type.choices))}"
    return f"{name} {'N' if isinstance(option.type, click.types.IntParamType) else 'VALUE'}"


def _line(ctx: click.Context | None, path: str) -> str:
    for param in ctx.command.params if ctx else ():
        if isinstance(param, click.Argument):
            name = _metavar(param)
            path += f" {param.metavar or (name if param.required else f'[{name}]')}"
    return path


def _lower(text: str) -> str:
    """Return a message in lower case without a full stop; a leading name keeps its case."""
    head = text.split(" ", 1)[0]
    whole = text[:1].lower() + text[1:] if head.istitle() and head.isalpha() else text
    return whole.removesuffix(".")
