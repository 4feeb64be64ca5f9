"""Rules about a dump as text, and about its objects."""

from __future__ import annotations

from ipamc.model.diagnostics import At, Diagnostic, Related, Span, error, warning
from ipamc.model.wording import shown

DUMP = "kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,ciliumendpoints,pods,cm,deployments,daemonsets -A -o json"
"""The command that makes a dump; `ipamc ci rbac` has the role for it."""


AGAIN = f"{DUMP} > dump.json"
"""The same, as it is typed to write a dump again."""


def unreadable_dump(at: Span, problem: str, way_out: str = f"write it again: {AGAIN}") -> Diagnostic:
    """IPC0801: a dump is JSON or YAML as kubectl prints it, and whole.

    `kubectl get` without `-o json` or `-o yaml` prints a table, from which nothing can be read for certain.
    A dump that was cut off has no end. It has at most 200,000 Nodes, as many CiliumNodes, and 2,000,000
    objects, which are counted while they are read.

    Why: what is missing would look as if it had left the cluster: a refresh would take nodes out of the
    inventory, and their blocks would go into quarantine.

    Run: make the dump again with the `kubectl` command of the finding, and look whether it ends without an
    error of its own. A pipeline can use `ipamc ci dump CLUSTER --write dump.json`.
    """
    return error("IPC0801", at, problem, help=way_out)


def too_many(at: Span, most: int, what: str) -> Diagnostic:
    """Return the finding, by the rule of `unreadable_dump`, about more of something than is read."""
    return unreadable_dump(at, f"more than {most:,} {what}", "make a dump of one cluster, and of fewer kinds")


def continued(at: Span) -> Diagnostic:
    """IPC0802: a dump has all objects of a list.

    A list with `metadata.continue` is one page of several. kubectl reads all pages by itself; other clients
    have to.

    Why: nodes of the other pages would look as if they had left: a refresh would take them out of the
    inventory, and their blocks would go into quarantine.

    Run: make the dump again with the `kubectl` command of the finding. A program of your own asks for the
    next page with `continue`, until a list has none.
    """
    return error(
        "IPC0802",
        at,
        "the list has metadata.continue: it is one page of several",
        help=f"run {DUMP}, which reads all pages",
    )


def two_states(what: str, at: At, first: At) -> Diagnostic:
    """IPC0803: no object is in a dump twice, in two states.

    One object twice in the same state is fine.

    Why: files that were made at different times show a cluster that never was. A node that was moved
    between them would have two blocks, or somebody else's.

    Run: make the dump again, in one go, with the `kubectl` command of `ipamc import --help`; or give files
    of one time: `ipamc import CLUSTER --refresh dump.json`.
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

    Why: what cannot be read would count as not there: a node would lose its block in the lock, or an audit
    would find nothing wrong with it.

    Run: make the dump again with the `kubectl` command of the finding, and use it as it is, unchanged. A
    template of Helm or a manifest of yours is no dump.
    """
    return error("IPC0804", at, f"{what}: {problem}", help=f"use what {DUMP} prints, unchanged")


def unreadable_address(at: Span, what: str, texts: list[str]) -> Diagnostic:
    """IPC0805: CIDRs and addresses of objects can be read.

    Somebody wrote another text there. It counts as if it were not there.

    Why: no agent uses it. If it was meant as a block, its node has none, or pods have addresses of another
    one.

    Run: look at the object (`kubectl get node NODE -o yaml`) and correct it. The podCIDRs of a Node cannot
    be changed: delete the Node and let it join again. Then make a dump, and `ipamc audit CLUSTER
    dump.json`.
    """
    shown_texts = ", ".join(shown(text) for text in texts[:3])
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return warning("IPC0805", at, f"{what} has {shown_texts}{more}, which is no CIDR or address")


def no_nodes(at: Span, kinds: list[str]) -> Diagnostic:
    """IPC0806: a dump has the Nodes of the cluster.

    A dump with other kinds alone is not enough.

    Why: without Nodes it does not say which nodes there are: each would look as if it had left, and its
    block would be given to others after the quarantine.

    Run: make the dump again with the `kubectl` command of the finding. If kubectl says that it may not list
    nodes, take a role that may: where clusters are in git, `ipamc ci rbac` prints one.
    """
    found = f"only {', '.join(kinds)}" if kinds else "no objects"
    return error(
        "IPC0806",
        at,
        f"the dump has no Nodes: {found}",
        help=f"run {DUMP}, with a role that may list Nodes",
    )
