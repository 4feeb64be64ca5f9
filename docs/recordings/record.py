"""`make recordings`: plays the tapes of this folder in a pseudo-terminal, and draws each as an animated SVG.

    python docs/recordings/record.py [--into FOLDER] [TAPE]...

A tape is a text file. `key: value` lines at its beginning are its title, a description for those who do not see the
picture, and its size in columns and rows. Then each line is a step: `% COMMAND` runs unseen, `$ COMMAND` is typed and
runs, `! COMMAND` is typed, runs and must fail, `# TEXT` is typed and does nothing, `~ SECONDS` waits. `= TEXT` is a
line that the command before it printed on servers, agents and pods that a reader does not have: here it does not run, and
tests/e2e/test_admission.py and tests/e2e/agents/test_recording.py show that this is what it prints.
`@ STEP` is for such a test alone.

The same programs give the same bytes: commands run in a copy of `demo/`, with a fixed day, identity and size, and how
long they took does not count; the tape decides how long things are shown. The SVG has no script, no font and no link.
Without animation (an option of the reader's system, a printer) it is the last screen.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
LARGEST = 100_000
"""Bytes of an SVG: it is loaded with a page of text."""
ENVIRONMENT = {
    "CI": "1",  # no line that shows progress: whether it comes depends on the machine
    "TERM": "xterm-256color",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "SOURCE_DATE_EPOCH": "1795348800",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_PAGER": "cat",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2026-11-22T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-22T12:00:00Z",
}

KEY, THINK, LINE, LEAST, END = 0.045, 0.4, 0.16, 1.2, 8.0
"""Seconds: a key, before an output, to read a line of it, to read the shortest one, and the last screen."""

CELL, ROW, FONT, MARGIN, BAR = 8.4, 18, 14, 14, 30
"""Pixels: a cell's width, a row's height, the size of the text, the frame, and the bar with the title."""

_TOKEN = re.compile(
    r"\x1b\[([0-9;]*)m|\x1b\[K|(\r?\n)|(\x1b.?|[\x00-\x08\x0b-\x1f\x7f])|([^\x00-\x08\x0a-\x1f\x7f]+)"
)
_COLOURS = {
    31: "r",
    32: "g",
    33: "y",
    34: "b",
    35: "m",
    36: "c",
    90: "d",
    91: "r",
    92: "g",
    93: "y",
    94: "b",
    95: "m",
    96: "c",
}


@dataclass(frozen=True)
class Tape:
    """What is played."""

    name: str
    title: str
    about: str
    columns: int
    rows: int
    steps: tuple[tuple[str, str, str], ...]
    """(sign, rest of the line, what it printed elsewhere)."""


@dataclass(frozen=True)
class Run:
    """A piece of a row in one style: letters of `_COLOURS`, `B` for bold, `D` for dim."""

    text: str
    style: str = ""


@dataclass
class Film:
    """The rows that are shown, and when."""

    clock: float = 0.6
    rows: list[tuple[float, tuple[Run, ...]]] = field(default_factory=list)
    """(second in which it appears, its pieces)."""
    typed: list[tuple[int, float, float, int, int]] = field(default_factory=list)
    """(row, first second, the second after, cells before, cells of the text)."""


def main(arguments: Sequence[str]) -> int:
    """Record tapes; all of them if none is named."""
    into = HERE
    names = list(arguments)
    if names[:1] == ["--into"]:
        into, names = Path(names[1]), names[2:]
    for path in map(Path, names) if names else sorted(HERE.glob("*.tape")):
        tape = read(path)
        picture = into / f"{tape.name}.svg"
        text = draw(tape, play(tape))
        if len(text.encode()) > LARGEST:
            sys.exit(f"{picture}: {len(text.encode()):,} bytes, more than {LARGEST:,}: show less")
        picture.write_text(text, encoding="utf-8")
        print(picture)
    return 0


def read(path: Path) -> Tape:
    """Read a tape."""
    head: dict[str, str] = {}
    steps: list[tuple[str, str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        key, colon, value = line.partition(": ")
        if not steps and colon and key in {"title", "about", "size"}:
            head[key] = value
        elif line[0] in "%$!#~@" and line[1:2] == " ":
            steps.append((line[0], line[2:], ""))
        elif steps and line[:2] == "= " and steps[-1][0] in "$!":
            sign, command, printed = steps[-1]
            steps[-1] = sign, command, f"{printed}{line[2:]}\n"
        else:
            sys.exit(f"{path}: {line!r} is no step of a tape")
    columns, rows = map(int, head["size"].split("x"))
    return Tape(path.stem, head["title"], head["about"], columns, rows, tuple(steps))


def play(tape: Tape) -> Film:
    """Run a tape in a copy of the demo; return what it showed."""
    film = Film()
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        shutil.copytree(HERE / "demo", folder, dirs_exist_ok=True)
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        environment = {**ENVIRONMENT, "PATH": path, "HOME": folder}
        for sign, text, printed in tape.steps:
            if sign in "~@":
                film.clock += float(text) if sign == "~" else 0
                continue
            if sign != "%":
                _type(film, tape, sign, text)
            if sign != "#":
                output, code = (
                    (printed, int(sign == "!")) if printed else run(text, folder, environment, tape)
                )
                if (code != 0) != (sign == "!"):
                    sys.exit(f"{tape.name}: `{text}` ended with {code}:\n{output}")
                if sign != "%":
                    _show(film, tape, output)
    film.rows.append((film.clock, (Run("$", "g"),)))
    return film


def _type(film: Film, tape: Tape, sign: str, text: str) -> None:
    prompt = "#" if sign == "#" else "$"
    runs = (Run(f"# {text}", "D"),) if sign == "#" else (Run("$", "g"), Run(f" {text}", "B"))
    rows = list(wrapped(runs, tape.columns))
    for number, row in enumerate(rows):
        before = len(prompt) + 1 if number == 0 else 0
        cells = sum(width(run.text) for run in row) - before
        start, film.clock = film.clock, film.clock + cells * KEY
        film.typed.append((len(film.rows), start, film.clock, before, cells))
        film.rows.append((start, row))
    film.clock += THINK if sign != "#" else LEAST


def _show(film: Film, tape: Tape, output: str) -> None:
    rows = [row for line in lines(output) for row in wrapped(line, tape.columns)]
    film.rows += [(film.clock, row) for row in rows]
    film.clock += max(LEAST, LINE * len(rows))


def run(command: str, folder: str, environment: Mapping[str, str], tape: Tape) -> tuple[str, int]:
    """Run a command of a shell on a terminal of its own; return what it printed, and how it ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", tape.rows, tape.columns, 0, 0))
    done = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # Linux: nobody has the other end any more
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode(), done.wait()


