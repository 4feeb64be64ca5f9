"""Waves of many nodes on one page: loops over a file of each wave's nodes, steps that waves share only once.

A loop is printed only where its turns are the commands of the runbook, letter by letter; what differs from
node to node, as a seed does, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote, split
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.review.runbook.values import Phase, Step

MANY = 12  # a phase with more nodes is told with loops


class Short(NamedTuple):
    """A step with loops in place of its nodes."""

    step: Step
    each: bool = False  # whether the check prints what it expects once for each node, as `$node`


class Group(NamedTuple):
    """Waves, one after the other, whose steps differ in nothing but `$wave`, the number of the wave."""

    first: int
    last: int
    steps: tuple[Short, ...]


def file_of(letter: str, wave: int | str) -> str:
    """Return the name of the file with the nodes of a wave, a line each."""
    return f"wave-{letter.lower()}-{wave}.txt"


def written(phase: Phase, letter: str) -> list[str]:
    """Return the command that writes each wave's file, in order."""
    return [
        f"printf '%s\\n' {' '.join(map(quote, wave.nodes))} > {file_of(letter, number)}"
        for number, wave in enumerate(phase.waves, 1)
    ]


def groups(phase: Phase, letter: str) -> list[Group]:
    """Return the waves of a phase with loops, in order; those with the same steps are together."""
    file = file_of(letter, "$wave")
    found: list[Group] = []
    for number, wave in enumerate(phase.waves, 1):
        steps = tuple(_looped(_numbered(step, number), wave.nodes, file) for step in wave.steps)
        first = found.pop().first if found and found[-1].steps == steps else number
        found.append(Group(first, number, steps))
    return found


def _numbered(step: Step, number: int) -> Step:
    """Return a step with `$wave` for the number of its wave."""
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
        line = _turn(lines, nodes, shell=False) or same
    check = replace(
        step.check,
        command=_listed(step.check.command, nodes, file),
        expect=step.check.expect if line is None else line,
    )
    return Short(replace(step, nodes=(), commands=commands, check=check), each=line is not None)


def _loops(commands: Sequence[str], nodes: Sequence[str], file: str) -> Iterator[str]:
    """Yield commands, with a loop in place of as many as there are nodes that differ in the node only."""
    start = 0
    while start < len(commands):
        turn = _turn(commands[start : start + len(nodes)], nodes)
        yield (
            f"for node in $(cat {file}); do {turn} || break; done"
            if turn
            else _listed(commands[start], nodes, file)
        )
        start += len(nodes) if turn else 1


def _turn(texts: Sequence[str], nodes: Sequence[str], *, shell: bool = True) -> str | None:
    """Return one text with `$node` that stands for all of the texts, in order; None if there is none."""
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
    """Return a command with the wave's file in place of its nodes, or of an option with each of them."""
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
    """Return a variable as it is written behind some text of a command, so that a shell expands it."""
    return variable if _is_bare(before) else f"""'"{variable.strip('"')}"'"""


def _is_bare(before: str) -> bool:
    """Return whether a shell that has read a text is outside of quotes."""
    try:
        split(before)
    except ValueError:
        return False
    return True
