"""The files of clusters, on the disk and in a commit. The only module of the checker that reads any."""

import os
import re
import subprocess
from io import BytesIO
from pathlib import Path

from .verify import Finding

_FILE = r"[^/]+/(?:ipam\.lock|rendered/{}.+|(?!rendered/)(?:[^./][^/]*/)*[^./][^/]*\.(?:ya?ml|json))"
_IN_HEAD, _IN_BASE = (re.compile("(?s)" + _FILE.format(part)).fullmatch for part in ("", "cilium/"))


def disk(folder: str, cluster: str = "") -> dict[str, bytes]:
    """Return files of clusters in a folder, or of the `cluster/` that it is. A link out is a finding."""
    every = [Path(at, name) for at, folders, names in os.walk(folder) for name in (*folders, *names)]
    files = {cluster + path.relative_to(folder).as_posix(): path for path in every}
    for path in (each for each in every if each.is_symlink()):
        if path.is_dir() or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise Finding("a link to another folder", path.as_posix())
    return {name: path.read_bytes() for name, path in files.items() if _IN_HEAD(name) and path.is_file()}


def commit(folder: str, revision: str, cluster: str = "") -> dict[str, bytes]:
    """Return the same of a commit; of rendered files only those that may have lists. Raises a finding."""

    def git(*words: str, given: str = "") -> bytes:
        command = ("git", "--no-replace-objects", "-c", "core.fsmonitor=false", "-C", folder, *words)
        done = subprocess.run(command, input=given.encode(), capture_output=True, check=False)  # noqa: S603 - git
        if done.returncode:
            raise Finding(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}", folder)
        return done.stdout

    rows = git("ls-tree", "-rz", "--end-of-options", revision).decode(errors="replace").split("\0")
    parts = (row.partition("\t") for row in rows if " blob " in row)
    blobs = {name: row.split()[2] for row, _, path in parts if _IN_BASE(name := cluster + path)}
    text = BytesIO(git("cat-file", "--batch", given="".join(f"{each}\n" for each in blobs.values())))
    return {path: text.read(int(text.readline().split()[-1]) + 1)[:-1] for path in blobs}
