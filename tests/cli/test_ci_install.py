"""How the jobs of a pipeline get ipamc: by each way that `ipamc ci github|gitlab|requirements` knows, as the real pip takes it."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ipamc import __version__
from tests.cli import test_ci
from tests.cli.test_ci import FILES, child
from tests.support.pipelines import HASH, ROOT, Repository, bash, installing, workflow

made, repository = test_ci.made, test_ci.repository

WHEEL = f"ipamc-{__version__}-py3-none-any.whl"
COMMIT = "c0" * 20
SOURCE = f"https://git.example.org/ipamc.git@{COMMIT}"
IMAGE = f"registry.example.org/ipamc@sha256:{HASH}"


def wheel(path: Path) -> Path:
    """Write a wheel that is called as ipamc's, with a module and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = f"ipamc-{__version__}.dist-info"
    files = {
        "ipamc_played.py": b"",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: ipamc\nVersion: {__version__}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]))
    return path


def own(text: str) -> str:
    """Return ipamc's own lines of a requirements file: the others need the network."""
    return next(entry for entry in re.split(r"\n(?! )", text) if entry.startswith(("ipamc", "./")))


def pip(repository: Repository, requirements: str, code: int = 0) -> str:
    """Install ipamc's own lines as the jobs do, without what it needs."""
    repository.write("own.txt", own(requirements))
    target = repository.folder.parent / "target"
    shutil.rmtree(target, ignore_errors=True)
    said = repository.run(
        *(sys.executable, "-I", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"),
        *("--require-hashes", "--no-deps", "--disable-pip-version-check", "--target", str(target)),
        *("-r", "own.txt"),
        code=code,
    )
    assert (target / "ipamc_played.py").exists() == (code == 0)
    return said


@pytest.mark.deep
@pytest.mark.parametrize("forge", FILES)
def test_a_wheel_in_the_repository_is_installed_with_its_hash_checked(
    repository: Repository, forge: str
) -> None:
    file = wheel(repository.folder / "ci" / WHEEL)
    said = repository.run("ipamc", "ci", forge, "--wheel", f"ci/{WHEEL}")
    assert "missing" not in said
    text = (repository.folder / f".{forge}/ipamc-requirements.txt").read_text()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert own(text) == f"./ci/{WHEEL} \\\n    --hash=sha256:{digest}"
    assert all("--hash" in entry for entry in text.replace("\\\n", "").splitlines() if entry[0] != "#")
    pip(repository, text)
    with file.open("ab") as damaged:
        damaged.write(b"x")
    assert "DO NOT MATCH THE HASHES" in pip(repository, text, code=1)


@pytest.mark.parametrize("forge", FILES)
def test_the_wheel_in_ci_is_taken_where_no_way_was_chosen(repository: Repository, forge: str) -> None:
    path = repository.folder / f".{forge}/ipamc-requirements.txt"
    path.unlink()
    file = wheel(repository.folder / "ci" / WHEEL)
    repository.run("ipamc", "ci", forge)
    assert own(path.read_text()).startswith(f"./ci/{WHEEL} ")
    assert hashlib.sha256(file.read_bytes()).hexdigest() in path.read_text()
    repository.write(".gitignore", "*.whl\n")
    assert "git ignores this file" in " ".join(repository.run("ipamc", "ci", forge, code=64).split())


def test_a_wheel_of_an_artifact_store_is_installed_with_its_hash_checked(
    repository: Repository, tmp_path: Path
) -> None:
    file = wheel(tmp_path / "store" / WHEEL)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    url = f"https://store.example.org/{WHEEL}"
    command = ("ipamc", "ci", "requirements", "--wheel", url)
    text = repository.run(*command, "--sha256", digest)
    assert f"ipamc @ {url} \\\n    --hash=sha256:{digest}\n" in text
    pip(repository, text.replace("https://store.example.org", f"file://{file.parent}"))
    assert "--wheel URL needs --sha256 HASH" in repository.run(*command, code=64)


@pytest.mark.deep
def test_an_index_has_all_that_jobs_install(repository: Repository, tmp_path: Path) -> None:
    file = wheel(tmp_path / "index/ipamc" / WHEEL)
    (file.parent / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    url = "https://index.example.org/simple"
    repository.run("ipamc", "ci", "github", "--index", url, "--sha256", digest)
    text = (repository.folder / ".github/ipamc-requirements.txt").read_text()
    assert f"\n--index-url {url}\n" in text
    repository.environment["PIP_INDEX_URL"] = f"file://{tmp_path}/index"
    pip(repository, text)
    with file.open("ab") as damaged:
        damaged.write(b"x")
    assert "DO NOT MATCH THE HASHES" in pip(repository, text, code=1)


def test_an_index_of_gitlab_takes_the_token_of_the_job_and_github_has_none(repository: Repository) -> None:
    url = "https://gitlab-ci-token:${CI_JOB_TOKEN}@gitlab.example.org/api/v4/projects/7/packages/pypi/simple"
    repository.run("ipamc", "ci", "gitlab", "--index", url, "--sha256", HASH)
    assert f"\n--index-url {url}\n" in (repository.folder / ".gitlab/ipamc-requirements.txt").read_text()
    said = repository.run("ipamc", "ci", "github", "--index", url, code=64)
    assert "jobs of a pull request have no secret" in said


def test_a_commit_is_built_after_what_builds_it_was_installed_by_hash(repository: Repository) -> None:
    text = repository.run("ipamc", "ci", "requirements", "--git", SOURCE)
    assert f"#   pip install --no-index --no-deps --no-build-isolation 'git+{SOURCE}'\n" in text
    entries = [entry for entry in text.replace("\\\n", "").splitlines() if entry[0] != "#"]
    names = [entry.partition("==")[0] for entry in entries]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert {"hatchling", "hatch-vcs", "click"} <= set(names)
    assert len(set(names)) == len(names)  # pip takes no package twice
    assert "ipamc" not in names
    line = 'pip install --quiet --no-index --no-deps --no-build-isolation "$IPAMC_SOURCE"'
    for forge, file in FILES.items():
        repository.run("ipamc", "ci", forge, "--git", SOURCE)
        written = (repository.folder / file).read_text()
        found = workflow(written).get("variables", {})
        if forge == "github":
            written, found = (installing(repository)[name] for name in ("run", "env"))
        assert found["IPAMC_SOURCE"] == f"git+{SOURCE}"
        assert written.count(line) == written.count("--require-hashes -r") > 0
    assert line not in str(child(repository, "compile"))
    repository.environment["IPAMC_SOURCE"] = f"git+{SOURCE}"  # the child is as the parent's job is
    found = child(repository, "compile")
    assert found["variables"]["IPAMC_SOURCE"] == f"git+{SOURCE}"
    assert line in found[".ready"][0]


@pytest.mark.deep
def test_pip_builds_a_commit_without_an_index(repository: Repository, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "compiler/ipamc").mkdir(parents=True)
    (project / "compiler/ipamc/__init__.py").write_text("")
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    for name in tool["build"]["targets"]["wheel"]["force-include"]:
        (project / name).mkdir()
        (project / name / "here").write_text("")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, project)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "one")):
        repository.run("git", "-C", str(project), *command)
    repository.run("git", "-C", str(project), "tag", "v9.8.7")
    commit = repository.run("git", "-C", str(project), "rev-parse", "HEAD").strip()
    repository.run("ipamc", "ci", "github", "--git", f"file://{project}@{commit}")
    step = installing(repository)
    (line,) = [line for line in step["run"].splitlines() if "IPAMC_SOURCE" in line]
    target = tmp_path / "target"
    line = line.replace("pip install", f"{sys.executable} -m pip install --target {target}")
    repository.run(*bash(line), **step["env"])
    (info,) = target.glob("ipamc-*.dist-info")
    assert info.name == "ipamc-9.8.7.dist-info"


