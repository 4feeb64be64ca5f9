"""Rules about a document as text: its syntax, its size, its fields and the types of its scalars."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ipamc.model.diagnostics import At, Diagnostic, Related, error, warning
from ipamc.model.wording import listing, shown
from ipamc.read.syntax.document import MAX_NODES


def yaml_syntax(at: At, problem: str, also: Iterable[Related] = (), way_out: str = "") -> Diagnostic:
    """IPC0001: an input document is YAML.

    The parser stops at the first syntax error of a file, so later documents were not read and may have
    findings of their own. The usual causes: a tab in the indentation, a text that contains ": " or " #" and
    needs quotes, a bracket that is not closed.

    Why: nodes and pools of a file that was not read would count as gone, and blocks of these nodes would go
    into quarantine.

    Run: correct the line, or the one above it, where a quote or bracket may have been left open; then
    `ipamc compile CLUSTER`.
    """
    return error("IPC0001", at, problem, also=also, help=way_out)


def json_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0002: a file that ends in .json is one JSON value.

    The usual causes: a dump that was cut off, two values in one file, a trailing comma, a comment. A file
    with several documents or with comments is YAML: name it .yaml.

    Why: of a dump that was cut off nobody knows what it lacks. Nodes that are missing would count as gone,
    and their blocks would go into quarantine.

    Run: make the dump again, with `kubectl get nodes,ciliumnodes -o json`, or correct the file; then `ipamc
    compile CLUSTER`.
    """
    return error("IPC0002", at, problem, help=way_out)


def duplicate_key(key: str, at: At, first: At) -> Diagnostic:
    """IPC0003: a mapping has each key only once.

    This holds for YAML and for JSON.

    Why: readers of YAML and JSON silently keep one of the two values, and different readers keep different
    ones. A reviewer sees one block size, and the compiler would work with the other.

    Run: remove the wrong one; the finding shows both lines. Then `ipamc compile CLUSTER`.
    """
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
    """IPC0004: a document stays within limits of nesting and size.

    The limits are 200,000 Nodes of a cluster, and as many CiliumNodes, documents of a file, and mappings in
    one list; 100 levels of nesting; ten million mappings and lists in a document; for the aliases of a
    file a million values, where text counts as one for each 64 characters; a million unquoted scalars of a
    document that readers take differently; and 1,000 times %TAG in a file.

    Why: with YAML aliases a short file can stand for millions of values, and deep nesting can stop a
    reader. A pull request of a stranger could take all memory of a CI job.

    Run: write the values out, or split the document into files; then `ipamc compile CLUSTER`.
    """
    return error("IPC0004", at, problem, help=way_out)


def too_many(at: At, what: str) -> Diagnostic:
    """Return the finding, by the rule of `too_much`, about more than MAX_NODES of something."""
    return too_much(
        at, f"more than {MAX_NODES:,} {what}", "divide the cluster, or leave out what is no node of it"
    )


def not_text(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0005: an input file is UTF-8 text without control characters.

    A byte order mark is accepted; tabs and newlines are, too.

    Why: another encoding cannot be recognised reliably, so a name would be read as other letters. A NUL or
    an escape character in a manifest is an accident or an attack: a terminal that shows the file obeys it.

    Run: save the file as UTF-8: `iconv -f latin1 -t utf-8 OLD > NEW`. Then `ipamc compile CLUSTER`.
    """
    return error("IPC0005", at, problem, help=way_out)


def unknown_field(at: At, name: str, owner: str, known: Iterable[str], better: str = "") -> Diagnostic:
    """IPC0006: a document of one of ipamc's own kinds has only known fields.

    Kinds of Kubernetes, Cilium and Calico may have other fields, which ipamc passes over.

    Why: a misspelt field would be ignored, and its default used: with `reserve` in place of `reserved`,
    addresses that belong to a router would be given to pods.

    Run: `ipamc schema` lists the kinds, and `ipamc schema IPPool` prints the fields of one; editors
    complete and check them. Then `ipamc compile CLUSTER`.
    """
    known = list(known)
    others = f"use one of {listing(known)}" if known else "remove it: no field is allowed here"
    return error("IPC0006", at, f"unknown field {shown(name)} in {owner}", help=better or others)


def wrong_shape(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0007: every value has the type of its field, and required fields are present.

    A number without quotes is no text: `version: 1.20` is the number 1.2, `version: "1.20"` is a version.
    ipamc's own kinds allow no null: leave the field out instead.

    Why: a guess at what was meant would be written into manifests. For Cilium 1.2 in place of 1.20 all
    flags would be others.

    Run: `ipamc schema KIND` prints the types of all fields of a kind, and which are required. Then `ipamc
    compile CLUSTER`.
    """
    return error("IPC0007", at, problem, help=way_out)


def ambiguous_scalar(at: At, text: str, readings: str, quoted: str) -> Diagnostic:
    """IPC0008: a text without quotes means the same to YAML 1.1 and YAML 1.2 readers.

    ipamc reads it as text.

    Why: kubectl, editors and other tools may read `on`, `08` or `1e3` as a truth value or a number. Then a
    label has another value in the cluster than here, and a selector finds other nodes.

    Run: put the text in quotes, as the finding writes it; then `ipamc compile CLUSTER`.
    """
    return warning("IPC0008", at, f"{text} is {readings}; ipamc reads it as text", help=f"write {quoted}")


def unknown_kind(at: At, api_version: str, kind: str, way_out: str) -> Diagnostic:
    """IPC0009: every document of a cluster's folder is of a kind that ipamc reads.

    Only documents of kustomize, Argo CD and Flux are passed over.

    Why: an unknown kind is usually a typo, or a manifest in the wrong folder. If it were ignored, a pool
    would be missing, and its nodes would have no block; or nodes would count as gone.

    Run: correct `kind` and `apiVersion`, or move the file out of the cluster's folder; `ipamc schema` lists
    the kinds. Then `ipamc compile CLUSTER`.
    """
    return error("IPC0009", at, f"unknown kind {shown(kind)} of {shown(api_version)}", help=way_out)


def empty_file(at: At) -> Diagnostic:
    """IPC0010: an input file is not empty.

    A file with comments alone is accepted: somebody wrote them.

    Why: an interrupted `kubectl get ... > file` leaves an empty file. Read as "no nodes" it would look as
    if all nodes had left.

    Run: write the file again, or remove it with `git rm`; then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0010",
        at,
        "the file is empty",
        help=f"remove it, or write it again (git checkout HEAD -- {shlex.quote(at.path)} brings the last one back): an interrupted command leaves an empty file",
    )


def not_plain_yaml(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0011: a document has no merge keys, and only the core tags.

    Core tags that agree with the value (!!str, !!int, !!map), anchors and aliases are accepted.

    Why: YAML 1.2 has no merge keys (`<<`): a reader of 1.2 sees a field of this name, and not the fields
    that it stands for. Tags such as !!python/object ask a reader to run code.

    Run: write the fields out; a whole value can be shared with an anchor (`&name`) and an alias (`*name`).
    Then `ipamc compile CLUSTER`.
    """
    return error("IPC0011", at, problem, help=way_out)
