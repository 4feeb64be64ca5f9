"""Runbooks as Markdown for people, and as JSON for programs.

Markdown has numbered steps, commands to paste, the expected output of checks, and what to do otherwise. JSON
has the fields of `review/runbook/steps.py`, as schemas/runbook.output.json describes them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from shlex import quote
from string import ascii_uppercase

import msgspec

from ipamc.model.diagnostics import count
from ipamc.report.terminal_text import harmless, visible
from ipamc.review.runbook.steps import Phase, Runbook, Step, Wave, Where

PLACES = {
    Where.HERE: "",
    Where.NODE: "on each of these nodes",
    Where.PIPELINE: "the pipeline runs it after the merge; without a pipeline, run it yourself",
    Where.FORGE: "after the merge",
    Where.EDITOR: "edit",
}
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>|#"})
_WORD = re.compile(r"[a-z]+(?=[\s,:;]|$)")


VERSION = 1


def to_json(cluster: str, runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster. Every key is present, even without a value."""
    records = [msgspec.to_builtins(runbook) for runbook in runbooks]
    for record in records:
        del record["cluster"]
    return json.dumps({"version": VERSION, "cluster": cluster, "runbooks": records}, indent=2)


def to_markdown(runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster, one after the other; `Site.loops` has made those of many nodes."""
    return "\n".join(line for runbook in runbooks for line in _runbook(runbook))


def _runbook(runbook: Runbook) -> Iterator[str]:
    """Yield lines; an empty line follows a line that ends with a line break."""
    yield f"# {_text(runbook.title)}\n"
    if runbook.about:
        yield "".join(f"- {_sentence(about)}\n" for about in runbook.about)
    numbers = itertools.count(1)
    for letter, phase in zip(ascii_uppercase, runbook.phases, strict=False):
        yield f"## {letter}. {_text(phase.title)}\n"
        yield from _looped(phase, numbers) if phase.file else _phase(phase, numbers)
    yield "## The way back\n"
    yield _text(f"{runbook.way_back[0].upper()}{runbook.way_back[1:]}.") + "\n"


def _phase(phase: Phase, numbers: Iterator[int]) -> Iterator[str]:
    for index, wave in enumerate(phase.waves, 1):
        if wave.nodes:
            yield f"### Wave {index} of {len(phase.waves)}{_named(wave)}\n"
            yield f"{', '.join(map(_text, wave.nodes))}\n"
        for step in wave.steps:
            yield from _step(next(numbers), step)


def _named(wave: Wave) -> str:
    return f"{wave.name and f', {_text(wave.name)}'}: {count(len(wave.nodes), 'node')}"


def _looped(phase: Phase, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the waves of many nodes: their files, then the steps, once for all waves that share them."""
    total = sum(len(wave.nodes) for wave in phase.waves)
    yield (
        f"{count(total, 'node')} in {count(len(phase.waves), 'wave')}. "
        "First write the nodes of each wave into a file in the current folder:"
    )
    yield from _block("", "sh", written(phase))
    yield ""
    yield "".join(f"- wave {index}{_named(wave)}\n" for index, wave in enumerate(phase.waves, 1))
    for first, last, steps in groups(phase):
        begin = f"Begin with `wave={first}` in your shell."
        again = f"Do all steps, then begin again with the next number, up to {last}"
        if last > first:
            yield f"### Waves {first} to {last} of {len(phase.waves)}\n"
            yield f"{begin} {again}. Finish each wave before you begin the next.\n"
        else:
            yield f"### Wave {first} of {len(phase.waves)}\n\n{begin}\n"
        for step in steps:
            yield from _step(next(numbers), step)


def written(phase: Phase) -> list[str]:
    """Return the command that writes each wave's file, in order."""
    return [
        f"printf '%s\\n' {' '.join(map(quote, wave.nodes))} > {phase.file.replace('$wave', str(number))}"
        for number, wave in enumerate(phase.waves, 1)
    ]


def groups(phase: Phase) -> Iterator[tuple[int, int, tuple[Step, ...]]]:
    """Yield the first and the last number of waves, one after the other, that have the same steps."""
    for steps, found in itertools.groupby(enumerate(phase.waves, 1), lambda each: each[1].steps):
        first, *rest = [number for number, _ in found]
        yield first, (rest or [first])[-1], steps


def _step(number: int, step: Step) -> Iterator[str]:
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
            yield f"\n{indent}It must print{' this line for each of the nodes' if step.check.each else ''}:"
            yield from _block(indent, "", step.check.expect.splitlines())
        else:
            yield f"\n{indent}It must print nothing."
    if step.if_not:
        yield f"\n{indent}{_otherwise(step)}"
    yield ""


def _otherwise(step: Step) -> str:
    """Return what to do otherwise. A text that begins with `if` has its own condition."""
    if step.if_not.startswith("if "):
        return _sentence(step.if_not)
    return f"{'If not' if step.check else 'If this fails'}: {_ended(_text(step.if_not))}"


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
    """Return a sentence. Its first word keeps its case if it is a name, such as podCIDRs or node-1."""
    plain = _WORD.match(text)
    return _ended(_text(f"{text[0].upper()}{text[1:]}" if plain else text))


def _ended(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _text(text: str) -> str:
    """Escape text for Markdown, except `words` in backticks, which are code in both."""
    pieces = re.split(r"(`[^`]+`)", visible(text))
    return "".join(piece if number % 2 else piece.translate(_SPECIAL) for number, piece in enumerate(pieces))
