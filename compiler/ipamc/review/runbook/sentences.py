"""A step in one line, for plans and for what `ipamc lock --settle` prints."""

from __future__ import annotations

from ipamc.review.runbook.values import Step, Where

MOST = 3
"""Commands in a line; more are left to the runbook."""


def sentence(step: Step) -> str:
    """Return the title of a step, its commands, its condition and its reason."""
    commands = (step.check.command,) if step.check and not step.commands else step.commands
    said = step.title if step.where is not Where.NODE else f"on the node: {step.title}"
    if step.edit:
        said += f" ({'; '.join(line.strip() for line in step.edit.splitlines() if line.strip()[-1:] != ':')})"
    if commands and len(commands) <= MOST:
        said += f": {' && '.join(commands)}"
    condition = f"; only if {step.only_if}" if step.only_if else ""
    return f"{said[0].lower()}{said[1:]}{condition}{f'; {step.why}' if step.why else ''}"
