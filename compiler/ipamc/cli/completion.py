"""`ipamc completion`: the script with which a shell completes verbs, options and cluster names."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, Verb

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Verb,
    examples=(
        ('eval "$(ipamc completion bash)"', "in ~/.bashrc"),
        ('eval "$(ipamc completion zsh)"', "in ~/.zshrc"),
        ("ipamc completion fish > ~/.config/fish/completions/ipamc.fish", "once"),
    ),
    refused="an I/O or environment error",
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(*, shell: str) -> int:
    """Print the completion script of a shell: bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    from ipamc.cli import ipamc

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click cannot complete for {shell}")
    script = kind(ipamc, {}, "ipamc", "_IPAMC_COMPLETE")
    # script.source() would run bash to ask for its version
    click.echo(script.source_template % script.source_vars())
    return DONE
