"""`ipamc explain`: the catalogue of rules, and the table of Cilium versions."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb


@click.command(
    cls=Verb,
    examples=(
        ("ipamc explain IPC0207", "why this is refused, and what to do"),
        ("ipamc explain", "every code and its rule"),
        ("ipamc explain versions", "what each Cilium minor does, and how that is known"),
    ),
    refused="an I/O or environment error",
)
@click.argument("code", required=False)
def command(*, code: str | None) -> int:
    """Explain the rule behind a finding's code: why it matters and what to do.

    Without CODE, list all rules.
    """
    if code == "versions":
        from ipamc.report.support_table import markdown

        click.echo(markdown(), nl=False)
        return DONE
    from ipamc.catalogue import catalogue

    entries = catalogue()
    if code is None:
        for entry in entries.values():
            click.echo(f"{entry.code}  {entry.title}")
        return DONE
    wanted = code.upper() if code.upper().startswith("IPC") else f"IPC{code.zfill(4)}"
    if wanted not in entries:
        from ipamc.model.wording import near

        meant = near(wanted, entries, 3)
        hint = f" Did you mean {' or '.join(meant)}?" if meant else " 'ipamc explain' lists all codes."
        raise click.UsageError(f"there is no code {code!r}.{hint}", click.get_current_context())
    from ipamc.catalogue.examples import examples
    from ipamc.report import rule
    from ipamc.workspace.disk import assets

    click.echo(rule.text(entries[wanted], examples(assets("examples")).get(wanted)), nl=False)
    return DONE
