"""`ipamc explain`: codes, concepts, fields, verbs, and the table of Cilium versions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

import click

from ipamc.cli.command import DONE, Verb

_NUMBER = re.compile(r"(?:IPC)?\d{1,4}", re.IGNORECASE).fullmatch


@click.command(
    cls=Verb,
    examples=(
        ("ipamc explain IPC0207", "why this is refused, and what to do"),
        ("ipamc explain quarantine", "what a word means here; 'ipamc explain concepts' lists them"),
        ("ipamc explain IPPool.spec.nodeSelector", "a field of a document"),
        ("ipamc explain", "every code and its rule"),
        ("ipamc explain versions", "what each Cilium minor does, and how that is known"),
    ),
    refused="an I/O or environment error",
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def command(*, words: tuple[str, ...]) -> int:
    """Explain a code, a concept, a field or a verb.

    Of a code, shows why it matters and what to do. Without WORD, lists all codes.
    """
    word = " ".join(words)
    if word == "versions":
        from ipamc.report.explain import versions_text

        click.echo(versions_text(), nl=False)
    elif not word:
        from ipamc.catalogue import catalogue
        from ipamc.workspace.disk import assets

        for entry in catalogue(assets("rules")).values():
            click.echo(f"{entry.code}  {entry.title}")
    elif word == "concepts":
        from ipamc.report.concepts import concepts
        from ipamc.workspace.disk import assets

        for concept in concepts(assets("words")):
            first = " ".join(concept.text.split()).split(". ")[0].rstrip(".")
            name = f"{concept.name:<15} "
            click.echo(f"{name}{textwrap.shorten(first, 136 - len(name), placeholder=' …')}")
    elif not (_code(word) or _meaning(word)):
        raise click.UsageError(_unknown(word))
    return DONE


def _code(word: str) -> bool:
    """Print the rule of a code; tell whether there is one."""
    if not _NUMBER(word):
        return False
    from ipamc.catalogue import catalogue
    from ipamc.catalogue.examples import examples
    from ipamc.report.explain import rule_text
    from ipamc.workspace.disk import assets

    entry = catalogue(assets("rules")).get(f"IPC{word.upper().removeprefix('IPC').zfill(4)}")
    if entry is None:
        return False
    click.echo(rule_text(entry, examples(assets("examples")).get(entry.code)), nl=False)
    return True


def _meaning(word: str) -> bool:
    """Print the concept, the verb and the fields of a name; tell whether there is something."""
    from ipamc.cli.schema import by_kind
    from ipamc.report.concepts import concepts
    from ipamc.report.explain import field_text, fields_of, matching
    from ipamc.workspace.disk import assets

    shown = [str(concept) for concept in concepts(assets("words")) if concept.is_named(word)]
    every = fields_of(by_kind())
    found = matching(word, every)
    exact = [field for field in found if field.path.lower() == word.lower()]
    found = exact or found
    if len(found) == 1 and not shown:
        shown.append(field_text(found[0]))
    elif found:
        shown.append("Fields:\n" + "".join(f"  ipamc explain {field.path}\n" for field in found))
    elif children := [path for path in every if path.lower().rpartition(".")[0] == word.lower()]:
        shown.append("Fields:\n" + "".join(f"  ipamc explain {path}\n" for path in children))
    if verb := _verbs().get(word.lower().removeprefix("ipamc ")):
        shown.append(
            f"ipamc {word.lower().removeprefix('ipamc ')}: {verb}\n\n  ipamc {word.lower().removeprefix('ipamc ')} --help\n"
        )
    click.echo("\n".join(shown), nl=False)
    return bool(shown)


def _verbs() -> Mapping[str, str]:
    from ipamc.cli import VERBS
    from ipamc.cli.ci import STEPS

    return {**VERBS, **{f"ci {name}": line for name, (_, line) in STEPS.items()}}


def _unknown(word: str) -> str:
    """Return what is said of a word that nothing explains, with those that may be meant."""
    from ipamc.catalogue import catalogue
    from ipamc.cli.schema import by_kind
    from ipamc.model.wording import listing, near
    from ipamc.report.concepts import concepts
    from ipamc.report.explain import fields_of
    from ipamc.workspace.disk import assets

    if _NUMBER(word) or word.upper().startswith("IPC"):
        meant = near(f"IPC{word.upper().removeprefix('IPC').zfill(4)}", catalogue(assets("rules")), 3)
        return f"there is no code {word!r}: " + (
            f"did you mean {listing(meant)}?" if meant else "'ipamc explain' lists all codes"
        )
    paths = fields_of(by_kind())
    names = {path.rpartition(".")[2] for path in paths} | set(paths)
    names |= {each for concept in concepts(assets("words")) for each in (concept.name, *concept.also)} | set(
        _verbs()
    )
    meant = near(word, names, 3)
    return f"there is nothing about {word!r}: " + (
        f"did you mean {listing(meant)}?"
        if meant
        else "'ipamc explain' lists codes, 'ipamc explain concepts' words"
    )
