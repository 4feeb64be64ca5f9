"""Rules about a dump as text, and about its objects."""

from __future__ import annotations

from ipamc.model.diagnostics import At, Diagnostic, Related, Span, error, warning
from ipamc.model.wording import shown

DUMP = "kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,ciliumendpoints,pods,cm,deployments,daemonsets -A -o json"
"""The command that makes a dump; `ipamc ci rbac` has the role for it."""


AGAIN = f"{DUMP} > dump.json"
"""The same, as it is typed to write a dump again."""


def unreadable_dump(at: Span, problem: str, way_out: str = f"write it again: {AGAIN}") -> Diagnostic:
    """IPC0801: a dump is JSON or YAML as kubectl prints it, and whole."""
    return error("IPC0801", at, problem, help=way_out)


def too_many(at: Span, most: int, what: str) -> Diagnostic:
    """Return the finding, by the rule of `unreadable_dump`, about more of something than is read."""
    return unreadable_dump(at, f"more than {most:,} {what}", "make a dump of one cluster, and of fewer kinds")


def continued(at: Span) -> Diagnostic:
    """IPC0802: a dump has all objects of a list."""
    return error(
        "IPC0802",
        at,
        "the list has metadata.continue: it is one page of several",
        help=f"run {DUMP}, which reads all pages",
    )


def two_states(what: str, at: At, first: At) -> Diagnostic:
    """IPC0803: no object is in a dump twice, in two states."""
    return error(
        "IPC0803",
        at,
        f"{what} is in the dump twice, in two states",
        also=[Related(first, "first here")],
        help="use files of one time",
    )


def wrong_object(at: Span, what: str, problem: str) -> Diagnostic:
    """IPC0804: the objects of a dump have the fields of their kinds."""
    return error("IPC0804", at, f"{what}: {problem}", help=f"use what {DUMP} prints, unchanged")


def unreadable_address(at: Span, what: str, texts: list[str]) -> Diagnostic:
    """IPC0805: CIDRs and addresses of objects can be read."""
    shown_texts = ", ".join(shown(text) for text in texts[:3])
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return warning("IPC0805", at, f"{what} has {shown_texts}{more}, which is no CIDR or address")


def no_nodes(at: Span, kinds: list[str]) -> Diagnostic:
    """IPC0806: a dump has the Nodes of the cluster."""
    found = f"only {', '.join(kinds)}" if kinds else "no objects"
    return error(
        "IPC0806", at, f"the dump has no Nodes: {found}", help=f"run {DUMP}, with a role that may list Nodes"
    )
