"""The servers of these tests: nobody else can reach them, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.api import Api
from tests.e2e.operator import Operator
from tests.e2e.processes import until

LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, ::1 and ::ffff:127.0.0.1, as /proc/net/tcp and tcp6 have them."""


def test_only_loopback_is_listened_on(api: Api, operator: Operator) -> None:
    with operator.running({"ipam": "kubernetes", "enable-ipv4": "true", "enable-ipv6": "false"}) as program:
        every = [set(each.listens()) for each in (*api.programs, program)]
    assert all(every)
    assert set.union(*every) <= LOOPBACK


def test_a_program_ends_with_its_test(tmp_path: Path) -> None:
    """Also where nobody had the time to end it."""
    code = f"""
import time
from pathlib import Path
from tests.e2e.processes import Program
print(Program(Path({str(tmp_path)!r}, "log"), "sleep", "600").process.pid, flush=True)
time.sleep(600)
"""
    starter = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert starter.stdout
    child = int(starter.stdout.readline())
    until(lambda: "sleep" in Path(f"/proc/{child}/comm").read_text(), "it is on its leash")
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    until(lambda: not alive(child), "the program is gone")


def alive(pid: int) -> bool:
    """Tell whether a process is there, and no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
