"""`ipamc verify`: the checker of `law/verify.py`, which shares no code with the compiler but the law."""

from __future__ import annotations

import click

from ipamc.cli import options
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.plan import allowed
from ipamc.cli.terminal import say, show
from ipamc.law.change import Gate
from ipamc.model.diagnostics import count
from ipamc.model.limits import VERIFY_SHOWN

_FAIL_ON = "Also exit 1 if the law requires one of these labels: renumber, rename, follow, leave."


@click.command(cls=Verb)
@options.clusters_argument
@click.option("--base", required=True, type=options.Revision(), metavar="REV")
@click.option(
    "--fail-on", multiple=True, callback=options.checked(options.gates), metavar="WORD,…", help=_FAIL_ON
)
@click.option("--allow", multiple=True, callback=options.checked(allowed), metavar="LABEL,…")
def command(*, clusters: tuple[str, ...], base: str, fail_on: frozenset[str], allow: frozenset[str]) -> int:
    """Check locks and rendered files with an independent program. Writes nothing.

    Checks by address: the change of the lock since --base follows the law; no address belongs to two nodes,
    in a lock or an address space; no object gives a node an address that it does not hold; no list of
    Cilium's operator has an address that is kept for another node.

    The program has 700 lines, and shares only the law with the compiler. It does not find missing files: use
    `ipamc compile --check`. CLUSTER is a name below clusters/ or a folder; by default all clusters, also
    those that only the base has.

    Options:
        --base: The revision to compare with.
        --allow: Labels of the request: ipamc/release allows a quarantine to end early, ipamc/delete-cluster
            allows a cluster that only the base has, the others allow what --fail-on refuses.
    Examples:
        ipamc verify --base origin/main  # check what this branch changes
        ipamc verify lab --base HEAD~1 --fail-on renumber,rename
            # also fail if a node moves or has another name
    Exit codes:
        1: something was found, or an I/O or environment error
    """
    from ipamc.law.files import commit, disk
    from ipamc.law.verify import Finding, verify
    from ipamc.workspace.clusters import clusters_folder, find, name_of, parent_of
    from ipamc.workspace.environment import today

    here, folders = clusters_folder(), find(clusters) if clusters else []
    names = [name_of(folder) for folder in folders if parent_of(folder) == here]
    others = [folder for folder in folders if parent_of(folder) != here]
    sources = [(here, here, "", names)] if names or not folders else []
    sources += [(folder, parent_of(folder), f"{name_of(folder)}/", []) for folder in others]
    gates = (fail_on | {Gate.RELEASE, Gate.DELETE_CLUSTER}) - allow
    found: list[Finding] = []
    number, day = 0, today()
    for folder, parent, prefix, some in sources:
        try:
            sides = commit(folder, base, prefix), disk(folder, prefix)
            new, checked = verify(parent, *sides, day, gates, some)
        except Finding as finding:
            new, checked = [finding], []
        found += new
        number += len(checked)
    for each in found[:VERIFY_SHOWN]:
        show(f"{each}\n", err=True)
    more = f", the first {VERIFY_SHOWN} are shown" if len(found) > VERIFY_SHOWN else ""
    what = f"{count(len(found), 'finding')}{more}" if found else "nothing found"
    say(f"{count(number, 'cluster')} verified against {base}: {what}")
    return REFUSED if found else DONE
