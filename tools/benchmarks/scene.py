"""A cluster of one size and one kind of inventory, and the runs of ipamc that are measured on it.

first    no lock and no rendered files: every node gets a block, everything is written
full     as on a commit that changes much: lock and rendered files of every second node are there; the others get
         blocks, and lock and all files are written
again    nothing changed since
more     one node more
plan     a comment for a pull request, against the commit before: one node joins, and is not compiled yet
--check, why, show, which: over the compiled cluster

The nodes of a full dump run, and ipamc refuses nodes that run and are not in the lock (IPC0434). So the cluster is
first compiled with a slim inventory of the same nodes and one more. In `full` the dump takes its place: that node
left, so the lock is written, and the files of all nodes are, because they were removed. `plan` shows that node's
leave; there is no `first`, and no `more`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from inputs import ZONES, start, write_inventory
from measure import Cost, git, ipamc
from running import name_of

RUNS = ("full", "again", "--check", "why", "show", "which", "plan", "more", "first")
"""In the order in which they run."""
Stamps = dict[str, tuple[int, int]]


def half(count: int) -> list[int]:
    """Return every second node, as many of each zone and of each size."""
    return [number for number in range(count) if (number + number // ZONES + number // (4 * ZONES)) % 2 == 0]


class Scene:
    """A cluster in a folder of its own."""

    def __init__(self, top: Path, kind: str, count: int, runs: Iterable[str] = ("full",)) -> None:
        """Make everything that the runs start from. `runs` are some of RUNS."""
        self.top, self.kind, self.count = top, kind, count
        self.folder, self.kept = start(top), top / "kept"
        self.kept.mkdir()
        self.touched: dict[str, list[str]] = {}
        """The files that `again` and `more` wrote, by path below the cluster."""
        self._present = ""
        self._is_dump = kind.startswith("full")
        wanted = set(runs) - ({"first", "more"} if self._is_dump else set())
        self.runs = [name for name in RUNS if name in wanted]
        if self._is_dump:
            self._start_dump()
        else:
            self._start_slim()
        if "plan" in wanted and not self._is_dump:
            self.run("full")
            self._commit()

    def _start_slim(self) -> None:
        write_inventory(self.folder, self.kind, half(self.count))
        ipamc(self.top, "compile")
        self._keep("half")
        for name, number in (("all", self.count), ("more", self.count + 1)):
            (self.kept / name).mkdir()
            write_inventory(self.kept / name, self.kind, range(number))

    def _start_dump(self) -> None:
        write_inventory(self.folder, f"slim {self.kind.split()[1]}", range(self.count + 1), uids=True)
        ipamc(self.top, "compile")
        self._commit()
        shutil.rmtree(self.folder / "rendered" / "ciliumnodes")
        self._keep("half")
        (self.kept / "all").mkdir()
        write_inventory(self.kept / "all", self.kind, range(self.count))

    def _commit(self) -> None:
        git(self.top, "init", "-q")
        git(self.top, "add", "clusters")
        git(self.top, "commit", "-q", "-m", "compiled")

    def _keep(self, name: str) -> None:
        shutil.copytree(self.folder / "rendered", self.kept / name / "rendered")
        shutil.copy(self.folder / "ipam.lock", self.kept / name)

    def _compiled(self, name: str | None) -> None:
        """Take lock and rendered files away, or back to those that were kept."""
        shutil.rmtree(self.folder / "rendered", ignore_errors=True)
        (self.folder / "ipam.lock").unlink(missing_ok=True)
        if name:
            shutil.copytree(self.kept / name / "rendered", self.folder / "rendered")
            shutil.copy(self.kept / name / "ipam.lock", self.folder)

    def _inventory(self, name: str) -> None:
        """Put an inventory that was kept into the cluster, unless it is there."""
        if name != self._present:
            for old in self.folder.glob("nodes.*"):
                old.unlink()
            for path in (self.kept / name).glob("nodes.*"):
                shutil.copy(path, self.folder)
            self._present = name

    def contestants(self) -> dict[str, Callable[[], Cost]]:
        """Return the runs by name, in an order in which each finds the compiled cluster that it needs."""
        return {name: partial(self.run, name) for name in RUNS if name in self.runs}

    def run(self, name: str) -> Cost:
        """Make what a run starts from, and measure it. Only `first` and `full` need no compiled cluster."""
        words = self.set_up(name)
        if name not in {"again", "more"}:
            return ipamc(self.top, *words)
        before = self._stamps()
        cost = ipamc(self.top, *words)
        after = self._stamps()
        changed = (path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        self.touched[name] = sorted(changed)
        return cost

    def set_up(self, name: str) -> tuple[str, ...]:
        """Make what a run starts from; return the arguments of ipamc."""
        joins = name == "more" or (name == "plan" and not self._is_dump)
        self._inventory("more" if joins else "all")
        if name in {"first", "full"}:
            self._compiled("half" if name == "full" else None)
        return {
            "--check": ("compile", "--check"),
            "plan": ("plan", "--base", "HEAD", "--output", "markdown"),
            "why": ("why", name_of(self.count // 2), "bench"),
            "show": ("show", "bench"),
            "which": ("which", self._address(), "bench") if name == "which" else (),
        }.get(name, ("compile",))

    def reads_inventory(self, name: str) -> bool:
        """Tell whether a run needs the inventory: it fails where a node of it has an invalid name."""
        arguments = self.set_up(name)
        (path,) = self.folder.glob("nodes.*")
        text = path.read_bytes()
        path.write_bytes(text.replace(name_of(0).encode(), b"Not_a_name"))
        failed = ipamc(self.top, *arguments, codes=None).code != 0
        path.write_bytes(text)
        return failed

    def _address(self) -> str:
        """Return an address of the last block of the lock."""
        last = (self.folder / "ipam.lock").read_text().splitlines()[-1]
        block: str = json.loads(last)["block"]
        return block.partition("/")[0]

    def _stamps(self) -> Stamps:
        """Return inode and time of each file that ipamc writes."""
        found = {}
        for path in (self.folder / "ipam.lock", *(self.folder / "rendered").rglob("*")):
            if path.is_file():
                status = path.stat()
                found[path.relative_to(self.folder).as_posix()] = (status.st_ino, status.st_mtime_ns)
        return found