def lines(output: str) -> Iterator[tuple[Run, ...]]:
    """Yield the lines of an output as styled pieces. What acts on a terminal in any other way is refused."""
    row: list[Run] = []
    colour = weight = ""
    for token in _TOKEN.finditer(output.expandtabs()):
        codes, end, control, text = token.groups()
        if control:
            sys.exit(
                f"the output has {control!r}, which is not drawn: {output[max(0, token.start() - 60) : token.end()]!r}"
            )
        if codes is not None:
            for code in map(int, codes.split(";") if codes else ["0"]):
                colour = "" if code in {0, 39} else _COLOURS.get(code, colour)
                weight = {0: "", 1: "B", 2: "D", 22: ""}.get(code, weight)
        elif end:
            yield tuple(row)
            row = []
        elif text:
            row.append(Run(text, colour + weight))
    if row:
        yield tuple(row)


def width(text: str) -> int:
    """Return the number of cells of a text."""
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text
    )


def wrapped(runs: Sequence[Run], columns: int) -> Iterator[tuple[Run, ...]]:
    """Yield the rows that a line takes on the terminal: at least one."""
    row: list[Run] = []
    used = 0
    for run in runs:
        text = run.text
        while used + width(text) > columns:
            cut = columns - used
            row.append(Run(text[:cut], run.style))
            yield tuple(row)
            row, used, text = [], 0, text[cut:]
        row.append(Run(text, run.style))
        used += width(text)
    yield tuple(row)


STYLE = """\
svg{--bg:#fbfbfa;--bar:#ececea;--fg:#24292f;--d:#6e7781;--r:#b3261e;--g:#1a7f37;--y:#8a5a00;--b:#0550ae;--m:#8250df;--c:#0b6e78}
@media (prefers-color-scheme:dark){svg{--bg:#16191d;--bar:#22272e;--fg:#d8dee4;--d:#8b949e;--r:#ff8178;--g:#56c271;--y:#e3b341;--b:#79b8ff;--m:#d2a8ff;--c:#5ccfdb}}
text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--fg);white-space:pre}
.B{font-weight:700}.D,.d{fill:var(--d)}.r{fill:var(--r)}.g{fill:var(--g)}.y{fill:var(--y)}.b{fill:var(--b)}.m{fill:var(--m)}.c{fill:var(--c)}
.bg{fill:var(--bg)}.bar{fill:var(--bar)}.frame{fill:none;stroke:var(--d);stroke-opacity:.4}.k{display:none;pointer-events:none}.cursor{fill:var(--fg);opacity:.7}
"""


