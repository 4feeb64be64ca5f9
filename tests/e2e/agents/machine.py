"""Machines of a network: namespaces of this kernel, each held by a process and gone with it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.processes import Program, until

NETWORK = "172.30.0"
"""Of all machines, a /24."""
NETWORK_6 = "fd30:"
"""The same of IPv6, a /64."""
HOST = f"{NETWORK}.1"
"""The address of the namespace that the tests run in: kube-apiserver and operator have it."""
BRIDGE = "fabric"


def lay_cables() -> None:
    """Make the bridge that all machines are connected to, and give the tests their address on it."""
    for command in (
        f"link add {BRIDGE} type bridge",
        f"addr add {HOST}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        "link set lo up",
    ):
        ran("ip", *command.split())


def remove_cables() -> None:
    """Remove the bridge."""
    ran("ip", "link", "del", BRIDGE)


def devices() -> set[str]:
    """Return the network devices of this namespace."""
    return {str(each["ifname"]) for each in json.loads(ran("ip", "-json", "link"))}


class Namespace:
    """A network namespace, and a mount namespace where `mounts` says what to mount there. It lives as long as its process."""

    def __init__(self, name: str, log: Path, mounts: str | None = None) -> None:
        """Make it, with loopback up.

        mounts: a script of bash that runs inside before anything else does.
        """
        self.name, self._log, self._mounts = name, log, mounts
        self._kinds = ["--net", *(["--mount"] if mounts is not None else [])]
        self.start()

    def start(self) -> None:
        """Start it, as it was the first time."""
        self._log.unlink(missing_ok=True)
        script = f"set -e; ip link set lo up; {self._mounts or ''}\necho up; exec sleep infinity"
        self.holder = Program(self._log, "unshare", *self._kinds, "bash", "-c", script)
        try:
            self.holder.until(
                lambda: self.holder.said().endswith("up\n"), f"the namespace of {self.name}", 300
            )
        except AssertionError:
            self.holder.stop()
            raise
        self._enter = ["nsenter", f"--target={self.pid}", *self._kinds, "--"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process that holds it."""
        return self.holder.process.pid

    def inside(self, *command: str) -> list[str]:
        """Return the command that runs another one inside."""
        return [*self._enter, *command]

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None, text: str | None = None
    ) -> str:
        """Run a command inside, and give what it prints. Fails if it fails."""
        return ran(*self.inside(*command), environment=environment, text=text)

    def reaches(self, *addresses: str) -> bool:
        """Tell whether each of these addresses answers a ping within four seconds: until an agent knows a new Pod, nobody reaches it."""
        ping = ("ping", "-c", "1", "-i", "0.2", "-w", "4")  # until the first answer
        return all(attempt(self.inside(*ping, each)).returncode == 0 for each in addresses)

    def end(self) -> None:
        """End it, with all devices in it."""
        self.holder.stop()


class Machine(Namespace):
    """A namespace with one interface, `eth0`, on the bridge."""

    def __init__(self, name: str, number: int, folder: Path, mounts: str | None = None) -> None:
        """Start it; its address ends with `number`."""
        self.address, self.address_6 = f"{NETWORK}.{number}", f"{NETWORK_6}:{number}"
        self.mac = f"02:00:00:00:00:{number:02x}"
        self._port = f"port-{number}"
        super().__init__(name, folder / f"machine-{name}.log", mounts)

    def start(self) -> None:
        """Start it, and connect it to the bridge."""
        super().start()
        ends = f"{self._port} type veth peer name eth0 address {self.mac} netns {self.pid}"
        ran("ip", "link", "add", *ends.split())
        ran("ip", "link", "set", self._port, "master", BRIDGE, "up")
        for command in (
            f"addr add {self.address}/24 dev eth0",
            f"addr add {self.address_6}/64 dev eth0 nodad",
            "link set eth0 up",
            f"route add default via {HOST}",
        ):
            self.run("ip", *command.split())

    def end(self) -> None:
        """End it; its interface goes with its namespace, which the kernel removes some time later."""
        super().end()
        ran("ip", "link", "del", self._port, check=False)
        until(lambda: self._port not in devices(), f"the interface of {self.name} is gone")


def ran(
    *command: str,
    environment: Mapping[str, str] | None = None,
    text: str | None = None,
    check: bool = True,
) -> str:
    """Run a command to its end, and give what it prints to stdout; fail if it fails, unless told not to."""
    done = attempt(command, environment=environment, text=text)
    assert done.returncode == 0 or not check, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def attempt(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever comes of it. From any thread."""
    return subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        input=text or "",
        capture_output=True,
        text=True,
        check=False,
    )
