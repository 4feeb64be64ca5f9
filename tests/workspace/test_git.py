"""Reading the past: what a commit has, without touching the work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ipamc.workspace import git, git_tree
from ipamc.workspace.failure import EnvironmentFailure

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.org")


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in {"a/x.yaml": "x\n", "a/ä b.yaml": "ä", "a/deep/y.json": "", "ab/z.yaml": "z"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "a/link.yaml").symlink_to("x.yaml")
    (tmp_path / "a/deep/up.yaml").symlink_to("../x.yaml")
    run(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    (tmp_path / "a/x.yaml").write_text("not committed")
    return tmp_path


def commit(repository: Path, message: str = "one") -> None:
    run(repository, "add", "-A")
    run(repository, "commit", "-q", "--allow-empty", "-m", message)


def everything(name: str) -> bool:
    return bool(name)


def files(repository: Path, path: str, revision: str = "HEAD") -> dict[str, bytes]:
    return git_tree.files(str(repository), run(repository, "rev-parse", revision), path, everything)


def test_files_of_a_commit(repository: Path) -> None:
    assert files(repository, "a") == {
        "deep/up.yaml": b"x\n",
        "deep/y.json": b"",
        "link.yaml": b"x\n",
        "x.yaml": b"x\n",
        "ä b.yaml": "ä".encode(),
    }
    assert files(repository, "")["ab/z.yaml"] == b"z"
    assert files(repository, "nowhere") == {}


def test_only_what_is_wanted_is_read(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file that is no input costs nothing; a large input is refused before it is read."""
    (repository / "a/large.bin").write_bytes(b"0" * 5_000)
    commit(repository)
    monkeypatch.setattr(git_tree, "LARGEST_FILE", 1_000)
    head = run(repository, "rev-parse", "HEAD")
    assert len(git_tree.files(str(repository), head, "a", lambda name: name.endswith("ml"))) == 4
    with pytest.raises(EnvironmentFailure, match=r"a/large.bin has 5,000 bytes, more than 1,000"):
        files(repository, "a")
    with pytest.raises(EnvironmentFailure, match=r"a/large.bin has 5,000 bytes, more than 1,000"):
        git.show(str(repository), "HEAD", "a/large.bin")


def test_more_questions_than_a_pipe_holds(repository: Path) -> None:
    """Git answers the first ones before it has read the last ones: who writes all of them first waits for ever."""
    blob = run(repository, "rev-parse", "HEAD:a/x.yaml")
    assert git_tree.sizes(str(repository), [blob] * 20_000) == {blob: 2}


def test_a_submodule_that_says_it_never_differs_has_changed(repository: Path) -> None:
    commit(repository)
    base = run(repository, "rev-parse", "HEAD")
    (repository / ".gitmodules").write_text('[submodule "m"]\n\tpath = a/m\n\turl = ./m\n\tignore = all\n')
    run(repository, "update-index", "--add", "--cacheinfo", f"160000,{base},a/m")
    run(repository, "add", ".gitmodules")
    run(repository, "commit", "-q", "-m", "submodule")
    assert git.changed(str(repository), base) == [".gitmodules", "a/m"]


def test_a_file_that_the_caller_has_is_not_read(repository: Path) -> None:
    """Suppressed by the name of its object, which is the hash of its bytes: here git has the object no more."""
    blob = run(repository, "rev-parse", "HEAD:a/x.yaml")
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    head, path = run(repository, "rev-parse", "HEAD"), str(repository)

    def wanted(name: str) -> bool:
        return name in {"x.yaml", "deep/y.json"}

    known = {"x.yaml": b"x\n", "deep/y.json": b"other"}
    assert git_tree.files(path, head, "a", wanted, known) == {"x.yaml": b"x\n", "deep/y.json": b""}
    with pytest.raises(EnvironmentFailure, match="lacks a file of the commit"):
        git_tree.files(path, head, "a", wanted, {"x.yaml": b"y\n"})