def draw(tape: Tape, film: Film) -> str:
    """Return the SVG of a film."""
    wide, high = round(tape.columns * CELL, 1), tape.rows * ROW
    all_wide, all_high = wide + 2 * MARGIN, high + BAR + 2 * MARGIN
    seconds = film.clock + END
    hidden = max(len(film.rows) - tape.rows, 0) * ROW
    times = sorted({at for at, _ in film.rows})
    body = [
        f'<g class="s" transform="translate(0 {-hidden})">',
        *(_row(number, runs, times.index(at)) for number, (at, runs) in enumerate(film.rows) if runs),
        *(_cover(number, *typed, wide) for number, typed in enumerate(film.typed)),
        "</g>",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {all_wide:g} {all_high}"',
            f'width="{all_wide:g}" height="{all_high}" role="img" aria-labelledby="t d" xml:space="preserve">',
            f'<title id="t">{escape(tape.title)}</title><desc id="d">{escape(tape.about)}</desc>',
            f"<style>{STYLE % FONT}{''.join(_motion(film, times, tape.rows, seconds))}</style>",
            f'<rect class="bg" width="{all_wide:g}" height="{all_high}" rx="8"/>',
            f'<path class="bar" d="M0 {BAR}V8a8 8 0 0 1 8-8h{all_wide - 16:g}a8 8 0 0 1 8 8v{BAR - 8}z"/>',
            f'<rect class="frame" x=".5" y=".5" width="{all_wide - 1:g}" height="{all_high - 1}" rx="8"/>',
            f'<text class="d" x="{all_wide / 2:g}" y="20" text-anchor="middle">{escape(tape.title)}</text>',
            f'<svg x="{MARGIN}" y="{BAR + MARGIN}" width="{wide}" height="{high}" overflow="hidden">',
            *body,
            "</svg></svg>\n",
        ]
    )


def _row(number: int, runs: Sequence[Run], time: int) -> str:
    pieces = [
        f'<tspan class="{" ".join(run.style)}">{escape(run.text)}</tspan>' if run.style else escape(run.text)
        for run in runs
    ]
    cells = sum(width(run.text) for run in runs)
    return f'<text class="a{time}" y="{number * ROW + FONT}" textLength="{cells * CELL:g}">{"".join(pieces)}</text>'


def _cover(number: int, row: int, start: float, end: float, before: int, cells: int, wide: float) -> str:  # noqa: ARG001 - of the tuple
    """Return what hides a typed row, and goes to the right as it is typed, with the cursor at its edge."""
    x, y = before * CELL, row * ROW
    return (
        f'<g class="k k{number}"><rect class="bg" x="{x:g}" y="{y}" width="{wide - x + CELL:g}" height="{ROW}"/>'
        f'<rect class="cursor" x="{x:g}" y="{y + 2}" width="{CELL - 1:g}" height="{ROW - 3}"/></g>'
    )


def _motion(film: Film, times: Sequence[float], rows: int, seconds: float) -> Iterator[str]:
    """Yield the animation. All of it repeats together; each step holds until the next one.

    It begins with the last screen, so that a reader sees the result at once.
    """

    def at(second: float) -> str:
        return f"{100 * second / seconds:.2f}%"

    yield "@media (prefers-reduced-motion:no-preference){.k{display:inline}"
    yield f'[class^="a"],.s,.k{{animation:{seconds:.1f}s step-end -{film.clock:.1f}s infinite}}\n'
    for number, second in enumerate(times):
        yield f".a{number}{{animation-name:a{number}}}@keyframes a{number}{{0%{{opacity:0}}{at(second)},to{{opacity:1}}}}\n"
    for number, (_, start, end, _, cells) in enumerate(film.typed):
        yield (
            f".k{number}{{animation-name:k{number}}}@keyframes k{number}{{0%{{opacity:0}}"
            f"{at(start)}{{opacity:1;transform:translateX(0);animation-timing-function:steps({max(cells, 1)})}}"
            f"{at(end)}{{opacity:1;transform:translateX({cells * CELL:g}px)}}{at(end + THINK)},to{{opacity:0}}}}\n"
        )
    yield ".s{animation-name:s}@keyframes s{0%{transform:translateY(0)}"
    last = 0
    for second in times:
        shown = sum(when <= second for when, _ in film.rows)
        if shown > rows and shown != last:
            yield f"{at(second)}{{transform:translateY({(rows - shown) * ROW}px)}}"
            last = shown
    yield f"to{{transform:translateY({min(rows - len(film.rows), 0) * ROW}px)}}}}}}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
