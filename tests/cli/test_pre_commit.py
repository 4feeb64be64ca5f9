"""`.pre-commit-hooks.yaml`: pre-commit takes it, and what it runs does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.cli import main
from tests.cli.test_cli import CLUSTER

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS: dict[str, dict[str, Any]] = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text())}


def entry(hook: str) -> list[str]:
    """Return the arguments of a hook's command, which is the script that the package installs."""
    command: str = HOOKS[hook]["entry"]
    name, *arguments = command.split()
    assert f'\n{name} = "ipamc.__main__:main"\n' in (ROOT / "pyproject.toml").read_text()
    return arguments


def test_pre_commit_takes_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", MANIFEST],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_hooks() -> None:
    assert list(HOOKS) == ["ipamc-compile", "ipamc-check"]
    for hook in HOOKS.values():
        assert (hook["language"], hook["pass_filenames"], hook["require_serial"]) == ("python", False, True)


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("clusters/lab/ippools.yaml", True),
        ("clusters/lab/nodes.json", True),
        ("clusters/lab/ipam.lock", True),
        ("clusters/lab/rendered/nodes/000/nodes.yaml", True),
        ("README.md", False),
        ("docs/clusters/lab.md", False),
    ],
)
def test_a_hook_runs_where_a_cluster_changed(hook: str, path: str, *, wanted: bool) -> None:
    assert bool(re.search(HOOKS[hook]["files"], path)) == wanted


def test_what_one_hook_writes_the_other_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = tmp_path / "clusters/lab/cluster.yaml"
    inputs.parent.mkdir(parents=True)
    inputs.write_text(CLUSTER.replace("NAME", "lab"))
    assert main(entry("ipamc-check")) == 1
    assert list(tmp_path.rglob("*.*")) == [inputs]
    assert main(entry("ipamc-compile")) == 0
    assert main(entry("ipamc-check")) == 0
    inputs.write_text(inputs.read_text().replace("{name: n2}", "{name: n2}, {name: n3}"))
    assert main(entry("ipamc-check")) == 1
