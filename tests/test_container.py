"""The Containerfile: what it promises, its steps in a scratch folder, and the image where a builder is there (`make container`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pipelines import Repository

ROOT = Path(__file__).parents[1]
ASKED = os.environ.get("IPAMC_CONTAINER", "")
"""Anything, where the network and some minutes may be used: `make container` says so."""
asked = pytest.mark.skipif(not ASKED, reason="installs packages and may build an image: run make container")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, each on one line."""
    lines = [line for line in (ROOT / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word
    ]


def stage(name: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a stage."""
    here = False
    for word, rest in instructions():
        if word == "FROM":
            here = rest.endswith(f" AS {name}")
        elif here:
            yield word, rest


def test_it_takes_nothing_that_is_not_named_by_a_hash_or_signed() -> None:
    text = "\n".join(rest for _, rest in instructions())
    assert not re.search(r"\b(curl|wget)\b|https?://", text)
    assert not [rest for word, rest in instructions() if word == "ADD"]
    installs = re.findall(r"pip install [^&]*", text)
    assert len(installs) == 2
    assert all(
        "--require-hashes" in each or "--no-index --" in each or "--no-index /" in each for each in installs
    )
    bases = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG" and "IMAGE=" in rest)
    assert all(
        re.fullmatch(r"docker\.io/library/[a-z]+:[0-9a-z.-]*trixie[a-z-]*", each) for each in bases.values()
    )
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {
        f"${{{name}}}" for name in bases
    }
    sums = (ROOT / "tools/container/go.sum").read_text()
    assert "k8s.io/kubernetes v1." in sums
    assert "sigs.k8s.io/kustomize/kustomize/v5 v5." in sums


def test_it_runs_as_a_user_without_rights_and_says_what_it_is() -> None:
    words = dict(instructions())
    assert re.fullmatch(r"[1-9][0-9]{3,}:[1-9][0-9]{3,}", words["USER"])
    labels = dict(re.findall(r'org\.opencontainers\.image\.([a-z.]+)="([^"]*)"', words["LABEL"]))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels["title"] == project["name"]
    assert labels["licenses"] == project["license"]
    assert labels.keys() >= {"description", "version", "revision", "base.name"}


def test_what_it_copies_is_there_and_in_the_context() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines  # nothing else: no .git, no secret of a working folder
    sources = {
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert {f"!{source.rstrip('/')}" for source in sources} == {
        line for line in lines if line.startswith("!")
    }
    assert all((ROOT / source).exists() for source in sources if not source.startswith("dist/"))


def wheel(folder: Path) -> str:
    """Build the wheel as the first lines of the Containerfile say; return its version."""
    command = [
        str(ROOT / ".venv/bin/pip"),
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    (found,) = folder.glob("ipamc-*.whl")
    return found.name.split("-")[1]


@asked
def test_its_steps_make_an_ipamc_that_runs(tmp_path: Path) -> None:
    wheels, made = tmp_path / "wheels", tmp_path / "ipamc"
    version = wheel(wheels)
    shutil.copy(ROOT / "templates/ci/requirements.txt", wheels)
    steps = [rest for word, rest in stage("ipamc") if word == "RUN" and "apt-get" not in rest]
    assert len(steps) == 2
    for step in steps:
        script = step.replace("/opt/ipamc", str(made)).replace("/wheels", str(wheels))
        done = subprocess.run(
            ["sh", "-euc", script],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "WHEEL_SHA256": ""},
        )
        assert done.returncode == 0, done.stdout + done.stderr
    wrong = steps[0].replace("/wheels", str(wheels))
    assert subprocess.run(
        ["sh", "-euc", wrong], check=False, capture_output=True, env={**os.environ, "WHEEL_SHA256": "a1" * 32}
    ).returncode
    said = subprocess.run([str(made / "bin/ipamc"), "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"ipamc {version}\n"
    assert not (made / "bin/pip").exists()


def builder() -> list[str]:
    """Return the command that builds an image here; nothing where no builder has the base images, and may not load them."""
    bases = [rest.partition("=")[2] for word, rest in instructions() if word == "ARG" and "IMAGE=" in rest]
    for program in ("docker", "podman", "buildah"):
        if not shutil.which(program):
            continue
        for ask in (["inspect", "--type", "image"], ["pull", "--quiet"]):
            commands = [[program, *ask, base] for base in bases]
            if not any(
                subprocess.run(each, capture_output=True, check=False).returncode for each in commands
            ):
                return [program, "bud" if program == "buildah" else "build"]
    return []


@asked
def test_the_image_compiles_a_repository_as_its_user(tmp_path: Path) -> None:
    command = builder()
    if not command:
        pytest.skip("no docker, podman or buildah here that has the base images: only the steps are tested")
    (ROOT / "dist").mkdir(exist_ok=True)
    for old in (ROOT / "dist").glob("ipamc-*.whl"):
        old.unlink()
    version = wheel(ROOT / "dist")
    image = "localhost/ipamc:test"
    more = os.environ.get("IPAMC_CONTAINER_OPTIONS", "").split()
    subprocess.run(
        [
            *command,
            *more,
            "--file",
            "Containerfile",
            "--tag",
            image,
            "--build-arg",
            f"VERSION={version}",
            ".",
        ],
        cwd=ROOT,
        check=True,
    )
    repository = Repository(tmp_path)
    for path in (repository.folder, *repository.folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o077)  # GitLab's runner gives a job's folder to everybody
    script = "ipamc --version && kubectl version --client -o json && kustomize version && git log --format=%s && ipamc compile --locked --check && id -u"
    if command[0] == "buildah":
        made = subprocess.run(
            ["buildah", "from", image], capture_output=True, text=True, check=True
        ).stdout.strip()
        try:
            run = [
                "buildah",
                "run",
                "--volume",
                f"{repository.folder}:/work",
                made,
                "--",
                "sh",
                "-euc",
                script,
            ]
            done = subprocess.run(run, capture_output=True, text=True, check=False)
        finally:
            subprocess.run(["buildah", "rm", made], check=True, capture_output=True)
    else:
        run = [
            command[0],
            "run",
            "--rm",
            "--read-only",
            "--tmpfs=/tmp",
            "--volume",
            f"{repository.folder}:/work",
            image,
            "sh",
            "-euc",
            script,
        ]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *rest = done.stdout.splitlines()
    assert first == f"ipamc {version}"
    assert json.loads("\n".join(rest[: rest.index("}") + 1]))["clientVersion"]["major"] == "1"
    assert rest[rest.index("}") + 1].startswith("v5.")
    assert done.stdout.splitlines()[-1] == "65532"
