"""What a long run shows on a terminal: nothing in the first second, then its phases, and nothing of it stays."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from ipamc.cli import terminal
from ipamc.cli.terminal import TICK, StatusLine, fitted
from ipamc.model.limits import STATUS_DELAY
from ipamc.model.progress import (
    Progress,
    measure,
    phase,
    reached,
    reading,
    share,
    track,
    track_clusters,
    watched,
)
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.yaml import yaml_documents
from tests.cli.test_cli import CLUSTER
from tests.support.altered import install

# What is counted.


def test_phases_and_counts() -> None:
    progress = Progress(counts=True)
    seen = []
    with watched(progress):
        reading("nodes.yaml")
        seen.append(str(progress))
        seen += [str(progress) for _ in share(range(3))]
        phase("checking")
        seen.append(str(progress))
        placing = track(range(100_000), "placing", "nodes")
        seen += [str(progress) for number in placing if number == 41_200]
        seen.append(str(progress))
        reading("dump.json", 200)
        reached(50)
        seen.append(str(progress))
    assert seen == [
        "reading nodes.yaml",
        "reading nodes.yaml 0 %",
        "reading nodes.yaml 33 %",
        "reading nodes.yaml 66 %",
        "checking",
        "placing 41,200 of 100,000 nodes",
        "placing 100,000 of 100,000 nodes",
        "reading dump.json 25 %",
    ]


def test_clusters_are_counted_beside_their_phases() -> None:
    progress = Progress(counts=True)
    seen = []
    with watched(progress):
        phase("compiling")
        for number in track_clusters(range(100)):
            if number == 37:
                seen.append(str(progress))
                reading("nodes.yaml")
                measure(200, lambda: 122)
                seen.append(str(progress))
    assert seen == ["37 of 100 clusters: compiling", "37 of 100 clusters: reading nodes.yaml 61 %"]


def test_what_is_not_read_as_an_input_is_no_share_of_a_phase() -> None:
    """Placing parses what was rendered, by the same modules."""
    progress = Progress(counts=True)
    with watched(progress):
        phase("placing")
        assert list(share([1, 2])) == [1, 2]
        measure(10, lambda: 5)
    assert str(progress) == "placing"


def test_the_readers_tell_how_far_they_are() -> None:
    progress = Progress(counts=True)
    with watched(progress):
        reading("a.json")
        items = b", ".join(b'{"a": %d}' % number for number in range(10))
        (document,) = json_documents("a.json", b'{"kind": "NodeList", "items": [%s]}' % items)
        shown = [str(progress) for _ in document.value["items"]]
        assert shown == [f"reading a.json {10 * number} %" for number in range(10)]
        reading("a.yaml")
        texts = "---\n".join(f"a: {number}\n" for number in range(10))
        shown = [str(progress) for _ in yaml_documents("a.yaml", texts)]
        percents = [int(text.split()[-2]) for text in shown]
        assert percents == sorted(percents)
        assert percents[0] < 15
        assert percents[-1] > 90


def test_where_nobody_watches_the_items_are_the_items() -> None:
    items = [1, 2, 3]
    assert track(items, "placing", "nodes") is items
    assert share(items) is items
    assert track_clusters(items) is items
    with watched(Progress()):  # a run that is no terminal's: only the phase is known, for an interrupt
        assert track(items, "placing", "nodes") is items
        assert share(items) is items


# When it is drawn, by a clock that is none.


class Clock:
    """Lets a run last so many looks; records how long each wait was, and what the screen has by then."""

    def __init__(self, looks: int, texts: Iterable[str] = ()) -> None:
        self.looks = looks
        self.texts = iter(texts)
        self.progress = Progress()
        self.waits: list[float] = []
        self.written: list[str] = []
        self.line = StatusLine(self.written.append, lambda: 40)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.progress.now.text = next(self.texts, self.progress.now.text)
        return len(self.waits) > self.looks

    def run(self) -> list[str]:
        self.line.follow(self.progress, self.wait)
        return self.written


ERASE = "\r\x1b[K"


def test_nothing_is_shown_in_the_first_second() -> None:
    clock = Clock(0, ["reading"])
    assert clock.run() == []
    assert clock.waits == [STATUS_DELAY] == [1.0]


def test_it_is_drawn_some_ten_times_a_second_and_erased() -> None:
    clock = Clock(3, ["reading", "placing", "writing", "done"])
    assert clock.run() == [f"{ERASE}reading", f"{ERASE}placing", f"{ERASE}writing", ERASE]
    assert clock.waits == [STATUS_DELAY, TICK, TICK, TICK]
    assert TICK >= 0.1


def test_what_stays_the_same_is_not_drawn_again() -> None:
    assert Clock(9, ["reading"]).run() == [f"{ERASE}reading", ERASE]


def test_the_next_part_of_a_long_run_does_not_wait_again() -> None:
    clock = Clock(2, ["reading"])
    clock.run()
    clock.waits, clock.looks = [], 1
    clock.run()
    assert clock.waits == [TICK, TICK]


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("placing 41,200 of 100,000", 25, "placing 41,200 of 100,000"),
        ("placing 41,200 of 100,000", 10, "placing 4…"),
        ("読み込み", 8, "読み込み"),
        ("読み込み", 7, "読み込…"),
        ("読み込み", 6, "読み…"),
        ("a\x1b[31mb\n", 40, "a\\x1b[31mb\\n"),
        ("reading", 0, ""),
        ("reading", -3, ""),
    ],
)
def test_it_is_cut_to_the_width_of_the_terminal(text: str, columns: int, shown: str) -> None:
    assert fitted(text, columns) == shown


def test_room_is_left_for_what_a_terminal_echoes() -> None:
    clock = Clock(1, ["x" * 100])
    assert clock.run()[0] == f"{ERASE}{'x' * 36}…"


def test_whatever_else_is_printed_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for print_, where in ((terminal.say, 1), (terminal.show, 0), (terminal.show_json, 0)):
        written: list[str] = []
        line = StatusLine(written.append, lambda: 40)
        monkeypatch.setattr(terminal, "_LINE", line)
        line.draw("reading")
        print_("{}")
        assert written == [f"{ERASE}reading", ERASE]
        assert capsys.readouterr()[where].strip() == "{}"


# On a real one.

SLOW = """from ipamc.model.progress import phase; phase('waiting for ' + 'x' * 200)
        while os.path.exists('until it is seen'): time.sleep(0.02)
        time.sleep(float(os.environ.get('SECONDS', '0')))"""


class Terminal:
    """A command on a terminal of our own."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str], columns: int) -> None:
        self.marker = cwd / "until it is seen"
        self.begun = time.monotonic()
        self.seen: list[tuple[float, bytes]] = []
        """When something came, in seconds from the start, and what."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.handle = ours
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def read(self) -> bytes:
        """Return everything that came, at the end of the process."""
        while select.select([self.handle], [], [], 120)[0]:
            try:
                data = os.read(self.handle, 65536)
            except OSError:  # the other end is closed
                break
            self.seen.append((time.monotonic() - self.begun, data))
            if b"waiting for" in data:
                self.marker.unlink(missing_ok=True)
        self.marker.unlink(missing_ok=True)
        os.close(self.handle)
        assert self.process.stdout
        assert self.process.stdout.read() == b""
        self.process.stdout.close()
        self.process.wait()
        return b"".join(data for _, data in self.seen)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path, dict[str, str]]:
    """Return the command that compiles a cluster, until a terminal shows its phase or for $SECONDS; its folder and its environment."""
    top = tmp_path_factory.mktemp("slow")
    installed = install(top / "installed", red=SLOW)
    (top / "work/clusters/red").mkdir(parents=True)
    (top / "work/clusters/red/cluster.yaml").write_text(CLUSTER.replace("NAME", "red"))
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "NO_COLOR", "CI"))
    }
    environment = {**kept, "PYTHONPATH": str(installed.folder), "TERM": "xterm"}
    return [*installed.command, "compile"], top / "work", environment


def shown(slow: tuple[list[str], Path, dict[str, str]], *, columns: int = 50, **more: str) -> Terminal:
    """Compile on a terminal, from nothing; without $SECONDS until it shows the phase."""
    command, cwd, environment = slow
    if "SECONDS" not in more:
        (cwd / "until it is seen").touch()
    shutil.rmtree(cwd / "clusters/red/rendered", ignore_errors=True)
    (cwd / "clusters/red/ipam.lock").unlink(missing_ok=True)
    return Terminal(command, cwd, {**environment, **more}, columns)


@pytest.mark.parametrize("columns", [50, 200])
def test_a_terminal_shows_phases_and_keeps_none(
    slow: tuple[list[str], Path, dict[str, str]], columns: int
) -> None:
    terminal = shown(slow, columns=columns)
    drawn, _, rest = terminal.read().rpartition(ERASE.encode())
    assert terminal.process.returncode == 0
    assert terminal.seen[0][0] > 1
    assert b"\n" not in drawn
    lines = [line.decode() for line in drawn.split(ERASE.encode()) if line]
    wanted = f"waiting for {'x' * 200}"[: columns - 4] + "…"
    assert wanted in lines
    assert all(len(line) <= columns - 3 for line in lines)
    assert rest.startswith(b"red: 2 nodes, 2 blocks added")
    assert b"\x1b" not in rest


def test_a_dumb_terminal_and_one_of_ci_show_none(slow: tuple[list[str], Path, dict[str, str]]) -> None:
    for name, text in (("TERM", "dumb"), ("CI", "true")):
        said = shown(slow, SECONDS="2.5", **{name: text}).read()  # type: ignore[arg-type]  # none of them is `columns`
        assert said.startswith(b"red: 2 nodes, 2 blocks added")
        assert said.count(b"\n") == 1
        assert b"\x1b" not in said


def test_no_colour_is_about_colour(slow: tuple[list[str], Path, dict[str, str]]) -> None:
    assert b"waiting for" in shown(slow, NO_COLOR="1").read()


def test_a_file_has_none(slow: tuple[list[str], Path, dict[str, str]], tmp_path: Path) -> None:
    command, cwd, environment = slow
    with (tmp_path / "err").open("wb") as file:
        subprocess.run(command, cwd=cwd, env={**environment, "SECONDS": "2.5"}, stderr=file, check=True)
    assert (tmp_path / "err").read_text().startswith("red: 2 nodes")
    assert "\x1b" not in (tmp_path / "err").read_text()


def test_an_interrupt_from_the_terminal_is_told_below_it(
    slow: tuple[list[str], Path, dict[str, str]],
) -> None:
    command, cwd, environment = slow
    shutil.rmtree(cwd / "clusters/red/rendered", ignore_errors=True)
    (cwd / "clusters/red/ipam.lock").unlink(missing_ok=True)
    before = sorted(cwd.rglob("*"))
    pid, handle = pty.fork()
    if not pid:
        os.chdir(cwd)
        os.execve(sys.executable, command, {**environment, "SECONDS": "600"})  # noqa: S606 - as `command` says
    said = b""
    pressed = False
    while select.select([handle], [], [], 120)[0]:
        try:
            data = os.read(handle, 65536)
        except OSError:
            break
        said += data
        if b"waiting for" in said and not pressed:
            pressed = bool(os.write(handle, b"\x03"))
    _, status = os.waitpid(pid, 0)
    after = sorted(cwd.rglob("*"))
    os.close(handle)
    assert os.waitstatus_to_exitcode(status) == 130
    rest = said.rpartition(ERASE.encode())[2].decode()
    wanted = r"\s*interrupted while waiting for x{200}: every file is whole; run again: ipamc compile\r\n"
    assert re.fullmatch(wanted, rest), rest
    assert after == before
