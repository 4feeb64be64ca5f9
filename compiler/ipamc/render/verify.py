"""What was rendered, held against a schema for each template: what goes wrong there is a finding, and never reaches a cluster.

The text is read again, because text is what reaches a cluster. Documents of one shape, which differ in their scalars alone and not in the kinds of these,
come from the same lines of a template, so one of them is looked at: a run has a handful of shapes, whatever the number of nodes. The schemas are in
`schemas/<target>.emitted.json`: strict, and only of what ipamc writes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from ipamc.model.diagnostics import At, Diagnostic, Place, count, error
from ipamc.model.wording import shown
from ipamc.read import locate
from ipamc.read.syntax.document import Keys, Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.render.targets.context import File

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

_LINE = re.compile(r'( *(?:- )*)(?:("[^"]*"|[^"\s]+)(:(?: |$)))?(.*)', re.DOTALL).fullmatch
_NUMBERS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_KINDS = tuple(
    re.compile(kind)
    for kind in (
        r'"(?:[^"\\\n]|\\.)*+"',
        rf"{_NUMBERS}/[0-9]{{1,2}}",
        _NUMBERS,
        r"(?!(?i:true|false|null|yes|no|on|off|y|n)(?:\n|\Z))[A-Za-z][A-Za-z0-9_./-]*+",
    )
)
"""Kinds of scalars, as `emit` writes them: quoted, a CIDR, an address, a name. Every other scalar (a number, a truth value) is a kind of its own."""
_NAME = _KINDS[-1]
_LONGEST = 300
"""Characters of a message: a validator may quote a whole document."""


def verify(
    files: Iterable[File], texts: Mapping[str, str], schemas: Mapping[str, str], folder: str
) -> Iterator[Diagnostic]:
    """Yield what is wrong with one document of each shape, located below `folder`. Raises KeyError for a template without a schema: a bug of ours.

    Costs one fast pass over all text, and for each shape less than a millisecond, or 4 microseconds a line.
    """
    known: dict[str, list[str]] = defaultdict(list)
    for name, template, _, _ in files:
        schema, path = schemas[f"{template.removesuffix('.yaml.j2')}.emitted.json"], f"{folder}/{name}"
        for sample in samples(texts[name], known[template]):
            found = {
                malformed(at, problem) for at, problem in problems(path, sample, schema)
            }  # a schema may say a thing twice
            yield from locate(found, {path: sample.encode()})


def malformed(at: At, problem: str) -> Diagnostic:
    """IPC0601: what is rendered keeps its schema, or nothing is written.

    Every kind of object that ipamc writes has a strict schema of its own. A text that does not keep it comes from a template or from what is behind
    it, whatever the input was: this is a bug of ipamc. The line that is shown is of the text as it would have been written. Please report it with the
    finding and, if you can, the input.
    """
    cut = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…"
    way_out = "this is a bug of ipamc, not of your input, and nothing was written: please report it with the lines above"
    return error("IPC0601", at, cut, help=way_out)


def problems(path: str, text: str, schema: str) -> Iterator[tuple[At, str]]:
    """Yield (place, problem) of the one document that a text has to hold: what no two YAML readers take alike, and what its schema does not allow."""
    try:
        documents = list(yaml_documents(path, text))
    except Unreadable as unreadable:
        yield from ((each.at, each.message) for each in unreadable.diagnostics)
        return
    if len(documents) != 1:
        yield Place(path), f"{count(len(documents), 'document')} where there is to be one"
    for document in documents:
        for odd in document.odd:
            yield (
                Place(path, document.at.document, odd.keys, key=odd.key),
                f"{odd.text} is not text to every YAML reader",
            )
        for refusal in _validator(schema).iter_errors(document.value):
            for keys, key, problem in _said(refusal):
                where = ".".join(map(str, keys)) or "the document"
                yield Place(path, document.at.document, keys, key=key), f"{where}: {problem}"


def _said(refusal: ValidationError) -> Iterator[tuple[Keys, bool, str]]:
    """Give what the validator says as (keys, whether the last of them is meant, problem); for a pattern the name of what has it: that reads easier."""
    keys, rule = tuple(refusal.instance_path), ["", *refusal.schema_path]
    if unexpected := getattr(refusal.kind, "unexpected", ()):
        yield from (((*keys, each), True, "no such field") for each in unexpected)
    elif rule[-1] == "pattern":
        yield keys, False, f"{shown(str(refusal.instance))} is no {rule[-2]}"
    else:
        yield keys, False, refusal.message


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - 9 ms that only rendering costs

    return Draft202012Validator(schema)


def samples(text: str, known: list[str]) -> Iterator[str]:
    """Yield a document of each shape that is not `known` yet, below as many blank lines as there are lines before it; add the shapes to `known`.

    Of lines in a row that say the same of different values the first two are in the sample, and the others blank.
    """
    if not text:
        yield text
    position = 0
    while position < len(text):
        run = next(filter(None, (_compiled(shape).match(text, position) for shape in known)), None)
        if run:
            position = run.end()
            continue
        start = position + 4 * text.startswith("---\n", position)
        position = text.find("\n---\n", start) + 1 or len(text)
        runs = [
            (shape, list(lines))
            for shape, lines in groupby(text[start:position].splitlines(keepends=True), _shape)
        ]
        known.append(_run_of(runs))
        yield "\n" * text.count("\n", 0, start) + "".join(
            "".join(lines[:2]) + "\n" * len(lines[2:]) for _, lines in runs
        )


@lru_cache(maxsize=4096)
def _compiled(shape: str) -> re.Pattern[str]:
    """Compile the pattern of a shape, when there is text after its first document. `re` itself keeps too few of them."""
    return re.compile(shape)


def _run_of(runs: Iterable[tuple[str, list[str]]]) -> str:
    """Give the pattern of documents in a row that have one shape: these lines, and as many of each kind as one here, or several as here."""
    document = "".join(shape if len(lines) == 1 else f"(?:{shape}){{2,}}+" for shape, lines in runs)
    return rf"(?:(?:---\n)?{document}(?=---\n|\Z))++"


def _shape(line: str) -> str:
    """Give the pattern of the lines that differ from one in their values alone. What is not indented is the template's own, and stays."""
    match = _LINE(line.removesuffix("\n"))
    if match is None or not match[1]:
        return re.escape(line)
    indent, key, colon, value = match.groups(default="")
    return f"{indent}{re.escape(key) if _NAME.fullmatch(key) else _kind(key)}{colon}{_kind(value)}\n"


def _kind(scalar: str) -> str:
    return next((kind.pattern for kind in _KINDS if kind.fullmatch(scalar)), re.escape(scalar))
