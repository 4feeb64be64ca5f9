"""The classes of all commands: help with examples and exit codes; groups that import commands late."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

DONE, REFUSED, CHANGED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 64, 70, 130


class NoVerb(click.UsageError):
    """The first word after a group is not one of its commands. `word` is None if there is no word."""

    def __init__(self, word: str | None, known: Iterable[str], ctx: click.Context) -> None:
        super().__init__("no command", ctx)
        self.word = word
        self.known = list(known)


class NoCluster(click.UsageError):
    """A word in the place of a cluster names no cluster."""

    def __init__(self, message: str, word: str, ctx: click.Context) -> None:
        super().__init__(message, ctx)
        self.word = word


class _Helped(click.Command):
    """A command whose help ends with examples, as (line, effect), and the exit codes 0, 1 and perhaps 2."""

    examples: Sequence[tuple[str, str]]
    exits: Sequence[str]

    def __init__(self, *, help: str | None = None, **kwargs: Any) -> None:
        super().__init__(help=help or _docstring(kwargs.get("callback")), **kwargs)

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples and exit codes."""
        with formatter.section("Examples"):
            formatter.write_dl(self.examples)
        codes = [(str(code), when) for code, when in enumerate(self.exits) if when]
        codes.append((str(USAGE), "wrong usage: an unknown option, cluster, kind or code"))
        codes += [(str(BUG), "a bug in ipamc"), (str(INTERRUPTED), "interrupted")]
        with formatter.section("Exit codes"):
            formatter.write_dl(codes)


class Verb(_Helped):
    """A command whose docstring is its help page: text, then sections.
    An entry of a section is a line and the further indented lines below it:

        Options:
            --check: Write nothing.
        Examples:
            ipamc compile lab  # the cluster in clusters/lab/
        Exit codes:
            1: refused

    KeyError for the help of an option that the command does not have.
    """

    def __init__(
        self, *, help: str | None = None, former: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        text, sections = _sections(help or _docstring(kwargs["callback"]))
        super().__init__(help=text, **kwargs)
        options = {name: param for param in self.params for name in param.opts}
        for line in sections["Options"]:
            name, _, said = line.partition(": ")
            options[name].help = said
        pairs = [line.split(" # ", 1) for line in sections["Examples"]]
        self.examples = [(command.rstrip(), said) for command, said in pairs]
        exits = {DONE: "done", REFUSED: "an I/O or environment error", CHANGED: ""}
        exits |= {int(line[0]): line[3:] for line in sections["Exit codes"]}
        self.exits = list(exits.values())
        self.former = former or {}  # options by names that they had before: accepted, and not shown

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line as click does, after former names of options are replaced."""
        with _attached_to(ctx):
            return super().parse_args(ctx, renamed(args, self.former))

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; during shell completion, with the words to offer."""
        params = super().get_params(ctx)
        if ctx.resilient_parsing:
            from ipamc.cli.completion_words import prepare

            prepare(params)
        return params

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command as click does; turn a misspelled name into a usage error."""
        try:
            with _attached_to(ctx):
                return super().invoke(ctx)
        except click.ClickException:
            raise
        except Exception as problem:
            from ipamc.workspace.failure import Misnamed

            if isinstance(problem, Misnamed):
                raise NoCluster(str(problem), problem.word, ctx) from None
            raise


class Lazy(_Helped, click.Group):
    """A group that imports a command when it is called, so that help and completion are quick."""

    lines: Mapping[str, str]  # the lines of its help, by name
    former: Collection[str] = ()  # names of commands that are accepted, and not shown

    def where(self, name: str) -> tuple[str, str]:
        """Return the module of a command, below `ipamc.cli`, and the name of its function there."""
        raise NotImplementedError

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line as click does. A group without a command is a usage error."""
        if not args and not ctx.resilient_parsing:
            raise NoVerb(None, self.lines, ctx)
        with _attached_to(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does. Raises NoVerb, not click's own error, for an unknown command."""
        known = {*self.lines, *self.former}
        if not ctx.resilient_parsing and args[0] not in known and not args[0].startswith("-"):
            raise NoVerb(args[0], self.lines, ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.lines)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None where there is none of this name."""
        if cmd_name not in {*self.lines, *self.former}:
            return None
        module, attribute = self.where(cmd_name)
        command: click.Command = getattr(importlib.import_module(f"ipamc.cli.{module}"), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))


def _docstring(function: Any) -> str:
    """Return the docstring of a function from its source: PYTHONOPTIMIZE=2 takes it away."""
    import ast

    if function is None:
        return ""
    parsed = ast.walk(ast.parse(inspect.getsource(function)))
    return ast.get_docstring(next(each for each in parsed if isinstance(each, ast.FunctionDef))) or ""


def _sections(docstring: str) -> tuple[str, dict[str, list[str]]]:
    found: dict[str, list[str]] = {"Options": [], "Examples": [], "Exit codes": []}
    text: list[str] = []
    entries = None
    for line in inspect.cleandoc(docstring).split("\n"):
        if line.endswith(":") and line[:-1] in found:
            entries = found[line[:-1]]
        elif entries is None:
            text.append(line)
        elif line.startswith("     "):
            entries[-1] += f" {line.strip()}"
        elif line:
            entries.append(line.strip())
    return "\n".join(text).rstrip(), found


@contextlib.contextmanager
def _attached_to(ctx: click.Context) -> Iterator[None]:
    """Attach this command to a usage error that names no command."""
    try:
        yield
    except click.UsageError as problem:
        problem.ctx = problem.ctx or ctx
        raise


def renamed(words: list[str], names: Mapping[str, str]) -> list[str]:
    """Replace names of options in a command line, up to `--`."""
    end = words.index("--") if "--" in words else len(words)
    split = [word.partition("=") for word in words[:end]]
    return [*(names.get(option, option) + equals + value for option, equals, value in split), *words[end:]]
