"""Write the software bill of materials of a wheel: what it brings when it is installed, as CycloneDX in JSON.

    python -m tools.release.sbom dist/ipamc-0.1.0-py3-none-any.whl

The file stands beside the wheel. It has no time and no serial number: of the same packages it has the same bytes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release.build import ROOT
from tools.release.smoke import run


def write(wheel: Path) -> Path:
    """Install a wheel with the newest of what it needs, and write what is there."""
    into = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        run(sys.executable, "-m", "venv", "--without-pip", str(venv))
        python = str(venv / "bin/python")
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", str(wheel))
        subprocess.run(
            [
                *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
                *("--pyproject", str(ROOT / "pyproject.toml"), "--output-format", "JSON"),
                *("--output-file", str(into), python),
            ],
            check=True,
        )
    return into


if __name__ == "__main__":
    print(write(Path(sys.argv[1]).resolve()))