@pytest.mark.parametrize(
    "known", [{}, {"x.yaml": b"x\n"}, {"x.yaml": b"y"}, {"link.yaml": b"x\n", "new": b""}]
)
def test_what_the_caller_has_changes_nothing(repository: Path, known: dict[str, bytes]) -> None:
    head, path = run(repository, "rev-parse", "HEAD"), str(repository)
    assert git_tree.files(path, head, "a", everything, known) == files(repository, "a")


def test_all_files_together_have_a_limit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in range(5):
        (repository / f"a/{name}.json").write_bytes(b"0" * 500)
    commit(repository)
    monkeypatch.setattr(git_tree, "LARGEST_INPUTS", 2_000)
    with pytest.raises(EnvironmentFailure, match=r"\.json has 500 bytes, more than"):
        files(repository, "a")


@pytest.mark.parametrize("target", ["gone.yaml", "/etc/hostname", "../ab/z.yaml", "deep", "link.yaml"])
def test_a_link_to_anything_but_a_file_of_the_folder_is_refused(repository: Path, target: str) -> None:
    (repository / "a/odd.yaml").symlink_to(target)
    commit(repository)
    with pytest.raises(
        EnvironmentFailure, match=r"a/odd.yaml is a link that leads to no file in the cluster's folder"
    ):
        files(repository, "a")


@pytest.mark.parametrize("path", ["a", "a/deep"])
def test_a_folder_that_is_a_link_is_refused(repository: Path, path: str) -> None:
    run(repository, "mv", path, "elsewhere")
    (repository / path).symlink_to("elsewhere" if "/" not in path else "../elsewhere")
    commit(repository)
    with pytest.raises(EnvironmentFailure, match=f"{path} is a link, not a folder of clusters"):
        files(repository, "a/deep")


def test_folders_of_a_commit(repository: Path) -> None:
    """Also links and submodules, which are no folders of clusters: whoever reads them says so."""
    (repository / "a/other").symlink_to("deep")
    commit(repository)
    head = run(repository, "rev-parse", "HEAD")
    assert git_tree.folders(str(repository), head, "") == ("a", "ab")
    assert git_tree.folders(str(repository), head, "a") == ("deep", "link.yaml", "other")
    assert git_tree.folders(str(repository), head, "nowhere") == ()
    with pytest.raises(EnvironmentFailure, match=r"a/x.yaml is a file, not a folder"):
        git_tree.folders(str(repository), head, "a/x.yaml")


def test_a_file_of_a_commit(repository: Path) -> None:
    folder = str(repository)
    assert git.show(folder, "HEAD", "a/x.yaml") == b"x\n"
    assert git.show(folder, "HEAD", "a/gone.yaml") is None
    assert git.show(folder, "nothing", "a/x.yaml") is None
    with pytest.raises(EnvironmentFailure, match=r"a/link.yaml is a link"):
        git.show(folder, "HEAD", "a/link.yaml")


def test_a_clone_may_be_shallow(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert not git.is_shallow(str(repository))
    commit(repository, "two")
    clone = tmp_path_factory.mktemp("clone")
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository}", str(clone)], check=True)
    assert git.is_shallow(str(clone))
    assert git.merge_base(str(clone), "HEAD", "HEAD") == git.commit(str(clone), "HEAD")


@pytest.mark.parametrize("filtered", ["blob:none", "tree:0"])
def test_a_clone_that_lacks_files_is_an_error(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, filtered: str
) -> None:
    """What is not there must not look like a file that the commit does not have. Nothing is fetched."""
    run(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path_factory.mktemp("clone")
    options = [f"--filter={filtered}", "--no-checkout", f"file://{repository}"]
    subprocess.run(["git", "clone", "-q", *options, str(clone)], check=True)
    with pytest.raises(EnvironmentFailure, match=r"this clone is partial|git ls-tree in"):
        git.show(str(clone), "HEAD", "a/x.yaml")
    with pytest.raises(EnvironmentFailure, match=r"this clone is partial|git ls-tree in"):
        files(clone, "a")


def test_outside_of_a_repository(tmp_path: Path) -> None:
    assert git.root(str(tmp_path)) is None
    with pytest.raises(EnvironmentFailure, match="is not in a git repository"):
        git.commit(str(tmp_path), "HEAD")
