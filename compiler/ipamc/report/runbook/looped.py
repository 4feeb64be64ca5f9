"""Shortens waves of many nodes: a loop over a file of each wave's nodes, and steps once for equal waves.

A loop is printed only if its iterations are exactly the runbook's commands, character by character. Commands
that differ from node to node in more than the name, such as a seed, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote, split
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.review.runbook.values import Phase, Step

MANY = 12  # a phase with more nodes is printed with loops


class Short(NamedTuple):
    """A step that loops over its nodes."""

    step: Step
    each: bool = False  # the check prints its expected line once per node, with `$node`


class Group(NamedTuple):
    """Consecutive waves whose steps differ only in the number of the wave, written `$wave`."""

    first: int
    last: int
    steps: tuple[Short, ...]


def file_of(letter: str, wave: int | str) -> str:
    """Return the name of the file with the nodes of a wave, one per line."""
    return f"wave-{letter.lower()}-{wave}.txt"


def written(phase: Phase, letter: str) -> list[str]:
    """Return the commands that write each wave's file, in order."""
    return [
        f"printf '%s\\n' {' '.join(map(quote, wave.nodes))} > {file_of(letter, number)}"
        for number, wave in enumerate(phase.waves, 1)
    ]


def groups(phase: Phase, letter: str) -> list[Group]:
    """Return the waves of a phase with loops, in order; consecutive waves with equal steps form a group."""
    file = file_of(letter, "$wave")
    found: list[Group] = []
    for number, wave in enumerate(phase.waves, 1):
        steps = tuple(_looped(_numbered(step, number), wave.nodes, file) for step in wave.steps)
        first = found.pop().first if found and found[-1].steps == steps else number
        found.append(Group(first, number, steps))
    return found


def _numbered(step: Step, number: int) -> Step:
    """Replace the number of a step's wave by `$wave`."""
    word = re.compile(rf"\bwave-{number}\b")

    def prose(text: str) -> str:
        return word.sub("wave-$wave", text)

    def command(text: str) -> str:
        return word.sub(lambda found: f"wave-{_expanded(text[: found.start()], '$wave')}", text)

    return replace(
        step,
        title=prose(step.title),
        why=prose(step.why),
        if_not=prose(step.if_not),
        commands=tuple(map(command, step.commands)),
        check=step.check and replace(step.check, command=command(step.check.command)),
    )


def _looped(step: Step, nodes: Sequence[str], file: str) -> Short:
    commands = tuple(_loops(step.commands, nodes, file))
    if step.check is None:
        return Short(replace(step, nodes=(), commands=commands))
    lines, line = step.check.expect.split("\n"), None
    if len(lines) == len(nodes):
        same = lines[0] if len(set(lines)) == 1 and lines[0] else None
        line = _template(lines, nodes, shell=False) or same
    check = replace(
        step.check,
        command=_listed(step.check.command, nodes, file),
        expect=step.check.expect if line is None else line,
    )
    return Short(replace(step, nodes=(), commands=commands, check=check), each=line is not None)


def _loops(commands: Sequence[str], nodes: Sequence[str], file: str) -> Iterator[str]:
    """Yield commands; a run of one command per node that differ only in the node becomes a loop."""
    start = 0
    while start < len(commands):
        turn = _template(commands[start : start + len(nodes)], nodes)
        yield (
            f"for node in $(cat {file}); do {turn} || break; done"
            if turn
            else _listed(commands[start], nodes, file)
        )
        start += len(nodes) if turn else 1


def _template(texts: Sequence[str], nodes: Sequence[str], *, shell: bool = True) -> str | None:
    """Return the text whose `$node` expands to each of the texts, in order of nodes; None without one."""
    if len(texts) != len(nodes) or nodes[0] not in texts[0]:
        return None
    parts = texts[0].split(nodes[0])
    if any(node.join(parts) != text for node, text in zip(nodes, texts, strict=True)):
        return None
    if not shell:
        return "$node".join(parts)
    found = parts[0]
    for part in parts[1:]:
        found += _expanded(found, '"$node"') + part
    return found


def _listed(command: str, nodes: Sequence[str], file: str) -> str:
    """Replace the nodes in a command by the wave's file, and an option per node by a loop over it."""
    option = re.search(rf"(--[a-z-]+) {re.escape(nodes[0])}(?![\w.-])", command) if nodes else None
    lists = [(" ".join(nodes), f"$(cat {file})")]
    if option:
        options = " ".join(f"{option[1]} {node}" for node in nodes)
        lists.append((options, f"$(sed 's/^/{option[1]} /' {file})"))
    for words, instead in lists if nodes else ():
        found = re.search(rf"(?<![\w.-]){re.escape(words)}(?![\w.-])", command)
        if found and _is_bare(command[: found.start()]):
            return f"{command[: found.start()]}{instead}{command[found.end() :]}"
    return command


def _expanded(before: str, variable: str) -> str:
    """Return a variable with the quotes that a shell needs behind `before`, a part of a command."""
    return variable if _is_bare(before) else f"""'"{variable.strip('"')}"'"""


def _is_bare(before: str) -> bool:
    """Return whether a shell is outside of quotes after a text."""
    try:
        split(before)
    except ValueError:
        return False
    return True
