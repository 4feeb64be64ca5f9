"""What kubectl prints is what the benchmarks give ipamc to read. No server is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import SERVERS
from tests.support import benchmarks

kubectl, running = benchmarks.module("kubectl"), benchmarks.module("running")


@pytest.mark.parametrize("style", ["json", "yaml"])
@pytest.mark.parametrize("number", [0, running.NOT_READY - 1])
def test_a_node_is_printed_as_by_kubectl(style: str, number: int, tmp_path: Path) -> None:
    program = next(str(folder / "kubectl") for folder in SERVERS if folder.name.startswith("kubernetes-"))
    node = running.node(number, 10)
    (tmp_path / "node.json").write_text(kubectl.one(node, "json"))
    same = f"rack={node['metadata']['labels']['rack']}"  # `label --local` reads and prints, and changes nothing here
    command = [
        program,
        "label",
        "--local",
        "--overwrite",
        "--show-managed-fields",
        "-f",
        "node.json",
        same,
        "-o",
        style,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert kubectl.one(node, style) == done.stdout
