"""Clusters whose folders have links, pipes and devices where ipamc reads and writes: each is refused for itself, at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import CLUSTER, tree
from tests.support.in_process import ipamc

SECONDS = 120
"""After that a process hangs. It takes less than one on a quiet machine."""
MEMORY = 1 << 30


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two compiled clusters, the working directory; beside it is a third, outside."""
    for folder in ("repository/clusters/blue", "repository/clusters/red", "outside/green"):
        (tmp_path / folder).mkdir(parents=True)
        text = CLUSTER.replace("NAME", Path(folder).name)
        (tmp_path / folder / "cluster.yaml").write_text(text)
    monkeypatch.chdir(tmp_path / "repository")
    subprocess.run(["git", "init", "-q"], check=True)
    assert call("compile").returncode == 0
    return tmp_path / "repository"


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    return ipamc(*arguments, cwd=Path.cwd(), environment=environment)


def limited(*lines: str) -> list[tuple[int, str]]:
    """Run some command lines in a process with an end to time and memory; return their codes and what they print."""
    code = f"""
import json, pathlib, resource, sys
from tests.support.in_process import ipamc
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
for line in sys.argv[1:]:
    done = ipamc(*line.split(), cwd=pathlib.Path.cwd(), environment={{"GIT_CONFIG_GLOBAL": "/dev/null"}}, one_stream=True)
    print(json.dumps((done.returncode, done.stdout)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *lines],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


VERBS = (
    ("compile",),
    ("compile", "--check"),
    ("lock",),
    ("plan",),
    ("show",),
    ("which", "n1"),
    ("why", "n1"),
)


@pytest.mark.deep
@pytest.mark.parametrize("target", ["red", "../../outside/green", "nowhere", "green", "../readme"])
def test_a_cluster_that_is_a_link(repository: Path, target: str) -> None:
    """To a cluster here or elsewhere, to nothing, to itself, to a file. The others answer as before."""
    Path("readme").touch()
    verbs = VERBS if target == "red" else (("compile",), ("plan",))
    wanted = [call(*verb, "blue", "red") for verb in verbs]
    assert {done.returncode for done in wanted} == {0}
    Path("clusters/green").symlink_to(target)
    before = tree(repository.parent)
    for verb, without in zip(verbs, wanted, strict=True):
        done = call(*verb)
        assert done.returncode == 1
        assert done.stderr.count("clusters/green is a link") == 1
        for line in (without.stdout + without.stderr).splitlines():
            if line.startswith(("blue: ", "red: ")):
                assert line in (done.stdout + done.stderr).splitlines()
        alone = call(*verb, "green")
        assert alone.returncode == 1
        assert "clusters/green is a link" in alone.stderr
    assert tree(repository.parent) == before


@pytest.mark.parametrize(
    "words", [("init", "green"), ("ci", "matrix", "--output", "names"), ("apply", "green")]
)
def test_other_verbs_refuse_it(repository: Path, words: tuple[str, ...]) -> None:
    Path("clusters/green").symlink_to("../../outside/green")
    before = tree(repository.parent)
    done = call(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "clusters/green is a link" in done.stderr
    assert tree(repository.parent) == before


def test_a_link_that_comes_first_hides_no_cluster(repository: Path) -> None:
    Path("clusters/a").symlink_to("red")
    (repository / "clusters/red/rendered/kustomization.yaml").unlink()
    for words in ((), ("a", "red")):
        done = call("compile", "--check", *words)
        assert done.returncode == 1
        assert "clusters/a is a link" in done.stderr
        assert "red: out of date" in done.stderr, done.stderr


def test_clusters_that_is_a_link(repository: Path) -> None:
    Path("clusters").rename("../outside/clusters")
    Path("clusters").symlink_to("../outside/clusters")
    before = tree(repository.parent)
    for words in (*VERBS, ("compile", "blue"), ("init", "new"), ("ci", "matrix", "--output", "names")):
        done = call(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "clusters is a link, and ipamc neither reads nor writes" in done.stderr
        assert done.stderr.count("\n") == 1
    assert tree(repository.parent) == before


@pytest.mark.deep
@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("target", ["red", "../../outside/green", "nowhere", "green"])
def test_a_commit_is_read_beside_a_link(target: str) -> None:
    """The link is not the path of what it leads to, in the commit either."""
    commit()
    wanted = call("show", "--at", "HEAD")
    assert wanted.returncode == 0
    Path("clusters/green").symlink_to(target)
    done = call("show", "--at", "HEAD")
    assert (done.returncode, done.stdout) == (0, wanted.stdout)
    assert done.stderr == "green: not in HEAD, left out\n"
    done = call("plan", "--base", "HEAD", "--allow-deleted")
    assert done.returncode == 1
    assert "error: green: failed: clusters/green is a link" in done.stderr


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("target", ["../outside", "nowhere", "clusters"])
def test_clusters_behind_a_link_are_not_told_as_deleted(target: str) -> None:
    commit()
    Path("clusters").rename("moved")
    Path("clusters").symlink_to(target)
    done = call("plan", "--base", "HEAD", "--allow-deleted")
    assert (done.returncode, done.stdout) == (1, "")
    assert "clusters is a link" in done.stderr


@pytest.mark.usefixtures("repository")
def test_a_merge_that_brings_a_link_is_undone() -> None:
    """The branch that it comes from moved a cluster behind a link."""
    commit()
    subprocess.run(["git", "checkout", "-q", "-b", "stranger"], check=True)
    Path("clusters/red").rename("moved")
    Path("clusters/red").symlink_to("../moved")
    commit()
    subprocess.run(["git", "checkout", "-q", "-b", "mine", "HEAD~1"], check=True)
    Path("readme").touch()
    commit()
    before = tree(Path("clusters"))
    done = call("ci", "merge", "stranger")
    assert done.returncode == 1
    assert "clusters/red is a link" in done.stderr
    assert "the merge was undone" in done.stderr
    assert tree(Path("clusters")) == before


def commit() -> None:
    subprocess.run(["git", "add", "-A"], check=True)
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, "commit", "-q", "-m", "all"], check=True)


def test_what_a_link_leads_to_is_compiled_where_it_is(repository: Path) -> None:
    Path("../link").symlink_to(repository)
    assert call("compile", f"{repository.parent}/link/clusters/blue").returncode == 0
    assert call("compile", "../outside/green").returncode == 0


PLACES = (
    *("ipam.lock", "nodes.yaml", "rendered", "rendered/kustomization.yaml", "rendered/cilium"),
    *("rendered/cilium/configmap.yaml", "rendered/cilium/helm-values.yaml", "rendered/nodes"),
)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["device", "pipe", "folder outside"])
@pytest.mark.parametrize("place", PLACES)
def test_what_a_cluster_has_in_the_place_of_a_file(repository: Path, place: str, kind: str) -> None:
    """No run hangs, takes all memory, or reads and writes elsewhere; the other cluster is compiled."""
    path = Path("clusters/blue", place)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else repository.parent / "outside")
    outside = tree(repository.parent / "outside")
    (repository / "clusters/red/rendered/kustomization.yaml").unlink()
    for code, said in (results := limited("compile --jobs 1", "plan --jobs 1", "show")):
        assert code in {0, 1}, said
        assert code == 0 or f"clusters/blue/{place}" in said
        assert "red" in said
    assert (results[0][0] == 0) == ("blue: 2 nodes" in results[0][1])
    assert (repository / "clusters/red/rendered/kustomization.yaml").is_file()
    assert tree(repository.parent / "outside") == outside


def test_what_is_applied_has_regular_files_only(repository: Path) -> None:
    """Also what only kustomize would read."""
    where = repository / "clusters/blue/rendered/cilium"
    for name in ("more.yaml", ".more.yaml"):
        (where / name).symlink_to("/dev/zero")
        done = call("apply", "blue")
        assert done.returncode == 1
        assert f"clusters/blue/rendered/cilium/{name} is a link" in done.stderr
        (where / name).unlink()


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".gitattributes", ("init",)),
        ("plan.md", ("ci", "comment", "plan.md")),
        ("ci.yml", ("ci", "gitlab", "--write", "ci.yml")),
        ("jobs", ("ci", "matrix", "--output", "github", "--write", "jobs")),
    ],
)
def test_files_that_verbs_read_and_write(
    repository: Path, name: str, words: tuple[str, ...], kind: str
) -> None:
    secret = repository.parent / "secret"
    secret.write_text("secret\n")
    if kind == "pipe":
        os.mkfifo(name)
    else:
        Path(name).symlink_to(secret)
    ((code, said),) = limited(" ".join(words))
    assert code == 1
    assert f"{name} is {'a link' if kind == 'link' else 'not a regular file'}: " in said
    assert secret.read_text() == "secret\n"


@pytest.mark.parametrize(
    "words",
    [
        ("compile", "--report", "json=out/report"),
        ("ci", "github", "--sha256", "a1" * 32, "--write", "out/new/ci.yml"),
        ("ci", "matrix", "--output", "github", "--write", "out/jobs"),
    ],
)
def test_nothing_is_written_behind_a_link_that_leaves(repository: Path, words: tuple[str, ...]) -> None:
    Path("out").symlink_to("../outside")
    Path("clusters/red/rendered/kustomization.yaml").unlink()
    before = tree(repository.parent)
    done = call(*words)
    assert done.returncode == 1
    assert "out is a link that leaves " in done.stderr
    assert tree(repository.parent) == before
    Path("out").unlink()
    Path("out").symlink_to("clusters")
    assert call(*words).returncode == 0


def test_schemas_are_not_written_behind_a_link_that_leaves(repository: Path) -> None:
    Path("clusters/.schemas").symlink_to("../../outside")
    before = tree(repository.parent / "outside")
    assert call("init", "new").returncode == 1
    assert tree(repository.parent / "outside") == before


def test_leftovers_that_a_branch_made_up(repository: Path) -> None:
    """A folder with the name of an unfinished file is in nobody's way; a link is removed, and not followed."""
    for number in (os.getpid(), 1):
        Path(f"clusters/blue/.ipamc-{number}.tmp").mkdir()
    Path("clusters/blue/.ipamc-2.tmp").symlink_to("../../../outside")
    Path("clusters/blue/rendered/.ipamc-3.tmp").symlink_to("/dev/zero")
    Path("clusters/blue/cluster.yaml").write_text(
        CLUSTER.replace("NAME", "blue").replace("{name: n2}", "{name: n2}, {name: n3}")
    )
    before = tree(repository.parent / "outside")
    done = call("compile", "blue")
    assert done.returncode == 0, done.stderr
    assert tree(repository.parent / "outside") == before
    left = {path.name for path in Path("clusters/blue").rglob(".ipamc-*")}
    assert left == {f".ipamc-{os.getpid()}.tmp", ".ipamc-1.tmp"}


@pytest.mark.parametrize(
    "path", ["ciliumnodes/000/.argocd-source.yaml", ".hidden.yaml", "ciliumnodes/evil/.x.json"]
)
def test_a_hidden_file_below_rendered_is_foreign(repository: Path, path: str) -> None:
    """Argo CD reads names that start with a dot, and takes overrides from one of them."""
    place = repository / "clusters/blue/rendered" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("kind: Evil\n")
    done = call("compile", "blue", "--locked", "--check")
    assert (done.returncode, path in done.stderr) == (1, True)
    assert call("compile", "blue").returncode == 0
    assert not place.exists()


def test_an_empty_folder_below_rendered_is_foreign(repository: Path) -> None:
    """It may be a submodule, which others fetch and apply."""
    folder = repository / "clusters/blue/rendered/ciliumnodes/001"
    folder.mkdir(parents=True)
    assert call("compile", "blue", "--locked", "--check").returncode == 1
    assert call("compile", "blue").returncode == 0
    assert not folder.exists()
