"""`make demo`: compiles a copy of every cluster, shows the tables, and builds the output with the real kustomize, counting objects in and out.

The checkout is left as it was. KUSTOMIZE_BUILD is the command that builds a kustomization when a folder is appended (`.ci/kustomize` prints it).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).parents[1]
MANY = 1000
"""Objects from which on shards are built one by one: kustomize takes quadratic time."""


def main() -> int:
    """Run the demo; 1 if anything failed or an object was lost."""
    with tempfile.TemporaryDirectory(prefix="ipamc-demo-") as copy:
        shutil.copytree(TOP / "clusters", Path(copy, "clusters"))
        commands = (["compile"], ["show"], ["compile", "--check"])
        if any([ipamc(copy, *arguments) for arguments in commands]):
            return 1
        roots = Path(copy, "clusters").glob("*/rendered/kustomization.yaml")  # an address space has none
        return int(any([build(root.parent) for root in sorted(roots)]))


def ipamc(folder: str, *arguments: str) -> int:
    """Run ipamc in a folder, as a user would."""
    print(f"\n$ ipamc {shlex.join(arguments)}", flush=True)
    start = time.perf_counter()
    code = subprocess.run([sys.executable, "-m", "ipamc", *arguments], cwd=folder, check=False).returncode
    print(f"  exit code {code}, {time.perf_counter() - start:.2f} s", flush=True)
    return code


def build(rendered: Path) -> bool:
    """Build a cluster's output; tell whether kustomize failed or gave other objects than the files hold."""
    files = list(reachable(rendered))
    put_in = sum(count(file.read_text()) for file in files)
    roots = [rendered] if put_in <= MANY else sorted({file.parent for file in files})
    took_out = 0
    print(f"\n$ {os.environ['KUSTOMIZE_BUILD']} {rendered.relative_to(rendered.parents[2])}", flush=True)
    start = time.perf_counter()
    for root in roots:
        done = subprocess.run(
            [*shlex.split(os.environ["KUSTOMIZE_BUILD"]), root], check=False, capture_output=True, text=True
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return True
        took_out += count(done.stdout)
    seconds = time.perf_counter() - start
    verdict = "none lost" if put_in == took_out else "OBJECTS WERE LOST OR MADE UP"
    print(
        f"  objects in: {put_in} (files: {len(files)}), objects out: {took_out} (builds: {len(roots)}), {verdict}, {seconds:.2f} s"
    )
    return put_in != took_out


def reachable(folder: Path) -> Iterator[Path]:
    """Give the files that a kustomization's `resources` lead to."""
    for name in load(Path(folder, "kustomization.yaml").read_text())[0].get("resources", []):
        path = folder / name
        if path.is_dir():
            yield from reachable(path)
        else:
            yield path


def count(text: str) -> int:
    """Count the objects of a YAML stream."""
    return sum(document is not None for document in load(text))


def load(text: str) -> list[Any]:
    """Read a YAML stream."""
    return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


if __name__ == "__main__":
    sys.exit(main())
