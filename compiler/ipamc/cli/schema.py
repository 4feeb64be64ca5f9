"""`ipamc schema`: JSON Schemas for editors."""

from __future__ import annotations

import json

import click

from ipamc.cli.command import DONE, Verb
from ipamc.workspace import disk

SUFFIX = ".schema.json"


@click.command(
    cls=Verb,
    examples=(
        ("ipamc schema", "the kinds that have a schema"),
        ("ipamc schema IPPool", "one schema, to stdout"),
        (
            "ipamc schema --output clusters/.schemas",
            "all of them, where the files that 'ipamc init' wrote look for them",
        ),
    ),
    refused="the surroundings failed",
)
@click.argument("kind", required=False)
@click.option("--output", metavar="DIR", help="Write into this folder instead, one file a kind.")
def command(*, kind: str | None, output: str | None) -> int:
    """Print the JSON Schema of a kind; without KIND, list them.

    Editors read them through a first line such as '# yaml-language-server: $schema=../.schemas/ippool.schema.json'.
    """
    schemas = by_kind()
    if kind is not None:
        schemas = {each: text for each, text in schemas.items() if each == kind.lower()}
        if not schemas:
            known = ", ".join(by_kind())
            raise click.UsageError(
                f"there is no schema of {kind!r}. There are: {known}", click.get_current_context()
            )
    if output is not None:
        for each, text in schemas.items():
            disk.replace(f"{output}/{file_name(each)}", text)
        click.echo(f"{output}: {', '.join(schemas)}", err=True)
    elif kind is None:
        for each, text in schemas.items():
            click.echo(f"{each}: {json.loads(text).get('description', '')}".rstrip(": "))
    else:
        click.echo("".join(schemas.values()), nl=False)
    return DONE


def by_kind() -> dict[str, str]:
    """Give the schemas' texts by kind, in lower case."""
    return {
        name.removesuffix(SUFFIX): text
        for name, text in disk.assets("schemas").items()
        if name.endswith(SUFFIX)
    }


def file_name(kind: str) -> str:
    """Give the name of the file that a kind's schema is written to."""
    return kind + SUFFIX
