"""Rules about a document as text: its syntax, its size, its fields and the types of its scalars."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ipamc.model.diagnostics import At, Diagnostic, Related, error, warning
from ipamc.model.wording import listing, shown
from ipamc.read.syntax.document import MAX_NODES


def yaml_syntax(at: At, problem: str, also: Iterable[Related] = (), way_out: str = "") -> Diagnostic:
    """IPC0001: an input document is YAML."""
    return error("IPC0001", at, problem, also=also, help=way_out)


def json_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0002: a file that ends in .json is one JSON value."""
    return error("IPC0002", at, problem, help=way_out)


def duplicate_key(key: str, at: At, first: At) -> Diagnostic:
    """IPC0003: a mapping has each key only once."""
    return error(
        "IPC0003",
        at,
        f"the mapping has the key {shown(key)} twice",
        also=[Related(first, "first here")],
        help="write --- on a line of its own above it, if a document begins here; else remove one of the two"
        if key in {"apiVersion", "kind"}
        else "remove one of the two",
    )


def too_much(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0004: a document stays within limits of nesting and size."""
    return error("IPC0004", at, problem, help=way_out)


def too_many(at: At, what: str) -> Diagnostic:
    """Return the finding, by the rule of `too_much`, about more than MAX_NODES of something."""
    return too_much(
        at, f"more than {MAX_NODES:,} {what}", "divide the cluster, or leave out what is no node of it"
    )


def not_text(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0005: an input file is UTF-8 text without control characters."""
    return error("IPC0005", at, problem, help=way_out)


def unknown_field(at: At, name: str, owner: str, known: Iterable[str], better: str = "") -> Diagnostic:
    """IPC0006: a document of one of ipamc's own kinds has only known fields."""
    known = list(known)
    others = f"use one of {listing(known)}" if known else "remove it: no field is allowed here"
    return error("IPC0006", at, f"unknown field {shown(name)} in {owner}", help=better or others)


def wrong_shape(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0007: every value has the type of its field, and required fields are present."""
    return error("IPC0007", at, problem, help=way_out)


def ambiguous_scalar(at: At, text: str, readings: str, quoted: str) -> Diagnostic:
    """IPC0008: a text without quotes means the same to YAML 1.1 and YAML 1.2 readers."""
    return warning("IPC0008", at, f"{text} is {readings}; ipamc reads it as text", help=f"write {quoted}")


def unknown_kind(at: At, api_version: str, kind: str, way_out: str) -> Diagnostic:
    """IPC0009: every document of a cluster's folder is of a kind that ipamc reads."""
    return error("IPC0009", at, f"unknown kind {shown(kind)} of {shown(api_version)}", help=way_out)


def empty_file(at: At) -> Diagnostic:
    """IPC0010: an input file is not empty."""
    return error(
        "IPC0010",
        at,
        "the file is empty",
        help=f"remove it, or write it again (git checkout HEAD -- {shlex.quote(at.path)} brings the last one back): an interrupted command leaves an empty file",
    )


def not_plain_yaml(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0011: a document has no merge keys, and only the core tags."""
    return error("IPC0011", at, problem, help=way_out)
