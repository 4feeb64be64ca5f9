"""Rules about a document as text: its syntax, its size, its fields and the types of its scalars."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.diagnostics import At, Diagnostic, Related, error, warning
from ipamc.model.wording import listing, shown, suggestion


def yaml_syntax(at: At, problem: str, also: Iterable[Related] = (), way_out: str = "") -> Diagnostic:
    """IPC0001: an input document is YAML.

    The parser stops at the first syntax error of a file, so later documents were not read and may have
    findings of their own. The usual causes: a tab in the indentation, a text that contains ": " or " #" and
    needs quotes, a bracket that is not closed.
    """
    return error("IPC0001", at, problem, also=also, help=way_out)


def json_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0002: a file that ends in .json is one JSON value.

    The usual causes: a dump that was cut off, two values in one file, a trailing comma, a comment. A file
    with several documents or with comments is YAML: name it .yaml.
    """
    return error("IPC0002", at, problem, help=way_out)


def duplicate_key(key: str, at: At, first: At) -> Diagnostic:
    """IPC0003: a mapping has each key only once.

    YAML and JSON readers silently keep one of the two values, and different readers keep different ones.
    Remove the wrong one.
    """
    return error(
        "IPC0003",
        at,
        f"the mapping has the key {shown(key)} twice",
        also=[Related(first, "first here")],
        help="remove one of the two",
    )


def too_much(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0004: a document stays within limits of nesting and size.

    A short file can stand for millions of values with YAML aliases, and deep nesting can stop a reader. The
    limits are 100 levels of nesting; ten million mappings and lists in a document; for the aliases of a file a
    million values, where text counts as one for each 64 characters; a million unquoted scalars of a document
    that readers take differently; and 1,000 times %TAG in a file. Write the values out, or split the document.
    """
    return error("IPC0004", at, problem, help=way_out)


def not_text(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0005: an input file is UTF-8 text without control characters.

    Other encodings cannot be recognised reliably, and a NUL or escape character in a manifest is an accident
    or an attack. Save the file as UTF-8; a byte order mark is accepted.
    """
    return error("IPC0005", at, problem, help=way_out)


def unknown_field(at: At, name: str, owner: str, known: Iterable[str]) -> Diagnostic:
    """IPC0006: a document of one of ipamc's own kinds has only known fields.

    A misspelt field would otherwise be ignored, and its default used. Kinds of Kubernetes, Cilium and Calico
    may have other fields. `ipamc schema` prints all fields, for people and for editors.
    """
    known = list(known)
    way_out = suggestion(name, known) or (
        f"use one of {listing(known)}" if known else "remove it: no field is allowed here"
    )
    return error("IPC0006", at, f"unknown field {shown(name)} in {owner}", help=way_out)


def wrong_shape(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0007: every value has the type of its field, and required fields are present.

    A number without quotes is no text: `version: 1.20` is the number 1.2, `version: "1.20"` is a version.
    ipamc's own kinds allow no null: leave the field out instead.
    """
    return error("IPC0007", at, problem, help=way_out)


def ambiguous_scalar(at: At, text: str, readings: str, quoted: str) -> Diagnostic:
    """IPC0008: a text without quotes means the same to YAML 1.1 and YAML 1.2 readers.

    ipamc reads it as text. kubectl, editors and other tools may read `on`, `08` or `1e3` as a truth value or
    a number. Put it in quotes.
    """
    return warning("IPC0008", at, f"{text} is {readings}; ipamc reads it as text", help=f"write {quoted}")


def unknown_kind(at: At, api_version: str, kind: str, way_out: str) -> Diagnostic:
    """IPC0009: every document of a cluster's folder is of a kind that ipamc reads.

    An unknown kind is usually a typo or a manifest in the wrong folder; ignoring it could lose a pool or
    nodes. Only documents of kustomize, Argo CD and Flux are skipped. Move other documents out of the folder.
    """
    return error("IPC0009", at, f"unknown kind {shown(kind)} of {shown(api_version)}", help=way_out)


def empty_file(at: At) -> Diagnostic:
    """IPC0010: an input file is not empty.

    An interrupted `kubectl get ... > file` leaves an empty file; read as "no nodes" it would look as if all
    nodes had left. Remove the file, or write it again.
    """
    return error(
        "IPC0010",
        at,
        "the file is empty",
        help="remove it, or write it again: an interrupted command leaves an empty file",
    )


def not_plain_yaml(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0011: a document has no merge keys, and only the core tags.

    YAML 1.2 has no merge keys (`<<`), and tags such as !!python/object ask a reader to run code. Core tags
    that agree with the value (!!str, !!int, !!map), anchors and aliases are accepted.
    """
    return error("IPC0011", at, problem, help=way_out)
