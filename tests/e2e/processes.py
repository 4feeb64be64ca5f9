"""Programs that run while a test runs: started on loopback, ended by the test that started them, whatever comes of it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

LOOPBACK = "127.0.0.1"
_PORTS = itertools.count(os.getpid() * 997)
"""Each process begins elsewhere, so that two of them, which start servers at the same time, do not choose the same port."""


def free_port() -> int:
    """Return a TCP port that nobody listens on, below those that Linux gives to connections: none takes it before the server does."""
    while True:
        port = 10_000 + next(_PORTS) % 20_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


def until(holds: Callable[[], object], what: str, seconds: float = 90, pause: float = 0.1) -> None:
    """Wait until something holds; fail with `what` if it does not in so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not after {seconds:g} seconds"
        time.sleep(pause)


def commands() -> dict[int, str]:
    """Return the command line of each process by its number, joined by blanks; others start and end meanwhile. What has ended and waits for its parent has none."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended since it was listed, or is another user's
            if command := (folder / "cmdline").read_bytes():
                found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


class Program:
    """A running program. Its output goes to a file, so that a failure can show it."""

    def __init__(self, log: Path, *command: str, environment: Mapping[str, str] | None = None) -> None:
        """Start it. Where there is setpriv, the kernel ends it should we be killed ourselves; it also does so when the thread ends that started it."""
        leash = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*leash, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Tell whether it is still there."""
        return self.process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 10) -> None:
        """Send it a signal and wait for its end; kill it if that takes too long."""
        if self.running:
            self.process.send_signal(how)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def said(self) -> str:
        """Return all that it has printed so far."""
        return self.log.read_text(errors="replace")

    def until(self, holds: Callable[[], object], what: str, seconds: float = 90) -> None:
        """Wait until something holds; fail with the end of the program's output if it does not, or if the program ends before."""
        end = time.monotonic() + seconds
        while not holds():
            assert self.running, f"{what}: the program ended with {self.process.returncode}:\n{self.tail()}"
            assert time.monotonic() < end, f"{what}: not after {seconds:g} seconds:\n{self.tail()}"
            time.sleep(0.1)

    def tail(self, lines: int = 30) -> str:
        """Return the last lines that it printed."""
        return "\n".join(self.said().splitlines()[-lines:])

    def listens(self) -> Iterator[str]:
        """Return the addresses that it accepts connections on, as the kernel writes them: hexadecimal, in host order (proc(5), /proc/net/tcp)."""
        sockets = set()
        for each in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(OSError):  # it was closed since it was listed
                sockets.add(str(each.readlink()))
        for family in ("tcp", "tcp6"):
            for row in Path(f"/proc/{self.process.pid}/net/{family}").read_text().splitlines()[1:]:
                fields = row.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    yield fields[1].partition(":")[0]
