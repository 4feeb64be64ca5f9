"""A page for each verb: synopsis, arguments, options, examples, exit codes, and where its use is explained."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from ipamc.cli import VERBS, ipamc
from ipamc.cli.command import Lazy
from tools.website.reference.markdown import code, page, paragraphs, prose, table

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = "verbs/"
CODES = "../codes/"

EXPLAINED = {
    "check": ("start/check.md",),
    "compile": ("start/new-cluster.md", "how-to/add-nodes.md", "how-to/ci-other.md"),
    "lock": ("concepts/consent.md", "concepts/lock.md", "how-to/full-pool.md"),
    "plan": ("how-to/review-a-plan.md",),
    "test": ("tests.md",),
    "resize": ("how-to/resize.md",),
    "show": ("show.md", "metrics.md"),
    "aggregates": ("show.md",),
    "forecast": ("forecast.md", "how-to/full-pool.md"),
    "which": ("show.md",),
    "why": ("concepts/how-a-block-is-chosen.md",),
    "report": ("report.md",),
    "suggest": ("how-to/full-pool.md",),
    "import": ("start/running-cluster.md", "how-to/calico-to-cilium.md", "netbox.md"),
    "export": ("netbox.md",),
    "audit": ("how-to/audit.md",),
    "runbook": ("runbooks/README.md",),
    "ci": (
        "how-to/ci-github.md",
        "how-to/ci-gitlab.md",
        "how-to/ci-install.md",
        "how-to/ci-oidc.md",
        "how-to/argo-cd.md",
        "how-to/flux.md",
    ),
    "init": ("start/new-cluster.md",),
    "schema": ("reference/fields/README.md",),
    "explain": ("reference/codes/README.md",),
    "merge-driver": ("concepts/lock.md",),
    "fn": ("how-to/kpt-and-kustomize.md",),
}
"""By verb: the pages below docs/ that explain its use."""


def pages() -> dict[str, str]:
    """Return the pages by path."""
    made: dict[str, str] = {}
    context = click.Context(ipamc, info_name="ipamc", help_option_names=["-h", "--help"])
    for name in ipamc.list_commands(context):
        for words, command in _commands(context, ipamc, name):
            made[f"{FOLDER}{'-'.join(words)}.md"] = page(*_verb(words, command))
    index = page(
        "# Verbs",
        "Every verb of `ipamc`, with its arguments, options, examples and exit codes. `ipamc VERB --help` prints the same.",
        table(
            ["verb", "what it does"],
            [[f"[{code(name)}]({name}.md)", prose(line)] for name, line in VERBS.items()],
        ),
        "## Exit codes",
        _exits(ipamc),
    )
    return {**made, f"{FOLDER}README.md": index}


def _commands(
    context: click.Context, group: click.Group, name: str, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    command = group.get_command(context, name)
    if command is None or command.hidden:
        return
    words = (*before, name)
    yield words, command
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _commands(context, command, each, words)


def _verb(words: tuple[str, ...], command: click.Command) -> Iterator[str]:
    called = " ".join(("ipamc", *words))
    # As in a run; click keeps the option of the first context that asked for it, whatever its names were.
    command._help_option = None  # noqa: SLF001
    context = click.Context(command, info_name=called, help_option_names=["-h", "--help"])
    first, *rest = inspect.cleandoc(command.help or "").replace("\b\n", "").split("\n\n")
    yield f"# {called}"
    yield prose(first)
    yield f"```text\n{' '.join(command.collect_usage_pieces(context)).join((called + ' ', ''))}\n```"
    yield paragraphs("\n\n".join(rest), CODES)
    if pages := EXPLAINED.get(words[0]):
        yield (
            "Its use is explained in " + ", ".join(f"[{heading(path)}](../../{path})" for path in pages) + "."
        )
    if isinstance(command, Lazy):
        yield "## Verbs below it"
        rows = [
            [f"[{code(f'{called} {name}')}]({'-'.join((*words, name))}.md)", prose(line)]
            for name, line in command.lines.items()
        ]
        yield table(["verb", "what it does"], rows)
    options = [
        record
        for each in command.get_params(context)
        if isinstance(each, click.Option) and (record := each.get_help_record(context))
    ]
    yield "## Options"
    yield "\n".join(_option(names, said) for names, said in options)
    if examples := _epilog(command).get("Examples"):
        yield "## Examples"
        yield "\n".join(f"- {code(line)}: {prose(what)}" for line, what in examples)
    yield "## Exit codes"
    yield _exits(command)


def _option(names: str, said: str) -> str:
    """Return an item of a list: the spellings of an option, what it does, its default."""
    text, _, facts = said.partition("  [")
    shown = [prose(text, CODES)]
    for fact in facts.rstrip("]").replace("]  [", "; ").split("; ") if facts else ():
        key, colon, value = fact.partition(": ")
        shown.append(f"{_FACTS.get(key, key)}: {code(value)}." if colon else f"{code(fact)}.")
    return f"- {code(names)}: {' '.join(shown)}"


_FACTS = {"default": "Default", "env var": "Environment variable"}


class _Sections(click.HelpFormatter):
    """Keeps the lists of a help text, by the title of their section."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[tuple[str, str]]] = {}

    def write_heading(self, heading: str) -> None:
        """Begin a section."""
        self.found[heading] = []

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: Any, **__: Any) -> None:
        """Keep a list."""
        next(reversed(self.found.values())).extend(rows)


def _epilog(command: click.Command) -> dict[str, list[tuple[str, str]]]:
    """Return the examples and the exit codes of a verb."""
    sections = _Sections()
    command.format_epilog(click.Context(command), sections)
    return sections.found


def heading(path: str) -> str:
    """Return the first heading of a page below docs/."""
    return (DOCS / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _exits(command: click.Command) -> str:
    return table(["code", "when"], [[number, prose(when)] for number, when in _epilog(command)["Exit codes"]])
