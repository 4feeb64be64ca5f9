"""`ipamc schema`: the JSON Schemas of the inputs, for editors."""

from __future__ import annotations

import json

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import write_option
from ipamc.cli.terminal import say
from ipamc.workspace import disk

SUFFIX = ".schema.json"


@click.command(
    cls=Verb,
    examples=(
        ("ipamc schema", "the kinds that have a schema"),
        ("ipamc schema IPPool", "one schema, to stdout"),
        (
            "ipamc schema --write clusters/.schemas",
            "all of them, where the files of 'ipamc init' expect them",
        ),
    ),
    refused="an I/O or environment error",
)
@click.argument("kind", required=False)
@write_option("Write one file for each kind into this folder instead.", metavar="DIR")
def command(*, kind: str | None, path: str | None) -> int:
    """Print the JSON Schema of a kind; without KIND, list the kinds.

    Editors find them by a first line such as '# yaml-language-server:
    $schema=../.schemas/ippool.schema.json'.
    """
    schemas = by_kind()
    if kind is not None:
        schemas = {name: text for name, text in schemas.items() if name == kind.lower()}
        if not schemas:
            known = ", ".join(by_kind())
            raise click.UsageError(f"there is no schema of {kind!r}. There are: {known}")
    if path is not None:
        for name, text in schemas.items():
            disk.replace(f"{path}/{file_name(name)}", text)
        say(f"{path}: {', '.join(schemas)}")
    elif kind is None:
        for name, text in schemas.items():
            click.echo(f"{name}: {json.loads(text).get('description', '')}".rstrip(": "))
    else:
        click.echo("".join(schemas.values()), nl=False)
    return DONE


def by_kind() -> dict[str, str]:
    """Return the schemas' texts by kind, in lower case."""
    return {
        name.removesuffix(SUFFIX): text
        for name, text in disk.assets("schemas").items()
        if name.endswith(SUFFIX)
    }


def file_name(kind: str) -> str:
    """Return the name of a schema's file."""
    return kind + SUFFIX
