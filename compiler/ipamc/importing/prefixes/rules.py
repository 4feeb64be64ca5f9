"""Rules about prefixes that a NetBox or a spreadsheet plans: which of them are pools, and how they fit together."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, note, warning
from ipamc.model.wording import shown


def rows_overlap(at: At, block: Block, pool: str, first: At, other: Block, other_pool: str) -> Diagnostic:
    """IPC0874: planned ranges share no address."""
    where = "the same addresses as" if block == other else "inside"
    return error(
        "IPC0874",
        at,
        f"{block} of pool {shown(pool)} is {where} {other} of pool {shown(other_pool)}",
        also=[Related(first, f"{other} here")],
        help="remove one of the two rows; if its addresses are to be kept free, empty the name of its pool and write the status reserved",
    )


def bad_pool(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0875: a planned range names its pool, as a DNS name in lower case."""
    return error("IPC0875", at, problem, help=way_out)


def bad_block_size(at: At, problem: str) -> Diagnostic:
    """IPC0876: a pool has one block size in each family, not larger than its ranges."""
    return error(
        "IPC0876",
        at,
        problem,
        help="write one number in the column blockSize of every range of the pool, such as 26, or add --block-size 26",
    )


def bad_place(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0877: the ranges of a pool are for the same nodes."""
    return error("IPC0877", at, problem, help=way_out)


def not_as_planned(at: At, message: str, also: Iterable[Related], way_out: str) -> Diagnostic:
    """IPC0878: a pool that is there is as it is planned."""
    return warning("IPC0878", at, message, also=also, help=way_out)


def not_taken(at: At, number: int) -> Diagnostic:
    """IPC0880: prefixes that name no pool and are in no range of one are not taken."""
    return note(
        "IPC0880",
        at,
        f"not taken: {count(number, 'row')} in no planned range, without a pool or deprecated; the first is here",
    )
