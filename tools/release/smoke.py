"""Install what was built into an environment of its own, and try it: the clusters compile to what is committed.

    python -m tools.release.smoke dist/ipamc-0.1.0-py3-none-any.whl [--python python3.13] [--resolution lowest|newest]

`lowest` installs the oldest version of each dependency that pyproject.toml allows for that Python, `newest` the newest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Try one file."""
    parser = argparse.ArgumentParser(description="Install a wheel or an sdist, and try it.")
    parser.add_argument("built", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--resolution", choices=("newest", "lowest"), default="newest")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        print(tried(given.built.resolve(), given.python, given.resolution, Path(folder)))
    return 0


def tried(built: Path, python: str, resolution: str, folder: Path) -> str:
    """Install a file and run it; return what is installed. Raises SystemExit where something is wrong."""
    run(python, "-m", "venv", str(folder / "venv"))
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check"]
    constraints = folder / "constraints.txt"
    version = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    constraints.write_text("".join(f"{pin}\n" for pin in lowest(version)) if resolution == "lowest" else "")
    run(*pip, "install", "--quiet", "--constraint", str(constraints), str(built))
    run(*pip, "check")
    ipamc = str(folder / "venv/bin/ipamc")
    place = folder / "net"
    shutil.copytree(ROOT / "clusters", place / "clusters")
    run("git", "init", "--quiet", str(place))
    run(ipamc, "compile", "--check", "--locked", cwd=place)
    run(ipamc, "init", "lab", cwd=place)
    (place / "clusters/lab/nodes.yaml").write_text(
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: n1}\n"
    )
    run(ipamc, "compile", "lab", cwd=place)
    said = json.loads(run(ipamc, "which", "n1", "--output", "json", cwd=place))
    if "10.244.0.0/24" not in json.dumps(said):
        raise SystemExit(f"error: ipamc which n1 says {said}")
    run(ipamc, "report", "--write", "page.html", cwd=place)
    run(ipamc, "explain", "IPC0207", cwd=place)
    run(ipamc, "plan", "--output", "html", cwd=place)
    return f"Python {version}, {resolution}: {' '.join(run(*pip, 'freeze', '--local').split())}"


def lowest(python: str) -> list[str]:
    """Return a pin of each dependency to the highest lower bound that holds for a Python (`3.14`)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, Version] = {}
    for each in map(Requirement, project["dependencies"]):
        if each.marker is None or each.marker.evaluate({"python_version": python}):
            (bound,) = (Version(part.version) for part in each.specifier if part.operator == ">=")
            found[each.name] = max(bound, found.get(each.name, bound))
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def run(*command: str, cwd: Path | None = None) -> str:
    """Run a program; return its stdout. Raises SystemExit if it fails."""
    environment = {key: value for key, value in os.environ.items() if not re.match("PYTHON|VIRTUAL_ENV", key)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, env=environment)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
