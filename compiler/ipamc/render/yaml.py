"""Files to text: one render a file, every scalar quoted.

The environment's `finalize` hook quotes whatever a template writes, so no template can forget to. The style is the one `kustomize build` prints: keys in
order, two spaces, list items not indented further, `---` between documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from ipamc.render.targets.context import File

# Text that no YAML 1.1 or 1.2 reader takes for anything but text, unless it is one of the words below.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]{1,2})?").fullmatch
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile(r"[^ !#-\[\]-~]").sub
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def emit(files: Iterable[File], templates: Mapping[str, str]) -> dict[str, str]:
    """Render files; gives text by path below `rendered/`, in the order of `files`.

    Templates put `---` before each document; the first one of a file is taken off. Raises KeyError for a missing template, ValueError for a path that
    comes twice, and Jinja2's own errors, UndefinedError among them: all bugs of ours.
    """
    renders: dict[str, Callable[..., str]] = {}
    texts: dict[str, str] = {}
    for path, template, values, _ in files:
        if path in texts:
            raise ValueError(f"two files are called {path}")
        if template not in renders:
            renders[template] = compiled(templates[template])
        texts[path] = renders[template](values).removeprefix("---\n")
    return texts


@lru_cache(maxsize=64)
def compiled(template: str) -> Callable[..., str]:
    """Compile a template's text; it is given its values as one mapping."""
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
    """Write a value as a YAML scalar that means the same to YAML 1.1 and 1.2 readers. Text stays text; whole numbers and truth values are plain.

    Raises TypeError for anything else.
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise TypeError(f"{value} is not a scalar")  # writing an undefined value out raises UndefinedError


@lru_cache(maxsize=1 << 16)
def quoted(text: str) -> str:
    """Write text as a plain scalar where that is safe beyond doubt, else in double quotes, in ASCII."""
    if _PLAIN(text) and text.lower() not in _WORDS:
        return text
    return f'"{_ESCAPED(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or (
        f"\\u{ord(character):04X}" if character <= "\uffff" else f"\\U{ord(character):08X}"
    )
