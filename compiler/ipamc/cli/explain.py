"""`ipamc explain`: the catalogue of rules, and what is known of Cilium's versions."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb


@click.command(
    cls=Verb,
    examples=(
        ("ipamc explain IPC0207", "why that was refused, and what to do"),
        ("ipamc explain", "every code and its rule"),
        ("ipamc explain versions", "which Cilium minor does what, and how that is known"),
    ),
    refused="the surroundings failed",
)
@click.argument("code", required=False)
def command(*, code: str | None) -> int:
    """Explain a finding: the rule behind its code, why it matters, what to do. Without CODE, list all."""
    if code == "versions":
        from ipamc.report.support_table import markdown

        click.echo(markdown(), nl=False)
        return DONE
    from ipamc.catalogue import catalogue

    entries = catalogue()
    if code is None:
        for each in entries.values():
            click.echo(f"{each.code}  {each.title}")
        return DONE
    wanted = code.upper() if code.upper().startswith("IPC") else f"IPC{code.zfill(4)}"
    if wanted not in entries:
        from ipamc.model.wording import near

        meant = near(wanted, entries, 3)
        hint = f" Did you mean {' or '.join(meant)}?" if meant else " 'ipamc explain' lists all codes."
        raise click.UsageError(f"there is no code {code!r}.{hint}", click.get_current_context())
    click.echo(f"{wanted}: {entries[wanted].title}")
    if entries[wanted].body:
        click.echo(f"\n{entries[wanted].body}")
    return DONE
