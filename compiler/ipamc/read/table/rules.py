"""Rules about a table of prefixes as text: its form, its headers, and the CIDRs in it."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cidr import CidrError
from ipamc.model.diagnostics import At, Diagnostic, Related, error
from ipamc.model.wording import listing


def table_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0870: a table of prefixes is CSV: a row of headers, and as many cells in every row.

    Cells are separated by commas, semicolons, tabs or bars: what the row of headers has most of. A cell
    with a separator, a quote or a line break in it stands in double quotes. A file has at most 64 MiB and a
    million rows: export the prefixes of one site or one VRF instead of all.

    Why: a row with a cell too many has its values under other headers: a status would be read as a block
    size.

    Run: correct the row, or export again, then `ipamc import CLUSTER --prefixes plan.csv`.
    """
    return error("IPC0870", at, problem, help=way_out)


def column_missing(at: At, names: Iterable[str], way_out: str) -> Diagnostic:
    """IPC0871: a table has the columns that its use needs.

    Case, spaces, `-` and `_` in a header do not count: `Block Size` is `blockSize`. NetBox translates
    headers for users whose language is not English.

    Why: which column has the CIDRs is not guessed: a description may have one, too, and a pool would be
    made of it.

    Run: name the column `prefix`; in NetBox set the language of your profile to English, and export again.
    Then `ipamc import CLUSTER --prefixes plan.csv`.
    """
    return error("IPC0871", at, f"no column {listing(names)} is in the row of headers", help=way_out)


def column_twice(at: At, first: At, name: str) -> Diagnostic:
    """IPC0872: a table has a column only once.

    Headers that differ only in case, spaces, `-` and `_` are the same.

    Why: of two columns with one header programs take the first or the last, and it cannot be seen which:
    nodes would get blocks of the size that was meant for yesterday.

    Run: remove or rename one of the two columns, then `ipamc import CLUSTER --prefixes plan.csv`.
    """
    return error(
        "IPC0872",
        at,
        f"the column {name} is there twice",
        also=[Related(first, "first here")],
        help="remove or rename one of the two",
    )


def bad_prefix(at: At, text: str, problem: CidrError) -> Diagnostic:
    """IPC0873: a prefix is a CIDR without host bits, whose addresses pods can have.

    A spreadsheet shows the result of a formula, and may write the formula into the file.

    Why: a program that corrects 10.1.2.3/16 to 10.1.0.0/16 may take a network that nobody meant, and pods
    would have addresses of somebody else.

    Run: write the network as the finding says, or paste the value of a formula in its place, and export
    again; then `ipamc import CLUSTER --prefixes plan.csv`.
    """
    way_out = f"write {problem.better}" if problem.better else ""
    if text[:1] in {"=", "#", "+", "@"}:
        way_out = "the cell is a formula, or what is left of one: paste its value, and export again"
    return error("IPC0873", at, problem.reason, help=way_out or "write it as 10.1.0.0/16 or fd00:1::/64")
