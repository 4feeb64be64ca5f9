"""What a page below docs/runbooks/ has of the runbooks that it shows: each step once, and `…` for what the page has already."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SAME = "…"
CHUNK = re.compile(r"^(?=#|\d+\. \*\*)", re.MULTILINE)
TITLE = re.compile(r"(?P<number>\d+)\. (?P<title>\*\*.*?\*\*)(?P<why>.*)")
WAVE = re.compile(r"### Wave (?P<number>\d+) of .*\n\n(?P<nodes>.*)\n")
NAMED = {"--node", "--to"}


@dataclass
class Page:
    """A page as it is written, and what it has so far."""

    text: str = ""
    known: set[str] = field(default_factory=set)
    """What a reader has seen, without the names of examples."""
    outside: set[str] = field(default_factory=set)
    """What of it belongs to no wave."""
    first: list[str] = field(default_factory=list)
    """The numbered titles of the first runbook, without the names of its example."""

    def add(self, arguments: str, printed: str, heading: str = "") -> None:
        """Add what the arguments print; with a heading, as a section that shows what differs from the page so far."""
        names = _Names(arguments, printed)
        chunks = list(filter(None, CHUNK.split(printed.rstrip() + "\n")))
        lines = self._section(chunks, names, heading) if heading else self._runbook(chunks, names)
        self.text += "\n\n".join(lines) + "\n"

    def _runbook(self, chunks: Iterable[str], names: _Names) -> Iterator[str]:
        """Yield the paragraphs of the first runbook."""
        for chunk, wave in _with_waves(chunks):
            if chunk.startswith("#"):
                yield chunk.rstrip() + (f"\n\n{SAME}" if wave > 1 else "")
                self.known |= set(map(names.neutral, _paragraphs(chunk)))
                continue
            step = _Step(chunk)
            self.first.append(names.neutral(step.numbered))
            shown = step.shown(self.known, names)
            if not wave:
                self.outside |= step.neutral(names)
            if wave < 2 or shown != step.title_only:
                yield shown

    def _section(self, chunks: Iterable[str], names: _Names, heading: str) -> Iterator[str]:
        """Yield the paragraphs of another runbook, without its first steps if they are the same."""
        yield f"\n## {heading}"
        yield f"`ipamc runbook {names.arguments}`:"
        held: list[str] = []
        same, differs = 0, False
        for chunk, wave in _with_waves(chunks):
            if chunk.startswith("#"):
                title, *paragraphs = _paragraphs(chunk)
                new = [each for each in paragraphs if names.neutral(each) not in self.known]
                self.known |= set(map(names.neutral, paragraphs))
                if chunk.startswith("# "):
                    if new:
                        yield "\n".join(new)
                elif wave > 1 and differs:
                    yield "\n\n".join((f"#{title}", *paragraphs, SAME))
                elif wave:
                    held += [f"#{title}", *paragraphs]
                elif new:
                    yield "\n\n".join((f"#{title}", *new))
                else:
                    held = [] if paragraphs else [f"#{title}"]
                continue
            step = _Step(chunk)
            shown = step.shown(self.known, names)
            is_known = shown == step.title_only
            if not differs and is_known and names.neutral(step.numbered) in self.first:
                same = step.number
                continue
            if not differs and same:
                yield f"Steps 1 to {same} are the same."
            differs = True
            yield from held
            held = []
            if wave < 2 or not is_known:
                yield shown


def _with_waves(chunks: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each heading and step with the number of its wave, or 0."""
    number = 0
    for chunk in chunks:
        if chunk.startswith("#"):
            wave = WAVE.match(chunk)
            number = int(wave["number"]) if wave else 0
        yield chunk, number


class _Names:
    """The names of a runbook's example, which differ from those of another one."""

    def __init__(self, arguments: str, printed: str) -> None:
        self.arguments = arguments
        cluster, *words = shlex.split(arguments)
        nodes = {word for option, word in itertools.pairwise(words) if option in NAMED}
        nodes |= {node for wave in WAVE.finditer(printed) for node in wave["nodes"].split(", ")}
        any_node = "|".join(map(re.escape, sorted(nodes, reverse=True))) or "$."
        self.cluster = re.compile(rf"(?<![\w-]){re.escape(cluster)}(?![\w-])")
        self.nodes = re.compile(rf"(?<![\w-])({any_node})(?![\w-])")

    def neutral(self, text: str) -> str:
        """Return a text without the names, blocks and numbers of the example."""
        text = re.sub(r"runbook/[\w./-]+", "BRANCH", text)
        text = self.cluster.sub("CLUSTER", self.nodes.sub("NODE", text))
        text = re.sub(r"[0-9a-f.:]+/\d+", "BLOCK", text)
        text = re.sub(r"\b\d+ (node|block)s?\b", r"N \1s", text)
        text = re.sub(r"-wave-\d+", "-wave-N", text)
        text = re.sub(r"(?m)^ *\d+$", "N", text)
        text = re.sub(r"(?<!\S)(\S+)(?:,? \1)+(?!\S)", r"\1", text)
        text = re.sub(r"(?<!\S)(\S+ \S+)(?: \1)+(?!\S)", r"\1", text)
        return "\n".join(dict.fromkeys(line.strip() for line in text.splitlines()))


class _Step:
    """A step that was printed."""

    def __init__(self, text: str) -> None:
        line, *paragraphs = _paragraphs(text)
        found = TITLE.fullmatch(line)
        assert found, line
        self.line = line
        self.number = int(found["number"])
        self.numbered = f"{found['number']}. {found['title']}"
        self.words = line.removeprefix(f"{found['number']}. ")
        self.title_only = f"{self.numbered} {SAME}"
        self.parts = list(_parts(paragraphs))

    def neutral(self, names: _Names) -> set[str]:
        """Return what the page knows when it has shown the step."""
        return set(map(names.neutral, (self.words, *self.parts)))

    def shown(self, known: set[str], names: _Names) -> str:
        """Return what the page shows of the step; the page knows it from now on."""
        parts = [(part, names.neutral(part) in known) for part in self.parts]
        same = names.neutral(self.words) in known
        known |= self.neutral(names)
        indent = " " * (len(str(self.number)) + 2)
        if all(is_known for _, is_known in parts) and (parts or same):
            return self.title_only if same else f"{self.line} {SAME}"
        shown = [self.numbered if same else self.line]
        for part, is_known in parts:
            if not is_known:
                shown.append(part)
            elif shown[-1] != indent + SAME:
                shown.append(indent + SAME)
        return "\n\n".join(shown)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and code blocks of a text; an item of a list is one."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        bare = line.strip()
        if not fence and (not bare or bare.startswith("- ")):
            if lines:
                yield "\n".join(lines)
            lines = []
        if bare or fence:
            lines.append(line)
        if bare.startswith("```"):
            ticks = bare[: len(bare) - len(bare.lstrip("`"))]
            fence = "" if fence == bare else fence or ticks
    if lines:
        yield "\n".join(lines)


def _parts(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield what belongs together: commands with the place to run them, a check with what it prints."""
    part: list[str] = []
    for paragraph in paragraphs:
        bare = paragraph.strip()
        begins = (
            not part
            or bare.startswith(("If ", "Check:"))
            or not (part[0].strip() == "Check:" or part[-1].endswith(":"))
        )
        if begins and part:
            yield "\n\n".join(part)
            part = []
        part.append(paragraph)
    if part:
        yield "\n\n".join(part)
