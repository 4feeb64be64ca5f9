"""`ipamc explain`: codes, concepts, fields, verbs, and the table of Cilium versions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

import click

from ipamc.cli.command import DONE, Verb

_NUMBER = re.compile(r"(?:IPC)?\d{1,4}", re.IGNORECASE).fullmatch


@click.command(cls=Verb)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def command(*, words: tuple[str, ...]) -> int:
    """Explain a code, a concept, a field or a verb.

    Of a code, shows why it matters and what to do. Without WORD, lists all codes.

    Examples:
        ipamc explain IPC0207  # why this is refused, and what to do
        ipamc explain quarantine  # what a word means here; 'ipamc explain concepts' lists them
        ipamc explain IPPool.spec.nodeSelector  # a field of a document
        ipamc explain  # every code and its rule
        ipamc explain versions  # what each Cilium minor does, and how that is known
    """
    from ipamc.catalogue import catalogue, example_of
    from ipamc.workspace.disk import assets

    word = " ".join(words)
    if word == "versions":
        from ipamc.report.explain import versions_text

        click.echo(versions_text(), nl=False)
    elif not word:
        for entry in catalogue(assets("rules")).values():
            click.echo(f"{entry.code}  {entry.title}")
    elif word == "concepts":
        from ipamc.report.explain import concepts

        for concept in concepts(assets("rules/words")):
            first = " ".join(concept.text.split()).split(". ")[0].rstrip(".")
            name = f"{concept.name:<15} "
            click.echo(f"{name}{textwrap.shorten(first, 136 - len(name), placeholder=' …')}")
    elif _NUMBER(word) and (known := catalogue(assets("rules")).get(_code(word))):
        from ipamc.report.explain import rule_text

        click.echo(rule_text(known, example_of(known.code, assets("rules"))), nl=False)
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
    from ipamc.workspace.disk import assets, schemas

    texts = [str(concept) for concept in concepts(assets("rules/words")) if concept.is_named(word)]
    every = fields_of(schemas())
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
    from ipamc.workspace.disk import assets, schemas

    if _NUMBER(word) or word.upper().startswith("IPC"):
        meant = near(_code(word), catalogue(assets("rules")), 3)
        what, lists = f"no code {word!r}", "'ipamc explain' lists all codes"
    else:
        paths = fields_of(schemas())
        names = {path.rpartition(".")[2] for path in paths} | set(paths)
        names |= {
            each for concept in concepts(assets("rules/words")) for each in (concept.name, *concept.also)
        } | set(_verbs())
        meant = near(word, names, 3)
        what = f"nothing about {word!r}"
        lists = "'ipamc explain' lists codes, 'ipamc explain concepts' words"
    return f"there is {what}: {f'did you mean {listing(meant)}?' if meant else lists}"