def test_jobs_in_an_image_install_nothing(repository: Repository) -> None:
    for forge, file in FILES.items():
        shutil.rmtree(repository.folder / f".{forge}", ignore_errors=True)
        repository.run("ipamc", "ci", forge, "--image", IMAGE)
        found = workflow((repository.folder / file).read_text())
        assert not (repository.folder / f".{forge}/ipamc-requirements.txt").exists()
        if forge == "github":
            assert "pip" not in installing(repository)["run"]
            jobs = {name: job for name, job in found["jobs"].items() if "ipamc " in str(job["steps"])}
            assert {job["container"]["image"] for job in jobs.values()} == {IMAGE}
            assert found["jobs"].keys() - jobs.keys() == {"done"}
        else:
            assert found["variables"]["IPAMC_IMAGE"] == IMAGE
    repository.environment["IPAMC_IMAGE"] = IMAGE
    assert child(repository, "compile")["variables"]["IPAMC_IMAGE"] == IMAGE


def test_an_image_with_another_ipamc_fails_with_one_line(repository: Repository, tmp_path: Path) -> None:
    repository.run("ipamc", "ci", "github", "--image", IMAGE)
    script = installing(repository)["run"]
    variables: dict[str, Any] = {"GITHUB_ENV": str(tmp_path / "env"), "RUNNER_TEMP": "/t"}
    repository.run(*bash(script), **variables, IPAMC_VERSION=__version__)
    assert (tmp_path / "env").read_text() == "IPAMC_TEMP=/t\n"
    said = repository.run(*bash(script), **variables, IPAMC_VERSION="9.9", code=1)
    assert said.startswith(f"error: the image has ipamc {__version__}, but ipamc 9.9 wrote the workflow")


