"""`ipamc version`, `schema` and `completion`: ipamc itself; `explain`: what its words mean."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import output_option, write_option
from ipamc.cli.terminal import say, show, show_record
from ipamc.workspace import disk

VERSION = 1  # of the JSON of `ipamc version`: it grows when a field changes its meaning or is removed


@click.command(cls=Verb)
@output_option("text", "json")
@click.option("--json", "as_json", is_flag=True)
def version(*, output: str, as_json: bool) -> int:
    """Show the versions of ipamc, Python and the libraries, the known Cilium minors, and the lock's format.

    The output has no time in it: two runs on one machine print the same.

    Options:
        --json: The same as --output json.
    Examples:
        ipamc version  # ipamc, Python and the libraries, and the known Cilium minors
        ipamc version --json  # the same, for programs
        ipamc --version  # only ipamc
    """
    from ipamc import __version__
    from ipamc.lock.file_rules import FORMAT
    from ipamc.model.cilium.versions import minors, text
    from ipamc.workspace.environment import libraries, runtime

    parts = {"ipamc": __version__, **runtime()}
    known = [text(minor) for minor in minors()]
    if as_json or output == "json":
        found = {"version": VERSION, **parts, "dependencies": libraries(), "cilium": known, "lock": FORMAT}
        show_record(found)
        return DONE
    rows = {**parts, **libraries(), "cilium": f"{known[0]} to {known[-1]}", "lock": f"format {FORMAT}"}
    show("".join(f"{name:<16}{value}\n" for name, value in rows.items()))
    return DONE


@click.command(cls=Verb)
@click.argument("kind", required=False)
@write_option("Write one file per kind into this folder instead.", metavar="DIR")
def schema(*, kind: str | None, path: str | None) -> int:
    """Print the JSON Schema of a kind; without KIND, list the kinds.

    Editors find a schema by the first line of a file, such as '# yaml-language-server:
    $schema=../.schemas/ippool.schema.json'.

    Examples:
        ipamc schema  # the kinds that have a schema
        ipamc schema IPPool  # one schema, to stdout
        ipamc schema --write clusters/.schemas  # all of them, where the files of 'ipamc init' expect them
    """
    schemas = every = disk.schemas()
    if kind is not None:
        schemas = {name: text for name, text in every.items() if name == kind.lower()}
        if not schemas:
            raise click.UsageError(f"no schema of {kind!r}; the schemas are {', '.join(every)}")
    if path is not None:
        for name, text in schemas.items():
            disk.replace(f"{path}/{name}{disk.SCHEMA}", text)
        say(f"{path}: {', '.join(schemas)}")
    elif kind is None:
        for name, text in schemas.items():
            click.echo(f"{name}: {json.loads(text).get('description', '')}".rstrip(": "))
    else:
        click.echo("".join(schemas.values()), nl=False)
    return DONE


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(*, shell: str) -> int:
    """Print the completion script of a shell: bash, zsh or fish.

    Examples:
        eval "$(ipamc completion bash)"  # in ~/.bashrc
        eval "$(ipamc completion zsh)"  # in ~/.zshrc
        ipamc completion fish > ~/.config/fish/completions/ipamc.fish  # once
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click has no completion for {shell}")
    program = click.get_current_context().find_root().command
    script = kind(program, {}, "ipamc", "_IPAMC_COMPLETE")
    # script.source() would run bash to ask for its version
    click.echo(script.source_template % script.source_vars())
    return DONE


_NUMBER = re.compile(r"(?:IPC)?\d{1,4}", re.IGNORECASE).fullmatch


@click.command(cls=Verb)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def explain(*, words: tuple[str, ...]) -> int:
    """Explain a code, a concept, a field or a verb.

    For a code, shows why it matters and what to do. Without WORD, lists all codes.

    Examples:
        ipamc explain IPC0207  # why this is refused, and what to do
        ipamc explain quarantine  # what a word means; 'ipamc explain concepts' lists the words
        ipamc explain IPPool.spec.nodeSelector  # a field of a document
        ipamc explain  # every code and its rule
        ipamc explain versions  # what each Cilium minor does, and how that is known
    """
    from ipamc.catalogue import catalogue, example_of

    word = " ".join(words)
    if word == "versions":
        from ipamc.report.explain import versions_text

        click.echo(versions_text(), nl=False)
    elif not word:
        for entry in catalogue(disk.assets("rules")).values():
            click.echo(f"{entry.code}  {entry.title}")
    elif word == "concepts":
        from ipamc.report.explain import concepts

        for concept in concepts(disk.assets("rules/words")):
            first = " ".join(concept.text.split()).split(". ")[0].rstrip(".")
            name = f"{concept.name:<15} "
            click.echo(f"{name}{textwrap.shorten(first, 136 - len(name), placeholder=' …')}")
    elif _NUMBER(word) and (known := catalogue(disk.assets("rules")).get(_code(word))):
        from ipamc.report.explain import rule_text

        click.echo(rule_text(known, example_of(known.code, disk.assets("rules"))), nl=False)
    elif texts := _meanings(word):
        click.echo("\n".join(texts), nl=False)
    else:
        raise click.UsageError(_unknown(word))
    return DONE


def _code(word: str) -> str:
    return f"IPC{word.upper().removeprefix('IPC').zfill(4)}"


def _meanings(word: str) -> list[str]:
    """Return the explanations of a word as a concept, as fields and as a verb."""
    from ipamc.report.explain import concepts, field_text, fields_of, matching

    texts = [str(concept) for concept in concepts(disk.assets("rules/words")) if concept.is_named(word)]
    every = fields_of(disk.schemas())
    found = matching(word, every)
    found = [field for field in found if field.path.lower() == word.lower()] or found
    paths = [field.path for field in found]
    paths = paths or [path for path in every if path.lower().rpartition(".")[0] == word.lower()]
    if len(found) == 1 and not texts:
        texts.append(field_text(found[0]))
    elif paths:
        texts.append("Fields:\n" + "".join(f"  ipamc explain {path}\n" for path in paths))
    name = word.lower().removeprefix("ipamc ")
    if verb := _verbs().get(name):
        texts.append(f"ipamc {name}: {verb}\n\n  ipamc {name} --help\n")
    return texts


def _verbs() -> Mapping[str, str]:
    from ipamc.cli import VERBS
    from ipamc.cli.ci import STEPS

    return {**VERBS, **{f"ci {name}": line for name, (_, line) in STEPS.items()}}


def _unknown(word: str) -> str:
    """Return the error for a word that has no explanation, with similar words."""
    from ipamc.catalogue import catalogue
    from ipamc.model.wording import listing, near
    from ipamc.report.explain import concepts, fields_of

    if _NUMBER(word) or word.upper().startswith("IPC"):
        meant = near(_code(word), catalogue(disk.assets("rules")), 3)
        what, lists = f"no code {word!r}", "'ipamc explain' lists all codes"
    else:
        paths = fields_of(disk.schemas())
        names = {path.rpartition(".")[2] for path in paths} | set(paths)
        names |= {
            each for concept in concepts(disk.assets("rules/words")) for each in (concept.name, *concept.also)
        } | set(_verbs())
        meant = near(word, names, 3)
        what = f"nothing about {word!r}"
        lists = "'ipamc explain' lists codes, 'ipamc explain concepts' words"
    return f"there is {what}: {f'did you mean {listing(meant)}?' if meant else lists}"
