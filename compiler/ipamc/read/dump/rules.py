"""Rules about a dump as text, and about its objects."""

from __future__ import annotations

from ipamc.model.diagnostics import Diagnostic, Related, Span, error, warning
from ipamc.model.wording import shown

DUMP = "kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,ciliumendpoints,pods,cm -A -o json"
"""The command that makes a dump; `ipamc ci rbac` has the role for it."""


AGAIN = f"{DUMP} > dump.json"
"""The same, as it is typed to write a dump again."""


def unreadable_dump(at: Span, problem: str, way_out: str = f"write it again: {AGAIN}") -> Diagnostic:
    """IPC0801: a dump is JSON or YAML as kubectl prints it, and whole.

    `kubectl get` without `-o json` or `-o yaml` prints a table, from which nothing can be read for certain. A
    dump that was cut off has no end: what is missing would look as if it had left the cluster.
    """
    return error("IPC0801", at, problem, help=way_out)


def continued(at: Span) -> Diagnostic:
    """IPC0802: a dump has all objects of a list.

    A list with `metadata.continue` is one page of several: nodes of the other pages would look as if they had
    left. kubectl reads all pages by itself; other clients have to.
    """
    return error(
        "IPC0802",
        at,
        "the list has metadata.continue: it is one page of several",
        help=f"run {DUMP}, which reads all pages",
    )


def two_states(what: str, at: Span, first: Span) -> Diagnostic:
    """IPC0803: no object is in a dump twice, in two states.

    Files that were made at different times show a cluster that never was. One object twice in the same state
    is fine.
    """
    return error(
        "IPC0803",
        at,
        f"{what} is in the dump twice, in two states",
        also=[Related(first, "first here")],
        help="use files of one time",
    )


def wrong_object(at: Span, what: str, problem: str) -> Diagnostic:
    """IPC0804: the objects of a dump have the fields of their kinds.

    kubectl never prints another type, so the file was changed, or it is no dump.
    """
    return error("IPC0804", at, f"{what}: {problem}", help=f"use what {DUMP} prints, unchanged")


def unreadable_address(at: Span, what: str, texts: list[str]) -> Diagnostic:
    """IPC0805: CIDRs and addresses of objects can be read.

    Somebody wrote another text there: no agent uses it. It counts as if it were not there.
    """
    shown_texts = ", ".join(shown(text) for text in texts[:3])
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return warning("IPC0805", at, f"{what} has {shown_texts}{more}, which is no CIDR or address")


def no_nodes(at: Span, kinds: list[str]) -> Diagnostic:
    """IPC0806: a dump has the Nodes of the cluster.

    Without them it does not say which nodes there are, and each would look as if it had left.
    """
    found = f"only {', '.join(kinds)}" if kinds else "no objects"
    return error(
        "IPC0806",
        at,
        f"the dump has no Nodes: {found}",
        help=f"run {DUMP}, with a role that may list Nodes",
    )
