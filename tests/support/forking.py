"""ipamc for shells of tests: each command is a copy of a process that has imported everything, so that it starts in milliseconds.

`serve()` starts that process, once for all tests of a process, and returns a folder with a program `ipamc` to put on a PATH. The program
hands over its arguments, folder, environment and streams, waits, and ends with the same code.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import marshal
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

_CLIENT = """\
#!{python} -IS
import _socket, marshal, posix, sys
call = _socket.socket(_socket.AF_UNIX)
call.connect({path!r})
said = marshal.dumps([sys.argv[1:], posix.getcwd(), posix.environ])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
call.sendmsg([len(said).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
call.sendall(said)
code = call.recv(1)
sys.exit(code[0] if code else 70)
"""
"""It imports what is compiled into Python, which takes 10 ms: `json` and `socket` would take 20 more."""


@functools.cache
def serve() -> Path:
    """Start the process; return the folder of the program. It ends with the tests, and removes the folder."""
    folder = Path(tempfile.mkdtemp(prefix="ipamc-"))
    path = folder / "socket"
    ready, waits = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking", str(path), str(waits)],
        pass_fds=[waits],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,  # closed when this process ends, however it ends
    )
    os.close(waits)
    with os.fdopen(ready, "rb") as told:
        assert told.read() == b"ready", "the process did not start"
    program = folder / "ipamc"
    program.write_text(_CLIENT.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    atexit.register(process.communicate)  # closes its stdin, and waits
    return folder


def _main(path: str, ready: int) -> None:
    import ipamc
    from ipamc.cli import VERBS, Verbs, main

    for verb in VERBS:
        Verbs().get_command(None, verb)  # type: ignore[arg-type]  # the context is not looked at
    for module in pkgutil.walk_packages(ipamc.__path__, "ipamc."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with contextlib.redirect_stderr(io.StringIO()):
        main(["compile", "--check", "clusters/zones"])  # what the first compile keeps for others is made once
    gc.freeze()  # a fork that collects garbage would copy all that is imported
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(64)
        os.write(ready, b"ready")
        os.close(ready)
        while 0 not in select.select([0, door.fileno()], [], [])[0]:  # stdin ends with whoever started it
            call, _ = door.accept()
            if os.fork():
                call.close()
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
                continue
            door.close()
            _answer(call, main)
    shutil.rmtree(Path(path).parent)


def _answer(call: socket.socket, main: object) -> None:
    """Be the command; tell its exit code, and end."""
    head, streams, _, _ = socket.recv_fds(call, 4, 3)
    size, said = int.from_bytes(head, "big"), b""
    while len(said) < size:
        said += call.recv(size - len(said))
    words, folder, environment = marshal.loads(said)  # noqa: S302 - of our own program
    worker = os.fork()  # whoever ends it, the code is told
    if worker:
        _, status = os.waitpid(worker, 0)
        call.sendall(bytes([os.waitstatus_to_exitcode(status) & 255]))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    call.close()
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    sys.argv = ["ipamc", *words]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    code = 70
    try:
        code = main(words)  # type: ignore[operator]
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
