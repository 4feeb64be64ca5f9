"""Runbooks as Markdown for people, and as JSON for programs.

Markdown has numbered steps, commands to paste, the expected output of checks, and what to do otherwise. JSON
has the fields of `review/runbook/values.py`, as schemas/runbook.output.json describes them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote, split
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ipamc.model.diagnostics import count
from ipamc.report.terminal_text import harmless, visible
from ipamc.review.runbook.values import Phase, Runbook, Step, Wave, Where

PLACES = {
    Where.HERE: "",
    Where.NODE: "on each of these nodes",
    Where.PIPELINE: "the pipeline runs it after the merge; without a pipeline you do",
    Where.FORGE: "after the merge",
    Where.EDITOR: "edit",
}
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>|#"})


VERSION = 1


def to_json(cluster: str, runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster. Every key is present, even without a value."""
    records = [msgspec.to_builtins(runbook) for runbook in runbooks]
    for record in records:
        del record["cluster"]
    return json.dumps({"version": VERSION, "cluster": cluster, "runbooks": records}, indent=2)


def to_markdown(runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster, one after the other."""
    return "\n".join(line for runbook in runbooks for line in _runbook(runbook))


def _runbook(runbook: Runbook) -> Iterator[str]:
    """Yield lines; an empty line follows a line that ends with a line break."""
    yield f"# {_text(runbook.title)}\n"
    if runbook.about:
        yield "".join(f"- {_sentence(about)}\n" for about in runbook.about)
    numbers = itertools.count(1)
    for index, phase in enumerate(runbook.phases):
        yield from _phase(chr(ord("A") + index) if index < 26 else str(index + 1), phase, numbers)
    yield "## The way back\n"
    yield _text(f"{runbook.way_back[0].upper()}{runbook.way_back[1:]}.") + "\n"


def _phase(letter: str, phase: Phase, numbers: Iterator[int]) -> Iterator[str]:
    yield f"## {letter}. {_text(phase.title)}\n"
    if sum(len(wave.nodes) for wave in phase.waves) > MANY:
        yield from _looped(letter, phase, numbers)
        return
    for index, wave in enumerate(phase.waves, 1):
        if wave.nodes:
            yield f"### Wave {index} of {len(phase.waves)}{_named(wave)}\n"
            yield f"{', '.join(map(_text, wave.nodes))}\n"
        for step in wave.steps:
            yield from _step(next(numbers), step)


def _named(wave: Wave) -> str:
    return f"{wave.name and f', {_text(wave.name)}'}: {count(len(wave.nodes), 'node')}"


def _looped(letter: str, phase: Phase, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the waves of many nodes: their files, then the steps, once for all waves that share them."""
    total = sum(len(wave.nodes) for wave in phase.waves)
    yield (
        f"{count(total, 'node')} in {count(len(phase.waves), 'wave')}. "
        "Write the names of each wave's nodes into a file first, in the folder of your shell:"
    )
    yield from _block("", "sh", written(phase, letter))
    yield ""
    yield "".join(f"- wave {index}{_named(wave)}\n" for index, wave in enumerate(phase.waves, 1))
    for group in groups(phase, letter):
        begin = f"Begin with `wave={group.first}` in your shell."
        again = f"Do all steps, then begin again with the next number, up to {group.last}"
        if group.last > group.first:
            yield f"### Waves {group.first} to {group.last} of {len(phase.waves)}\n"
            yield f"{begin} {again}: a wave is finished before the next one begins.\n"
        else:
            yield f"### Wave {group.first} of {len(phase.waves)}\n\n{begin}\n"
        for short in group.steps:
            yield from _step(next(numbers), short.step, each=short.each)


def _step(number: int, step: Step, *, each: bool = False) -> Iterator[str]:
    indent = " " * (len(str(number)) + 2)
    condition = f" *Only if {_text(step.only_if)}.*" if step.only_if else ""
    yield f"{number}. **{_text(step.title)}.**{condition}{f' {_sentence(step.why)}' if step.why else ''}"
    place = PLACES[step.where]
    if step.edit:
        yield from _block(indent, "", step.edit.splitlines())
    if step.commands:
        if place and step.where is not Where.EDITOR:
            yield f"\n{indent}{place[0].upper()}{place[1:]}:"
        yield from _block(indent, "sh", step.commands)
    if step.check:
        yield f"\n{indent}Check:"
        yield from _block(indent, "sh", [step.check.command])
        if step.check.expect:
            yield f"\n{indent}It must print{' this line for each of the nodes' if each else ''}:"
            yield from _block(indent, "", step.check.expect.splitlines())
        else:
            yield f"\n{indent}It must print nothing."
    if step.if_not:
        yield f"\n{indent}If not: {_ended(_text(step.if_not))}"
    yield ""


def _block(indent: str, language: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a fenced block; the fence is longer than any in the lines."""
    shown = [harmless(line) for line in lines]
    fence = "```"
    while any(fence in line for line in shown):
        fence += "`"
    yield f"\n{indent}{fence}{language}"
    yield from (f"{indent}{line}" for line in shown)
    yield f"{indent}{fence}"


def _sentence(text: str) -> str:
    return _ended(_text(f"{text[0].upper()}{text[1:]}"))


def _ended(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _text(text: str) -> str:
    """Escape text for Markdown, except `words` in backticks, which are code in both."""
    pieces = re.split(r"(`[^`]+`)", visible(text))
    return "".join(piece if number % 2 else piece.translate(_SPECIAL) for number, piece in enumerate(pieces))


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
        steps = tuple(_short(_numbered(step, number), wave.nodes, file) for step in wave.steps)
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


def _short(step: Step, nodes: Sequence[str], file: str) -> Short:
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
