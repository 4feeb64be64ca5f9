"""Build wheel and sdist twice, in different surroundings, and compare them byte for byte.

    python -m tools.release.build [--into dist]

The second build has another folder, umask, time zone, locale, hash seed and file times. A wheel is also built out of
the sdist: it is the same again. `SHA256SUMS` names the hashes, as `sha256sum --check` reads them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHER = {"TZ": "Pacific/Chatham", "LC_ALL": "C", "PYTHONHASHSEED": "7"}


def main(arguments: list[str] | None = None) -> int:
    """Build, compare, and write into a folder."""
    parser = argparse.ArgumentParser(description="Build wheel and sdist, reproducibly.")
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    into: Path = parser.parse_args(arguments).into
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = reproduced(Path(folder))
        for path in found:
            shutil.copy(path, into)
    sums = "".join(
        f"{digest(path)}  {path.name}\n"
        for path in sorted(into.glob("ipamc-*"))
        if path.suffix in {".whl", ".gz"}
    )
    (into / "SHA256SUMS").write_text(sums)
    print(sums, end="")
    return 0


def reproduced(folder: Path) -> list[Path]:
    """Return wheel and sdist. Raises SystemExit where two builds differ."""
    first = built(copied(folder / "place"), folder / "first", {}, 0o022)
    second = built(copied(folder / "other" / "place"), folder / "second", OTHER, 0o027)
    with tarfile.open(next(path for path in first if path.suffix == ".gz")) as sdist:
        sdist.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    third = built(source, folder / "third", OTHER, 0o022, "wheel")
    for others in (second, third):
        for path in others:
            mine = folder / "first" / path.name
            if not mine.exists() or digest(mine) != digest(path):
                raise SystemExit(
                    f"error: two builds differ: {path.name} of {path.parent.name} has {digest(path)}, and the first {digest(mine) if mine.exists() else 'is not there'}"
                )
    return first


def copied(folder: Path) -> Path:
    """Return a clone with the work tree's files as they are. A build in the checkout itself would change the version of what is installed from there."""
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(folder)], check=True)
    for name in tracked(ROOT):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
            (folder / name).chmod((ROOT / name).stat().st_mode & 0o777)
        else:
            (folder / name).unlink(missing_ok=True)
    return folder


def built(source: Path, into: Path, environment: Mapping[str, str], mask: int, *targets: str) -> list[Path]:
    """Build in a folder; return what was built."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into)]
    command += [word for target in targets for word in ("--target", target)]
    done = subprocess.run(
        command,
        cwd=source,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        umask=mask,
    )
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)} in {source}:\n{done.stderr}")
    return sorted(into.iterdir())


def tracked(root: Path) -> list[str]:
    """Return the files that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, stdout=subprocess.PIPE)
    return [name.decode() for name in done.stdout.split(b"\0") if name]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
