"""`.ci/isolated`, in which real agents run: whatever its command leaves, and however it ends, nothing of it stays on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.processes import commands, until

ISOLATED = Path(__file__).parents[1] / ".ci/isolated"
SETTINGS = [Path(f"/proc/sys/kernel/{name}") for name in ("timer_migration", "unprivileged_bpf_disabled")]
SLEEP = f"sleep 98765.{os.getpid()}"
"""No other worker and no other checkout starts it."""
LEAVES = f"""
set -e
root=$(awk '$3 == "cgroup2" {{ print $2; exit }}' /proc/mounts)
mkdir "$root/$IPAMC_ISOLATED" "$root/$IPAMC_ISOLATED/node"
setsid --fork unshare --net {SLEEP}
for each in /proc/[0-9]*; do echo ${{each#/proc/}} >"$root/$IPAMC_ISOLATED/node/cgroup.procs"; done 2>/dev/null || true
ip link add left-1 type veth peer name left-2
mount -n -t tmpfs left /mnt
for setting in {" ".join(map(str, SETTINGS))}; do echo $((1 - $(cat $setting))) >$setting; done
echo "$root/$IPAMC_ISOLATED"
"""
"""A control group with processes in it, a process that detaches itself with a network namespace, devices, a mount, settings of the kernel."""


def unable() -> bool:
    """Tell whether this user or this kernel cannot make such namespaces: the script runs its command as it is then."""
    namespaces = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true")
    return (
        os.geteuid() != 0
        or "cgroup2" not in Path("/proc/mounts").read_text()
        or subprocess.run(namespaces, capture_output=True, check=False).returncode != 0
    )


pytestmark = pytest.mark.skipif(unable(), reason="it takes root, and a control group (v2) that it may divide")


def here() -> dict[str, object]:
    """Return what must be afterwards as it was before; of devices, mounts and processes those that the command makes."""
    return {
        "devices": sorted(Path("/sys/class/net").glob("left-*")),
        "mounts": [row for row in Path("/proc/mounts").read_text().splitlines() if row.startswith("left ")],
        "processes": [command for command in commands().values() if SLEEP in command],
        "settings": [each.read_text() for each in SETTINGS],
    }


@pytest.mark.parametrize(("end", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_nothing_is_left_however_the_command_ends(end: str, code: int) -> None:
    before = here()
    done = subprocess.run(
        [ISOLATED, "bash", "-c", LEAVES + end], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    assert not Path(done.stdout.strip()).exists()
    assert here() == before


def test_nothing_is_left_where_the_script_is_told_to_end() -> None:
    before = here()
    with subprocess.Popen(
        [ISOLATED, "bash", "-c", f"{LEAVES} {SLEEP}"], stdout=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout
        group = Path(script.stdout.readline().strip())
        assert group.exists()
        script.send_signal(signal.SIGTERM)
        script.wait(120)
    assert not group.exists()
    until(lambda: here() == before, "all is as it was before")


def test_what_a_killed_script_leaves_goes_with_the_next_run() -> None:
    before = here()
    with subprocess.Popen(
        [ISOLATED, "bash", "-c", f"{LEAVES} {SLEEP}"], stdout=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout
        group = Path(script.stdout.readline().strip())
        script.kill()
        script.wait(120)
    events = group / "cgroup.events"
    until(lambda: "populated 0" in events.read_text(), "the kernel ends what was inside")
    subprocess.run([ISOLATED, "true"], check=True, timeout=120)
    assert not group.exists()
    until(lambda: here() == before, "all is as it was before")
