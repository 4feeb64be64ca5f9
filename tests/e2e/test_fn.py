"""`ipamc fn` in the real kustomize: what it builds with the function is what `ipamc compile` renders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.examples import ALONE

ROOT = Path(__file__).parents[2]
FUNCTION = """\
apiVersion: ipamc/v1alpha1
kind: Function
metadata:
  name: ipamc
  annotations:
    config.kubernetes.io/function: |
      exec: {path: ipamc, args: [fn]}
"""


KUSTOMIZE = os.environ.get("KUSTOMIZE_FUNCTIONS", "kustomize build").split()


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KUSTOMIZE, *options, folder],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )


def objects(text: str) -> list[str]:
    return sorted(json.dumps(document, sort_keys=True) for document in yaml.safe_load_all(text) if document)


@pytest.fixture(params=ALONE, ids=lambda folder: folder.name)
def package(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Return an example and a kustomization that compiles it: its inputs, its lock, what it rendered last."""
    example: Path = request.param
    names = []
    for path in sorted(example.glob("*.yaml")):
        for index, document in enumerate(filter(None, yaml.safe_load_all(path.read_text()))):
            document.setdefault("metadata", {}).setdefault(
                "name", f"{path.stem}-{index}"
            )  # kustomize wants one
            names.append(f"{path.stem}-{index}.yaml")
            (tmp_path / names[-1]).write_text(yaml.safe_dump(document, sort_keys=False))
    rendered = sorted((example / "rendered").rglob("*.yaml"))
    files = ["ipam.lock"]
    (tmp_path / "ipam.lock").write_text((example / "ipam.lock").read_text())
    for path in rendered:
        key = path.relative_to(example / "rendered").as_posix().replace("/", ".")
        (tmp_path / f"was.{key}").write_text(path.read_text())
        files.append(f"{key}=was.{key}")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": names,
        "configMapGenerator": [
            {
                "name": "ipamc-state",
                "files": files,
                "options": {
                    "disableNameSuffixHash": True,
                    "annotations": {"config.kubernetes.io/local-config": "true"},
                },
            }
        ],
        "transformers": ["function.yaml"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization, sort_keys=False))
    (tmp_path / "function.yaml").write_text(FUNCTION)
    return example, tmp_path


@pytest.mark.deep("annotations", "dual-stack", "pinned")
def test_kustomize_builds_what_was_rendered(package: tuple[Path, Path]) -> None:
    example, folder = package
    wanted = build(example / "rendered")
    built = build(folder, "--enable-alpha-plugins", "--enable-exec")
    assert built.returncode == 0, built.stderr
    assert objects(built.stdout) == objects(wanted.stdout)


@pytest.mark.deep("pinned")
def test_a_stale_lock_builds_nothing(package: tuple[Path, Path]) -> None:
    _, folder = package
    lock = folder / "ipam.lock"
    lock.write_text("".join(lock.read_text().splitlines(keepends=True)[:-1]))
    built = build(folder, "--enable-alpha-plugins", "--enable-exec")
    assert built.returncode != 0
    assert "error[IPC0413]: the lock is stale" in built.stderr
    assert built.stdout == ""
