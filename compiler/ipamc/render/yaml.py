"""Renders files as YAML texts: one rendering for each file, every scalar quoted.

The environment's `finalize` hook quotes everything that a template writes, so no template can forget to. The
style is that of `kustomize build`: sorted keys, two spaces, no further indentation of list items, `---`
between documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from ipamc.model.progress import track
from ipamc.render.targets.context import File, Lines

# Text that every YAML 1.1 and 1.2 reader reads as text, unless it is one of the words below.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]{1,2})?").fullmatch
_ROWS = re.compile(r"(?: {6}[-a-z0-9.:/,=]+(?: [-a-z0-9.:/,=]+)*\n)*").fullmatch
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LONGEST_WORD = max(map(len, _WORDS))
_ESCAPED = re.compile(r"[^ !#-\[\]-~]").sub
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def emit(files: Collection[File], templates: Mapping[str, str]) -> dict[str, str]:
    """Render files; return text by path below `rendered/`, in the order of `files`.
    Templates write `---` before each document; the first one of a file is removed. Raises KeyError for a
    missing template, ValueError for two files with one path, and Jinja2's own errors, such as UndefinedError:
    all are bugs of ipamc.
    """
    renders: dict[str, Callable[..., str]] = {}
    texts: dict[str, str] = {}
    for file in track(files, "rendering", "files"):
        if file.path in texts:
            raise ValueError(f"two files are called {file.path}")
        if file.template not in renders:
            renders[file.template] = compiled(templates[file.template])
        texts[file.path] = renders[file.template](file.values).removeprefix("---\n")
    return texts


@lru_cache(maxsize=64)
def compiled(template: str) -> Callable[..., str]:
    """Return the function that renders a template's text from one mapping of values."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - 60 ms that only rendering costs

    environment = Environment(  # noqa: S701 - YAML, not HTML: `finalize` quotes
        undefined=StrictUndefined,
        finalize=scalar,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    render: Callable[..., str] = environment.from_string(template).render
    return render


def scalar(value: Any) -> str:
    """Return a YAML scalar that means the same to YAML 1.1 and 1.2 readers.
    Text stays text; integers and booleans are plain; a tuple is a flow sequence; `Lines` are a block,
    indented by 6 spaces. Raises TypeError for other values. It is called for every value that is written,
    and caches none: nearly all names and CIDRs are written once.
    """
    if type(value) is str:
        long = len(value) > _LONGEST_WORD
        return value if _PLAIN(value) and (long or value.lower() not in _WORDS) else quoted(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(scalar, value))}]"
    if isinstance(value, Lines):
        text = "".join(f"      {row}\n" for row in value.rows)
        if not _ROWS(text):
            raise ValueError("a line has more than names, CIDRs and single spaces")
        return f"|-\n      '''\n{text}      '''"
    # An undefined value raises UndefinedError when it is formatted here.
    raise TypeError(f"{value} is not a scalar")


def quoted(text: str) -> str:
    """Return text as a plain scalar if every reader reads it as text, else in double quotes and in ASCII."""
    return text if _PLAIN(text) and text.lower() not in _WORDS else f'"{_ESCAPED(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or (
        f"\\u{ord(character):04X}" if character <= "\uffff" else f"\\U{ord(character):08X}"
    )
