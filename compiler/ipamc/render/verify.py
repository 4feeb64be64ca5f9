"""Checks rendered text by a schema for each template: a template's error becomes a finding, not a manifest.

The text is parsed again, because a cluster gets text. Documents of one shape, which differ only in the values
of their scalars, come from the same lines of a template, so one of them is checked: a compile has a handful
of shapes, for any number of nodes. The schemas `schemas/<target>.emitted.json` are strict and describe only
what ipamc writes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from ipamc.model.diagnostics import At, Diagnostic, Place, count, error
from ipamc.model.limits import ERROR_SHOWN
from ipamc.model.wording import shown
from ipamc.read.locate import locate
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
        r"[a-z0-9][-a-z0-9.]* [-a-z0-9.:/,=]++(?: [-a-z0-9.:/,=]++)*+",
        r"(?!(?i:true|false|null|yes|no|on|off|y|n)(?:\n|\Z))[A-Za-z][A-Za-z0-9_./-]*+",
    )
)
"""Kinds of scalars as `emit` writes them: quoted, a CIDR, an address, a node with its blocks, a
name. Every other scalar (number,
truth value) is its own kind."""
_NAME = _KINDS[-1]


def verify(
    files: Iterable[File], texts: Mapping[str, str], schemas: Mapping[str, str], folder: str
) -> Iterator[Diagnostic]:
    """Yield errors in one document of each shape, located below `folder`.
    Raises KeyError for a template without a schema, which is a bug of ipamc. Costs one fast pass over all
    text, and for each shape less than a millisecond, or 4 microseconds for each line.
    """
    known: dict[str, list[str]] = defaultdict(list)
    for file in files:
        schema = schemas[f"{file.template.removesuffix('.yaml.j2')}.emitted.json"]
        path = f"{folder}/{file.path}"
        for sample in samples(texts[file.path], known[file.template]):
            # A set, because a schema may refuse a value twice.
            found = {malformed(at, problem) for at, problem in problems(path, sample, schema)}
            yield from locate(found, {path: sample.encode()})


def malformed(at: At, problem: str) -> Diagnostic:
    """IPC0601: rendered files match their schemas, or nothing is written."""
    cut = problem if len(problem) <= ERROR_SHOWN else f"{problem[:ERROR_SHOWN]}…"
    way_out = "report this bug of ipamc with the lines above; your input is not wrong, nothing was written"
    return error("IPC0601", at, cut, help=way_out)


def problems(path: str, text: str, schema: str) -> Iterator[tuple[At, str]]:
    """Yield (place, problem) of a text that should be one unambiguous document, valid for its schema."""
    try:
        documents = list(yaml_documents(path, text))
    except Unreadable as unreadable:
        yield from ((finding.at, finding.message) for finding in unreadable.diagnostics)
        return
    if len(documents) != 1:
        yield Place(path), f"{count(len(documents), 'document')} instead of one"
    for document in documents:
        for odd in document.odd:
            at = Place(path, document.at.document, odd.keys, key=odd.key)
            yield at, f"some YAML readers do not read {odd.text} as text"
        for refusal in _validator(schema).iter_errors(document.value):
            for keys, key, problem in _problems(refusal):
                where = ".".join(map(str, keys)) or "the document"
                yield Place(path, document.at.document, keys, key=key), f"{where}: {problem}"


def _problems(refusal: ValidationError) -> Iterator[tuple[Keys, bool, str]]:
    """Yield a refusal as (keys, whether the last key is wrong, problem); it names a pattern's property."""
    keys, rule = tuple(refusal.instance_path), ["", *refusal.schema_path]
    if unexpected := getattr(refusal.kind, "unexpected", ()):
        yield from (((*keys, name), True, "no such field") for name in unexpected)
    elif rule[-1] == "pattern":
        yield keys, False, f"{shown(str(refusal.instance))} is not a valid {rule[-2]}"
    else:
        yield keys, False, refusal.message


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - 9 ms that only rendering costs

    return Draft202012Validator(schema)


_compiled = lru_cache(maxsize=4096)(re.compile)
"""The compiled pattern of a shape. The cache of `re` itself is too small."""


def samples(text: str, known: list[str]) -> Iterator[str]:
    """Yield a document of each shape that is not yet `known`, after as many blank lines as lines before it.
    Adds the shapes to `known`. Of consecutive lines that differ only in their values, the sample has the
    first two and blanks the others.
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
        by_shape = groupby(text[start:position].splitlines(keepends=True), _shape)
        runs = [(shape, list(lines)) for shape, lines in by_shape]
        # Consecutive documents of one shape: each kind of line once, or several times.
        document = "".join(shape if len(lines) == 1 else f"(?:{shape}){{2,}}+" for shape, lines in runs)
        known.append(rf"(?:(?:---\n)?{document}(?=---\n|\Z))++")
        sample = ("".join(lines[:2]) + "\n" * len(lines[2:]) for _, lines in runs)
        yield "\n" * text.count("\n", 0, start) + "".join(sample)


def _shape(line: str) -> str:
    """Return the pattern of lines that differ only in values; without indentation, of this line alone."""
    match = _LINE(line.removesuffix("\n"))
    if match is None or not match[1]:
        return re.escape(line)
    indent, key, colon, value = match.groups(default="")
    return f"{indent}{re.escape(key) if _NAME.fullmatch(key) else _kind(key)}{colon}{_kind(value)}\n"


def _kind(scalar: str) -> str:
    return next((kind.pattern for kind in _KINDS if kind.fullmatch(scalar)), re.escape(scalar))
