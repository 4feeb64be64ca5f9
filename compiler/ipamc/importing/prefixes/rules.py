"""Rules about prefixes that a NetBox or a spreadsheet plans: which of them are pools, and how they fit together."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, note, warning
from ipamc.model.wording import shown


def rows_overlap(at: At, block: Block, pool: str, first: At, other: Block, other_pool: str) -> Diagnostic:
    """IPC0874: planned ranges share no address.

    A row inside a range of its own pool is reserved if its status is active, reserved or deprecated. A row
    that names another pool, or has no such status, would be a second range of the same addresses.

    Why: two pools would give one address to two nodes; a compile refuses them (IPC0207).

    Run: remove one of the two rows, or empty the name of its pool and write the status reserved, if its
    addresses are to be kept free. An export of NetBox with several VRFs has a prefix once for each: export
    one VRF. Then `ipamc import CLUSTER --prefixes plan.csv`.
    """
    where = "the same addresses as" if block == other else "inside"
    return error(
        "IPC0874",
        at,
        f"{block} of pool {shown(pool)} is {where} {other} of pool {shown(other_pool)}",
        also=[Related(first, f"{other} here")],
        help="remove one of the two rows; if its addresses are to be kept free, empty the name of its pool and write the status reserved",
    )


def bad_pool(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0875: a planned range names its pool, as a DNS name in lower case.

    The name is in the column `pool`, else `name`, else `role`, else `description`: the first of them that
    has a text in some row. A row without one is no range.

    Why: the name becomes that of an object of Kubernetes, where others are refused. One that ipamc made up
    would be another one after the next export.

    Run: write names such as `rack-7`, or add a column `pool` that is empty where a row is no range; then
    `ipamc import CLUSTER --prefixes plan.csv`.
    """
    return error("IPC0875", at, problem, help=way_out)


def bad_block_size(at: At, problem: str) -> Diagnostic:
    """IPC0876: a pool has one block size in each family, not larger than its ranges.

    It is the prefix length of a node's block, in the column `blockSize`. Ranges that NetBox has from `ipamc
    export` say it in their description.

    Why: it cannot be changed for nodes that have blocks without a renumbering of them, so it is not
    guessed: a /24 has 254 addresses for pods, a /26 has 62.

    Run: write one number for every range of the pool, such as 26; or for all pools `ipamc import CLUSTER
    --prefixes plan.csv --block-size 26`.
    """
    return error(
        "IPC0876",
        at,
        problem,
        help="write one number in the column blockSize of every range of the pool, such as 26, or add --block-size 26",
    )


def bad_place(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0877: the ranges of a pool are for the same nodes.

    A column `nodeSelector` is taken as it is, in Calico's language; else `zone`, else `site` (or NetBox's
    `Scope`) is the value of the nodes' label topology.kubernetes.io/zone. Without one of them a new pool
    selects every node.

    Why: a pool has one selector. Ranges of two places in it would be given to nodes of either, and routes
    would lead to the wrong place.

    Run: write the same place in every range of the pool, or make two pools of it; then `ipamc import
    CLUSTER --prefixes plan.csv`.
    """
    return error("IPC0877", at, problem, help=way_out)


def not_as_planned(at: At, message: str, also: Iterable[Related], way_out: str) -> Diagnostic:
    """IPC0878: a pool that is there is as it is planned.

    An import changes no pool that is there.

    Why: only a person knows the order of its ranges, and what runs with it: a range that is taken away may
    have blocks of nodes, and another block size counts for new nodes only.

    Run: edit the pool in ippools.yaml as the finding says: new ranges go to the end of `cidrs`. Then `ipamc
    plan CLUSTER` shows what changes, and `ipamc compile CLUSTER` judges it.
    """
    return warning("IPC0878", at, message, also=also, help=way_out)


def not_taken(at: At, number: int) -> Diagnostic:
    """IPC0880: prefixes that name no pool and are in no range of one are not taken.

    Neither are those that are deprecated, and those of other clusters that `ipamc export` made, where they
    are in no range.

    Why: a note, because an export of NetBox has the networks of the whole company. But a range whose name
    was forgotten looks the same, and its pool would be too small.

    Run: nothing, if none of these rows is for pods. Else write the name of the pool into the row, and
    `ipamc import CLUSTER --prefixes plan.csv`.
    """
    return note(
        "IPC0880",
        at,
        f"not taken: {count(number, 'row')} in no planned range, without a pool or deprecated; the first is here",
    )
