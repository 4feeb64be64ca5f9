"""An installation of ipamc in a folder, run as a process of its own; and one in which a cluster goes wrong in a way that no input brings about."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = "import sys\nfrom ipamc.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
"""What an installer writes for the entry point."""
BEGIN = "    log.add(inputs.passed_over)\n"
"""Where a cluster is read, for all verbs."""


_INSTALLED: list[Path] = []
"""The folders that a test has installed ipamc in."""


def end_all() -> None:
    """Kill what still runs of the installations of a test, and of their workers: a test that failed left it busy."""
    ours = {f"PYTHONPATH={folder}".encode() for folder in _INSTALLED}
    for process in Path("/proc").glob("[0-9]*") if ours else ():
        with suppress(OSError):
            if not ours.isdisjoint((process / "environ").read_bytes().split(b"\0")):
                os.kill(int(process.name), signal.SIGKILL)
    _INSTALLED.clear()


@dataclass(frozen=True, slots=True)
class Installed:
    """ipamc below a folder, and its command in `bin/`."""

    folder: Path

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(self.folder / "bin/ipamc")]

    def start(
        self, *arguments: str, cwd: Path, command: list[str] | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        given = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.Popen(
            [*(command or self.command), *arguments],
            cwd=cwd,
            env={**given, "GIT_CONFIG_GLOBAL": os.devnull, "PYTHONPATH": str(self.folder), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *arguments: str, cwd: Path, command: list[str] | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, cwd=cwd, command=command, **environment)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(self.command, process.returncode, out, err)


def _copy(source: str, target: str) -> None:
    """Copy a module with its time, so that what Python compiled of it is valid: a process needs 0.2 s of processor time then, and not 0.5 s."""
    if source.endswith(".pyc"):
        Path(target).symlink_to(source)  # Python replaces it if the module is altered
    else:
        shutil.copy2(source, target)


def install(folder: Path, red: str = "") -> Installed:
    """Install ipamc in a folder; where the cluster `red` is read, this code runs first."""
    _INSTALLED.append(folder)
    package = folder / "ipamc"
    shutil.copytree(ROOT / "compiler" / "ipamc", package, copy_function=_copy)
    for kind in ("page", "rules", "schemas", "templates", "words"):
        (package / kind).symlink_to(ROOT / kind)
    if red:
        pipeline = package / "pipeline.py"
        text = pipeline.read_text()
        assert text.count(BEGIN) == 1
        wrong = f"    import os, signal, sys, time\n    if inputs.name == 'red':\n        {red}\n"
        pipeline.write_text(text.replace(BEGIN, wrong + BEGIN))
    (folder / "bin").mkdir()
    (folder / "bin/ipamc").write_text(SCRIPT)
    return Installed(folder)
