"""What can be wrong with a document as text: its syntax, its size, its fields and the type of its scalars."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.diagnostics import At, Diagnostic, Related, error, warning
from ipamc.model.wording import listing, shown, suggestion


def yaml_syntax(at: At, problem: str, also: Iterable[Related] = (), way_out: str = "") -> Diagnostic:
    """IPC0001: an input document is YAML.

    The parser stops at the first syntax error of a file, so the documents behind it were not read, and other findings may follow once it
    is mended. The usual causes: a tab in the indentation, a text with ": " or " #" in it that needs quotes, a bracket that is not closed.
    """
    return error("IPC0001", at, problem, also=also, help=way_out)


def json_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0002: a file that ends in .json is one JSON value.

    A dump that was cut off, two values in one file, a trailing comma and a comment are the usual causes. A file with several
    documents, or with comments, is YAML: give it the ending .yaml.
    """
    return error("IPC0002", at, problem, help=way_out)


def duplicate_key(key: str, at: At, first: At) -> Diagnostic:
    """IPC0003: a key stands once in a mapping.

    YAML and JSON readers silently keep one of the two values, and not all of them the same one. Remove the one that you do not mean.
    """
    return error(
        "IPC0003",
        at,
        f"key {shown(key)} stands twice in one mapping",
        also=[Related(first, "first here")],
        help="remove one of the two",
    )


def too_much(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0004: a document is of a sane size.

    YAML aliases can make a short file mean millions of values, and nesting can be made deep enough to stop a reader. Documents may nest
    100 levels, and aliases may stand for a million values. Write the values out, or split the document.
    """
    return error("IPC0004", at, problem, help=way_out)


def not_text(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0005: an input file is UTF-8 text without control characters.

    Other encodings cannot be told apart reliably, and a NUL or an escape character in a manifest is an accident or an attack. Save the
    file as UTF-8; a byte order mark is fine.
    """
    return error("IPC0005", at, problem, help=way_out)


def unknown_field(at: At, name: str, owner: str, known: Iterable[str]) -> Diagnostic:
    """IPC0006: ipamc's own kinds have only the fields that it knows.

    A misspelt field would otherwise be ignored and its default used. Kinds of Kubernetes, Cilium and Calico may have any other field.
    `ipamc schema` prints the fields that there are, for editors too.
    """
    known = list(known)
    way_out = suggestion(name, known) or (
        f"the fields here are {listing(known)}" if known else "nothing may stand here"
    )
    return error("IPC0006", at, f"unknown field {shown(name)} in {owner}", help=way_out)


def wrong_shape(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0007: every value has the type that its field wants, and required fields are there.

    A field that wants text is given a number when the number has no quotes: `version: 1.20` is the number 1.2, `version: "1.20"` is a
    version. null is no value in ipamc's own kinds: leave the field out instead.
    """
    return error("IPC0007", at, problem, help=way_out)


def ambiguous_scalar(at: At, text: str, readings: str, quoted: str) -> Diagnostic:
    """IPC0008: a text without quotes means the same to YAML 1.1 and YAML 1.2 readers.

    ipamc takes the text as it stands. kubectl, editors and other tools may read `on`, `08` or `1e3` as a truth value or a number, so put it
    in quotes.
    """
    return warning("IPC0008", at, f"{text} is {readings}; it is read as text", help=f"write {quoted}")


def unknown_kind(at: At, api_version: str, kind: str, way_out: str) -> Diagnostic:
    """IPC0009: every document of a cluster's folder is of a kind that ipamc reads.

    An unknown kind is usually a typo or a manifest in the wrong folder, and leaving it out silently could lose a pool or nodes. Only
    documents of kustomize, Argo CD and Flux are passed over. Move the others out of the folder.
    """
    return error("IPC0009", at, f"unknown kind {shown(kind)} of {shown(api_version)}", help=way_out)


def empty_file(at: At) -> Diagnostic:
    """IPC0010: an input file is not empty.

    An empty file is what an interrupted `kubectl get ... > file` leaves behind; read as "no nodes" it would look as if all of them had
    left. Remove the file, or leave a comment in it.
    """
    return error(
        "IPC0010",
        at,
        "empty file",
        help="remove it, or write it again: an interrupted command leaves an empty file behind",
    )


def not_plain_yaml(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0011: documents use no merge keys and no tags of their own.

    Merge keys (`<<`) are gone from YAML 1.2, and tags such as !!python/object ask a reader to run code. Core tags that say what a
    value is anyway (!!str, !!int, !!map) are fine, and so are anchors and aliases.
    """
    return error("IPC0011", at, problem, help=way_out)
