"""A step in one line, for plans and for what `ipamc lock --settle` prints."""

from __future__ import annotations

from ipamc.review.runbook.values import Step, Where

KINDS = frozenset({"Node", "Nodes", "Cilium", "Calico"})
"""First words that keep their capital letter."""
LONGEST = 220
"""Characters of commands in a line; longer ones are left to the runbook."""


def sentence(step: Step) -> str:
    """Return the title of a step, its commands, its condition and its reason."""
    commands = (step.check.command,) if step.check and not step.commands else step.commands
    said = _lowered(step.title)
    if step.where is Where.NODE:
        said = f"on the node: {said}"
    if step.edit:
        said += f" ({'; '.join(line.strip() for line in step.edit.splitlines() if line.strip()[-1:] != ':')})"
    line = " && ".join(commands)
    if line and len(line) <= LONGEST:
        said += f": {line}"
    condition = f"; only if {step.only_if}" if step.only_if else ""
    return f"{said}{condition}{f'; {step.why}' if step.why else ''}"


def _lowered(title: str) -> str:
    first = title.split(maxsplit=1)[0]
    return f"{title[0].lower()}{title[1:]}" if first.istitle() and first not in KINDS else title
