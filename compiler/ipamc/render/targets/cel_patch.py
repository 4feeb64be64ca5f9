"""Lists, maps and JSON patches in CEL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def listed(*items: str) -> str:
    """Return a list of expressions."""
    return f"[{', '.join(items)}]"


def mapped(entries: Mapping[str, str]) -> str:
    """Return a map of expressions."""
    return f"{{{', '.join(f'{key!r}: {value}' for key, value in entries.items())}}}"


def add(pointer: str, value: str) -> str:
    """Return the patch that writes a value."""
    return f"JSONPatch{{op: 'add', path: '{pointer}', value: {value}}}"


def put(keys: Sequence[str], value: str, above: str = "object.spec", pointer: str = "/spec") -> str:
    """Return the patches that put a value below `spec`, and create missing parents."""
    here, path, rest = f"{above}.{keys[0]}", f"{pointer}/{keys[0]}", keys[1:]
    nested = value
    for key in reversed(rest):
        nested = mapped({key: nested})
    whole = listed(add(path, nested))
    return f"(has({here}) ? {put(rest, value, here, path)} : {whole})" if rest else whole
