"""`ipamc version`: what a report of a problem needs."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import output_option
from ipamc.cli.terminal import show, show_record

VERSION = 1
"""Of the JSON: it grows when a field changes its meaning or is removed."""


@click.command(
    cls=Verb,
    examples=(
        ("ipamc version", "ipamc, Python and the libraries, and the minors of Cilium that it knows"),
        ("ipamc version --json", "the same, for programs"),
        ("ipamc --version", "ipamc alone"),
    ),
    refused="an I/O or environment error",
)
@output_option("text", "json")
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
def command(*, output: str, as_json: bool) -> int:
    """Show the versions of ipamc, of Python and of the libraries, the minors of Cilium, and the lock's format.

    Two runs on one machine print the same: there is no time in it.
    """
    from ipamc import __version__
    from ipamc.lock.file_rules import FORMAT
    from ipamc.model.cilium.versions import minors, text
    from ipamc.workspace.environment import libraries, runtime

    parts = {"ipamc": __version__, **runtime()}
    known = [text(minor) for minor in minors()]
    if as_json or output == "json":
        found = {"version": VERSION, **parts, "dependencies": libraries(), "cilium": known, "lock": FORMAT}
        show_record(found)
        return DONE
    rows = {**parts, **libraries(), "cilium": f"{known[0]} to {known[-1]}", "lock": f"format {FORMAT}"}
    show("".join(f"{name:<16}{value}\n" for name, value in rows.items()))
    return DONE
