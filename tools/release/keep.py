"""Keep what a release makes of the examples: later versions must not move anything in it.

    python -m tools.release.keep 0.1.0

Writes the inputs and locks of clusters/ into tests/upgrades/0.1.0.txtar. tests/release/test_upgrades.py compiles every kept
cluster with its lock: the lock stays as it is, byte for byte.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)


def keep(version: str, into: Path = ROOT / "tests/upgrades") -> list[str]:
    """Write every example but what it renders to, except for the index of a space; return their names."""
    folders = sorted(path.parent for path in (ROOT / "clusters").glob("*/ipam.lock"))
    text = ""
    for path in (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()):
        name = path.relative_to(ROOT / "clusters")
        if "rendered" not in name.parts or path.name == "index.jsonl":
            text += f"-- {name.as_posix()} --\n{path.read_text(encoding='utf-8')}"
    with (into / f"{version}.txtar").open("x", encoding="utf-8") as file:
        file.write(text)
    return [folder.name for folder in folders]


def unpack(archive: Path, into: Path) -> list[Path]:
    """Write the files of an archive below a folder; return the folders of its clusters, and of its spaces."""
    _, *files = _FILE.split(archive.read_text(encoding="utf-8"))
    for name, text in zip(files[::2], files[1::2], strict=True):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_text(text, encoding="utf-8")
    return sorted(path.parent for path in into.glob("*/ipam.lock"))


if __name__ == "__main__":
    print("\n".join(keep(sys.argv[1].removeprefix("v"))))
