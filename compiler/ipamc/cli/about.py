"""`ipamc version`, `ipamc schema` and `ipamc completion`: ipamc itself, for other programs."""

from __future__ import annotations

import json

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
    """Show the versions of ipamc, of Python and of the libraries, the minors of Cilium, and the lock's
    format.

    Two runs on one machine print the same: there is no time in it.

    Options:
        --json: The same as --output json.
    Examples:
        ipamc version  # ipamc, Python and the libraries, and the minors of Cilium that it knows
        ipamc version --json  # the same, for programs
        ipamc --version  # ipamc alone
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
@write_option("Write one file for each kind into this folder instead.", metavar="DIR")
def schema(*, kind: str | None, path: str | None) -> int:
    """Print the JSON Schema of a kind; without KIND, list the kinds.

    Editors find them by a first line such as '# yaml-language-server:
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
            raise click.UsageError(f"there is no schema of {kind!r}. There are: {', '.join(every)}")
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
        raise click.UsageError(f"this version of click cannot complete for {shell}")
    program = click.get_current_context().find_root().command
    script = kind(program, {}, "ipamc", "_IPAMC_COMPLETE")
    # script.source() would run bash to ask for its version
    click.echo(script.source_template % script.source_vars())
    return DONE
