"""Runs of ipamc as processes that are killed, stopped or refused before the n-th thing that they do to the disk.

This is a program: it imports ipamc once, and forks for each run that it is asked for, a line of JSON each. A fork is a real process with a
real signal, and starts in milliseconds. `tests.crash.runs` talks to it; nothing of the tests is imported here.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

import ipamc
from ipamc.cli import main
from ipamc.workspace.signals import stop_in_order

ROOT = Path(__file__).parents[2]
AUDITED = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
)
"""Events of Python before the system is asked; replace is a rename, unlink a remove."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NEEDS_SPACE = frozenset({"open", "write", "os.mkdir", "fsync"})
"""What a full disk refuses; it renames and removes."""
FULL = frozenset({"ENOSPC", "EDQUOT"})


class Events:
    """Counts what the process does to files below a folder, and acts before one of them."""

    def __init__(self, root: str, at: int, act: str, log: int, *, reads: bool) -> None:
        self.root, self.at, self.act, self.log, self.reads = root, at, act, log, reads
        self.number = 0
        self.pid = os.getpid()
        self.on = True

    def counts(self, path: object) -> bool:
        """Tell whether it is a file of the test: below the folder, or relative to a folder that is open."""
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        return bool(text) and (not text.startswith("/") or text.startswith(self.root))

    def event(self, kind: str, what: str, half: Callable[[], None] | None = None) -> None:
        """Record one; kill, stop or fail where it is its turn. `half` does a half of it first."""
        if not self.on or os.getpid() != self.pid:
            return
        number, self.number = self.number, self.number + 1
        self.on = False  # what we do here is not ipamc's
        os_write(self.log, f"{json.dumps([kind, what])}\n".encode())
        lasting = self.act in FULL or self.act == "EROFS"
        if self.at >= 0 and (number == self.at or (lasting and number > self.at)):
            if self.act in FULL and kind not in NEEDS_SPACE:
                self.on = True
                return
            if half and self.act != "stop" and self.act not in signal.Signals.__members__:
                half()
            if self.act == "kill":
                os.kill(self.pid, signal.SIGKILL)
            if self.act == "stop":
                os.kill(self.pid, signal.SIGSTOP)
            elif self.act in signal.Signals.__members__:
                self.on = True
                os.kill(self.pid, signal.Signals[self.act])
                time.sleep(0)  # here its handler raises, before the event
            else:
                self.on = True
                code = getattr(errno, self.act)
                raise OSError(code, os.strerror(code), what)
        self.on = True

    def audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Hear what Python is about to ask the system for."""
        if not self.on:
            return
        if name == "open":
            path, _, flags = arguments
            writes = bool(flags & WRITES)
            if (writes or self.reads) and self.counts(path):
                self.event("open" if writes else "read", os.fsdecode(path))
        elif name in AUDITED:
            if self.counts(arguments[0]):
                self.event(name, os.fsdecode(arguments[0]))
        elif name == "subprocess.Popen":
            self.event("run", str(arguments[1][:3]))
        elif name == "socket.connect":
            self.event("connect", str(arguments[1]))


os_write, os_fsync, io_open = os.write, os.fsync, io.open


class Written:
    """A file that is open for writing: each write is an event, of which a half may be done."""

    def __init__(self, file: IO[Any], path: str, events: Events) -> None:
        self._file, self._path, self._events = file, path, events

    def write(self, data: Any) -> int:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._events.event("write", self._path, half)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._file.__exit__(*problem)  # type: ignore[arg-type]  # as they came


def install(events: Events) -> None:
    """Let the events hear everything that the process does."""

    def opened(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        found = io_open(file, mode, *arguments, **named)
        path = path_of(file) if isinstance(file, int) else os.fsdecode(file)
        return Written(found, path, events) if events.counts(path) and set(mode) & set("wxa+") else found

    def fsync(handle: Any) -> None:
        events.event("fsync", "")
        os_fsync(handle)

    def write(handle: int, data: Any) -> int:
        if events.counts(path := path_of(handle)):
            events.event("write", path, lambda: void(os_write(handle, bytes(data)[: len(data) // 2])))
        return os_write(handle, data)

    io.open = builtins.open = opened
    os.fsync = fsync  # type: ignore[assignment]  # a handle is enough
    os.write = write
    sys.addaudithook(events.audit)


def path_of(handle: int) -> str:
    """Return the path of the file that a handle has; "" for our own output, a pipe to git, or where the system does not tell."""
    if handle <= 2 or not stat.S_ISREG(os.fstat(handle).st_mode):
        return ""
    try:
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    except OSError:
        return ""


def void(_: object) -> None:
    """Take a result that nobody needs."""


def run(task: dict[str, Any]) -> None:
    """Be the run: in its folder, with its environment and its output in files. Never returns."""
    log = os.open(task["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    said = os.open(task["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.close(said)
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["environment"])
    os.sched_getaffinity = lambda _: {0}  # no further processes
    stop_in_order()
    events = Events(task["root"], task["at"], task["act"], log, reads=task["reads"])
    install(events)
    code = 70
    try:
        code = main(task["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        events.on = False
        os._exit(code)


def serve() -> None:
    """Do what each line on stdin asks for, and answer with a line: how the process ended, or that it stopped."""
    for module in pkgutil.walk_packages(ipamc.__path__, "ipamc."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with contextlib.redirect_stderr(io.StringIO()):
        main(
            ["compile", "--check", str(ROOT / "clusters/zones")]
        )  # what the first compile keeps for others is made once
    gc.freeze()  # a fork that collects garbage would copy all that is imported
    for line in sys.stdin:
        task = json.loads(line)
        if "resume" in task:
            pid = task["resume"]
            os.kill(pid, signal.SIGCONT)
        else:
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                run(task)
        _, status = os.waitpid(pid, os.WUNTRACED)
        answer = {"pid": pid, "stopped": os.WIFSTOPPED(status)}
        if not answer["stopped"]:
            answer["code"] = os.waitstatus_to_exitcode(status)
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
