"""Keep what a release makes of the examples: later versions must not move anything in it.

    python -m tools.release.keep 0.1.0

Copies the inputs and locks of clusters/ to tests/upgrades/0.1.0/. tests/release/test_upgrades.py compiles every kept cluster with
its lock: the lock stays as it is, byte for byte.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def keep(version: str, into: Path = ROOT / "tests/upgrades") -> list[str]:
    """Copy every example but what it renders to, except for the index of a space; return their names."""
    names = []
    for folder in sorted(path.parent for path in (ROOT / "clusters").glob("*/ipam.lock")):
        target = into / version / folder.name
        shutil.copytree(folder, target, ignore=_rendered)
        names.append(folder.name)
    return names


def _rendered(folder: str, files: list[str]) -> list[str]:
    return [name for name in files if Path(folder).name == "rendered" and name != "index.jsonl"]


if __name__ == "__main__":
    print("\n".join(keep(sys.argv[1].removeprefix("v"))))