REFUSED = {
    ("--wheel", f"ci/{WHEEL}", "--git", SOURCE): "--wheel and --git are different ways to get ipamc",
    ("--git", SOURCE, "--image", IMAGE): "--git and --image are different ways",
    ("--git", SOURCE, "--sha256", HASH): "omit --sha256",
    ("--image", IMAGE, "--index", "https://example.org/simple"): "omit --index",
    ("--git", "https://git.example.org/ipamc.git@main"): "a branch or a tag can move",
    ("--git", f"https://user:pass@git.example.org/ipamc.git@{COMMIT}"): "without a password",
    ("--image", "registry.example.org/ipamc:1.0"): "a tag can move: give NAME@sha256:DIGEST",
    ("--index", "https://user:pass@example.org/simple"): "a password in the URL gets into git",
    ("--index", "example.org/simple"): "is not the URL of an index",
    ("--wheel", "ci/other-1.0-py3-none-any.whl"): f"is not {WHEEL}",
    ("--wheel", f"/srv/{WHEEL}"): "copy the wheel into it",
    ("--wheel", f"nowhere/{WHEEL}"): "no such file",
    ("--wheel", f"ci/{WHEEL}", "--sha256", HASH): "which does not match --sha256",
    ("--wheel", f"dist/{WHEEL}"): "git ignores this file",
}


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_what_cannot_work_is_refused_with_the_way_out(
    repository: Repository, options: tuple[str, ...]
) -> None:
    for folder in ("ci", "dist"):
        wheel(repository.folder / folder / WHEEL)
    repository.write(".gitignore", "dist/\n")
    before = repository.run("git", "status", "--porcelain")
    assert REFUSED[options] in " ".join(repository.run("ipamc", "ci", "github", *options, code=64).split())
    assert repository.run("git", "status", "--porcelain") == before


def test_the_build_is_pinned_as_pyproject_asks() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    names = {re.split("[<>=]", entry)[0] for entry in needed}
    pinned = {
        line.partition("==")[0]
        for line in (ROOT / "templates/ci/requirements-build.txt").read_text().splitlines()
        if not line.startswith(" ")
    }
    assert names <= pinned
