"""A repository that a stranger shaped: nothing in a branch runs a program or changes what a base says.

Every attack is played with the verbs that read git. The fixture has the cluster `zones`, committed twice: its
two nodes have swapped their blocks in the second commit, which a plan must refuse.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from ipamc.cli import main
from tests.support import two_nodes

CLUSTER = two_nodes.CLUSTER.replace("NAME", "zones")
FOLDER = Path("clusters/zones")
LOCK = FOLDER / "ipam.lock"

READERS = (
    ("plan", "--base", "HEAD~1"),
    ("show", "--at", "HEAD~1"),
    ("why", "n1", "--at", "HEAD~1"),
    ("which", "n1", "--at", "HEAD~1"),
    ("lock", "--onto", "side"),
    ("ci", "matrix", "--output", "names", "--base", "HEAD~1"),
    ("ci", "merge", "side"),
)
"""Every verb that reads a commit."""


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(message: str) -> None:
    git("add", "-A", "--force")
    git("commit", "-q", "--allow-empty", "-m", message)


ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "SOURCE_DATE_EPOCH": "1795219200",
    "NO_COLOR": "1",
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "e@x",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "e@x",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the repository: `main` has the swap; `side` has one node more."""
    top = tmp_path_factory.mktemp("made") / "repository"
    (top / FOLDER).mkdir(parents=True)
    with contextlib.chdir(top), mock.patch.dict(os.environ, ENVIRONMENT):
        (FOLDER / "cluster.yaml").write_text(CLUSTER)
        git("init", "-q", "-b", "main")
        assert main(["compile"]) == 0
        commit("one")
        git("checkout", "-q", "-b", "side")
        (FOLDER / "cluster.yaml").write_text(CLUSTER.replace("{name: n2}", "{name: n2}, {name: n3}"))
        assert main(["compile"]) == 0
        commit("three nodes")
        git("checkout", "-q", "main")
        swapped = LOCK.read_text().replace('"n1"', '"x"').replace('"n2"', '"n1"').replace('"x"', '"n2"')
        LOCK.write_text(swapped)
        assert main(["compile"]) == 0
        commit("swapped")
    return top


@pytest.fixture
def repository(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the repository, which is the working directory."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "repository"
    shutil.copytree(made, top)
    monkeypatch.chdir(top)
    git("update-index", "--refresh")  # the index knows the files by their inodes
    return top


def program(repository: Path) -> tuple[Path, Path]:
    """Write a program that leaves a witness; return it, and the witness."""
    witness, found = repository.parent / "witness", repository.parent / "program"
    found.write_text(f'#!/bin/sh\necho "$0 $*" >> {witness}\nexit 0\n')
    found.chmod(0o755)
    return found, witness


def is_refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> bool:
    capsys.readouterr()
    code = main(["plan", "--base", "HEAD~1", *arguments])
    return code == 1 and "2 held blocks changed without a recorded consent" in capsys.readouterr().err


def bare(folder: Path, config: str) -> None:
    """Make a folder of a cluster look like a bare repository. Empty folders need a file to be committed."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "keep").write_text("")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config)


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("verb", READERS, ids=lambda verb: " ".join(verb[:2]))
def test_a_bare_repository_in_a_cluster_runs_nothing(repository: Path, verb: tuple[str, ...]) -> None:
    """Its configuration names programs for a fetch of missing objects, for a file system monitor, for a diff."""
    found, witness = program(repository)
    bare(
        FOLDER,
        f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = {repository}\n\tfsmonitor = {found}\n"
        f"\tsshCommand = {found}\n[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\turl = file://{repository}\n\tpromisor = true\n\tuploadpack = {found}\n'
        f"[diff]\n\texternal = {found}\n",
    )
    commit("bare")
    assert main([*verb]) in {0, 1}
    assert not witness.exists()


def test_a_bare_repository_in_a_cluster_is_no_base(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has a history of its own, in which nothing was swapped."""
    forged = repository.parent / "forged"
    git("clone", "-q", "--bare", ".", str(forged))
    git("--git-dir", str(forged), "update-ref", "refs/heads/base", "HEAD")
    for name in ("HEAD", "config", "objects", "refs", "packed-refs"):
        (shutil.copytree if (forged / name).is_dir() else shutil.copy)(forged / name, FOLDER / name)
    (FOLDER / "refs/keep").write_text("")
    (FOLDER / "objects/keep").write_text("")
    (FOLDER / "config").write_text(f"[core]\n\tbare = false\n\tworktree = {repository}\n")
    commit("forged")
    capsys.readouterr()
    assert main(["plan", "zones", "--base", "HEAD~2"]) == 1
    assert "2 held blocks changed without a recorded consent" in capsys.readouterr().err
    assert main(["plan", "zones", "--base", "base"]) == 1
    assert "git does not know revision 'base' here" in capsys.readouterr().err


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("verb", READERS, ids=lambda verb: " ".join(verb[:2]))
def test_programs_of_the_configuration_do_not_run(repository: Path, verb: tuple[str, ...]) -> None:
    """Hooks, filters, merge drivers, monitors, external diffs: no branch can set them, and no one is needed."""
    found, witness = program(repository)
    hooks = repository / ".git/hooks"
    for name in (
        "pre-commit",
        "pre-merge-commit",
        "post-merge",
        "post-checkout",
        "post-index-change",
        "commit-msg",
    ):
        shutil.copy(found, hooks / name)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "merge.x.driver",
        "merge.ipamc.driver",
        "gpg.program",
    ):
        git("config", key, str(found))
    git("config", "commit.gpgSign", "false")
    Path(".git/info/attributes").write_text("* filter=x diff=x merge=x\n")
    witness.unlink(missing_ok=True)
    assert main([*verb]) in {0, 1}
    assert not witness.exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_hook_of_git_changes_no_path(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    linked: bool,  # noqa: FBT001
) -> None:
    """In a hook, git sets GIT_DIR, and then the work tree is where git is called: every cluster looks new."""
    if linked:
        git("worktree", "add", "-q", "--detach", str(repository.parent / "linked"), "main")
        monkeypatch.chdir(repository.parent / "linked")
    monkeypatch.setenv("GIT_DIR", git("rev-parse", "--absolute-git-dir"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / "no-index"))
    assert is_refused(capsys)


def test_a_path_with_the_working_directory_finds_no_git_there(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, witness = program(repository)
    shutil.copy(found, repository / "git")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    assert is_refused(capsys)
    assert not witness.exists()


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("^HEAD", "error: git does not know revision '^HEAD' here"),
        ("HEAD~1..HEAD", "error: git does not know revision"),
        ("HEAD~1:clusters", "error: git does not know revision"),
        ("--all", "error: git does not know revision '--all' here"),
        ("", "error: the revision is empty: name one, or omit --base"),
        (" ", "error: the revision is empty: name one, or omit --base"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_a_base_that_cannot_be_read_is_an_error(
    base: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["plan", "--base", base]) in {1, 64}
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("repository")
def test_a_tag_that_is_called_like_the_trunk_is_no_base(capsys: pytest.CaptureFixture[str]) -> None:
    """The tag comes before the branch of the remote: who may push tags would choose the base."""
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert main(["plan", "--base", "origin/main"]) == 1
    git("tag", "origin/main", "HEAD")
    capsys.readouterr()
    assert main(["plan", "--base", "origin/main"]) == 1
    assert "'origin/main' is ambiguous" in capsys.readouterr().err
    assert main(["plan", "--base", "refs/remotes/origin/main"]) == 1


@pytest.mark.usefixtures("repository")
def test_a_replaced_object_is_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    git("replace", "HEAD~1", "HEAD")
    assert is_refused(capsys)


def test_a_shallow_clone_says_so(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = repository.parent / "clone"
    git("clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert (
        "error: this clone is shallow and has no 'HEAD~1': git fetch --unshallow" in capsys.readouterr().err
    )


def test_without_git(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(repository.parent))
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    said = f"error: {repository} is a git repository, but git is not on the PATH: install git\n"
    assert capsys.readouterr().err == said
    assert main(["plan"]) == 0


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (repository, repository / ".git"):
        os.chown(path, 12345, 12345)
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert capsys.readouterr().err == (
        f"error: git does not trust the repository {repository}, because another user owns it:"
        f" git config --global --add safe.directory {repository}\n"
    )


def test_a_damaged_repository(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty `.git` is not a reason to look for a repository further up."""
    shutil.move(repository / ".git", repository.parent / ".git")
    (repository / ".git").mkdir()
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert (
        f"error: git cannot read the repository {repository}: not a git repository" in capsys.readouterr().err
    )


def test_a_base_behind_a_link_is_an_error(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A base in which clusters/ was a link has no clusters for git: all of them would look new."""
    git("mv", "clusters", "elsewhere")
    (repository / "clusters").symlink_to("elsewhere")
    commit("a link")
    (repository / "clusters").unlink()
    git("mv", "elsewhere", "clusters")
    commit("no link")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert "clusters is a link, not a folder of clusters" in capsys.readouterr().err


# What jobs read is what is merged.

MATRIX = ("ci", "matrix", "--output", "names", "--base", "main")
PLAN = ("plan", "--base", "main")


def run(capsys: pytest.CaptureFixture[str], *verb: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([*verb])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def checkout(revision: str = "HEAD") -> None:
    """Write every file again, as a new clone has it."""
    for path in git("ls-files").splitlines():
        Path(path).unlink(missing_ok=True)
    git("checkout", "-q", "-f", revision)


@pytest.mark.deep(part=3)
@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("known", [False, True], ids=["new", "in the base"])
@pytest.mark.parametrize(
    "place", ["zones/rendered/ciliumnodes/000", "zones/rendered", "zones/deep", "new", "", ".schemas"]
)
def test_a_submodule_below_the_clusters_is_refused(
    place: str,
    known: bool,  # noqa: FBT001 - a parameter of the test
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With `ignore = all` in the branch's own .gitmodules, git says that it never differs, also between trees."""
    git("checkout", "-q", "-b", "branch")
    path = Path("clusters", place).as_posix()
    git("rm", "-q", "-r", "--ignore-unmatch", path)
    Path(path).mkdir(parents=True, exist_ok=True)
    Path(".gitmodules").write_text(f'[submodule "m"]\n\tpath = {path}\n\turl = ./m\n\tignore = all\n')
    git("update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD')},{path}")
    git("add", ".gitmodules")
    git("commit", "-q", "-m", "submodule")
    assert path not in git("diff", "--name-only", "main", "HEAD").splitlines()
    assert path not in git("diff-tree", "-r", "--name-only", "main", "HEAD").splitlines()
    if known:
        git("branch", "-q", "-f", "main")
    for verb in (MATRIX, PLAN):
        code, out, err = run(capsys, *verb)
        assert (code, out) == (1, "")
        assert f"error: {path} is a submodule, so reviews" in err


@pytest.mark.usefixtures("repository")
def test_a_submodule_elsewhere_is_nobodys_concern(capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "-b", "branch")
    git("update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD')},vendor/m")
    git("commit", "-q", "-m", "submodule")
    assert run(capsys, *MATRIX)[:2] == (0, "")
    assert run(capsys, *PLAN)[0] == 0


@pytest.mark.deep(part=3)
@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (".gitattributes", "* working-tree-encoding=UTF-16LE\n", "working-tree-encoding: UTF-16LE"),
        (".gitattributes", "* ident\n", "ident: set"),
        (".gitattributes", "clusters/** filter=lfs\n", "filter: lfs"),
        (".gitattributes", "* text eol=crlf\n", "eol: crlf"),
        (".gitattributes", "* text=auto eol=crlf\n", "eol: crlf"),
        (".gitattributes", "[attr]harmless ident\n*.yaml harmless\n", "ident: set"),
        # On the disk it is in UTF-16, and says nothing.
        (".gitattributes", ".gitattributes working-tree-encoding=UTF-16LE\n*.yaml ident\n", "ident: set"),
        ("clusters/.gitattributes", "zones/*.yaml ident\n", "ident: set"),
        ("clusters/zones/.gitattributes", "ipam.lock eol=crlf\n", "eol: crlf"),
        ("clusters/zones/rendered/.gitattributes", "* ident\n", "ident: set"),
        (".git/info/attributes", "* eol=crlf\n", "eol: crlf"),
    ],
)
def test_attributes_that_change_bytes_are_refused(
    path: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    git("checkout", "-q", "-b", "branch")
    with (FOLDER / "cluster.yaml").open("a") as file:
        file.write("# $Id$\n")
    git("commit", "-q", "-a", "-m", "touched")
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    if not path.startswith(".git/"):
        blob = git("hash-object", "-w", "--no-filters", path)
        git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        git("commit", "-q", "-m", "attributes")
    checkout()
    for verb in (MATRIX, PLAN):
        code, out, err = run(capsys, *verb)
        assert (code, out) == (1, "")
        assert f"has the attribute {said}" in err
        assert "so a checkout differs from the commit" in err


@pytest.mark.usefixtures("repository")
def test_attributes_in_a_link_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Git takes the target of a link `.gitattributes` for its text when it writes a checkout, and not on the disk."""
    git("checkout", "-q", "-b", "branch")
    Path(".gitattributes").symlink_to("clusters/** ident")
    commit("link")
    assert "ident: set" in run(capsys, *MATRIX)[2]
    assert "ident: set" in run(capsys, *PLAN)[2]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "text",
    [
        "* text=auto\n",
        "ipam.lock text eol=lf merge=ipamc\n**/rendered/** text eol=lf linguist-generated\n",
        "* -text -ident\n*.png filter=lfs diff=lfs merge=lfs -text\n",
        "* ident eol=crlf\nclusters/** !eol\nclusters/** !ident\n",
    ],
)
def test_attributes_that_leave_bytes_alone(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one is the way out that the refusal tells."""
    git("checkout", "-q", "-b", "branch")
    Path(".gitattributes").write_text(text)
    commit("attributes")
    checkout()
    code, out, err = run(capsys, *MATRIX)
    assert (code, out) == (0, "zones\n"), err
    assert "listing all clusters: .gitattributes changed" in err
    assert run(capsys, *PLAN)[0] == 0


def test_a_commit_in_other_letters_than_its_checkout_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has a node in fullwidth letters, which nobody takes for n9; a checkout has it in ASCII."""
    git("checkout", "-q", "-b", "branch")
    file = FOLDER / "more.yaml"
    file.write_text("apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: \uff4e\uff19}\n")
    commit("fullwidth")
    Path(".gitattributes").write_text("*.yaml working-tree-encoding=ASCII//TRANSLIT\n")
    git("add", ".gitattributes")
    git("commit", "-q", "-m", "attributes")
    clone = repository.parent / "clone"
    git("clone", "-q", "-b", "branch", ".", str(clone))
    monkeypatch.chdir(clone)
    git("branch", "main", "origin/main")
    if not file.read_bytes().isascii():
        pytest.skip("this iconv does not transliterate")
    assert main(["compile"]) == 0
    assert '"n9"' in LOCK.read_text()
    git("checkout", "-q", "-f", "HEAD")
    for verb in (MATRIX, PLAN):
        assert "has the attribute working-tree-encoding: ASCII//TRANSLIT" in run(capsys, *verb)[2]


def extra(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("apiVersion: v1\n")


def crlf() -> None:
    git("config", "core.autocrlf", "true")
    checkout()


def sparse() -> None:
    git("sparse-checkout", "set", "--no-cone", "/nothing")
    Path("clusters/other").mkdir(parents=True)


DIFFERENT: dict[str, tuple[Callable[[], object], str]] = {
    "edited": (lambda: LOCK.write_text(f"{LOCK.read_text()} "), "ipam.lock differs from HEAD"),
    "line ends": (crlf, "differs from HEAD, and only HEAD gets merged: commit your change, or"),
    "removed": (LOCK.unlink, "ipam.lock is in HEAD, but not here"),
    "an input more": (lambda: extra(FOLDER / "deep/more.yaml"), "deep/more.yaml is not in HEAD"),
    "an object more": (lambda: extra(FOLDER / "rendered/.x"), "rendered/.x is not in HEAD"),
    "tests more": (lambda: extra(Path("clusters/tests.yaml")), "clusters/tests.yaml is not in HEAD"),
    "sparse": (sparse, "clusters/zones is in HEAD, but not here: run git checkout HEAD -- clusters/zones"),
}
"""What somebody does to the checkout, and what is said."""


@pytest.mark.deep(part=3)
@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("how", DIFFERENT)
def test_a_matrix_reads_what_the_commit_has(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    change, said = DIFFERENT[how]
    change()
    verb = ("ci", "matrix", "--output", "names", "--base", "HEAD~1")
    code, out, err = run(capsys, *verb)
    assert (code, out) == (1, "")
    assert said in err
    if how != "sparse":
        assert run(capsys, *verb[:-2])[0] == 0  # no base, nothing is compared


@pytest.mark.usefixtures("repository")
def test_files_that_nobody_reads_may_differ(capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "-b", "branch")
    (FOLDER / "notes.txt").write_text("one")
    (FOLDER / "same.yaml").symlink_to("nothing.yaml")
    (FOLDER / "nothing.yaml").write_text("# nothing\n")
    commit("notes and a link")
    (FOLDER / "notes.txt").write_text("two")
    (FOLDER / "other.txt").write_text("two")
    assert run(capsys, *MATRIX)[:2] == (0, "zones\n")
    (FOLDER / "same.yaml").unlink()
    (FOLDER / "same.yaml").symlink_to("nodes.yaml")
    assert "same.yaml differs from HEAD" in run(capsys, *MATRIX)[2]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("more.yaml", "More.yaml"),
        ("\u00e9.yaml", "e\u0301.yaml"),
        ("rendered/x", "Rendered/y.yaml"),
        ("stra\u00dfe.yaml", "STRASSE.yaml"),
    ],
)
def test_two_names_that_are_one_elsewhere_are_refused(
    one: str, two: str, capsys: pytest.CaptureFixture[str]
) -> None:
    git("checkout", "-q", "-b", "branch")
    for name in (one, two):
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text("# nothing\n")
    commit("names")
    if Path("CLUSTERS").exists():
        pytest.skip("this disk ignores case")
    code, out, err = run(capsys, *MATRIX)
    assert (code, out) == (1, "")
    assert "are the same on a disk that ignores case" in err


@pytest.mark.usefixtures("repository")
def test_a_link_in_the_place_of_rendered_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "-b", "branch")
    shutil.move(FOLDER / "rendered", "elsewhere")
    (FOLDER / "rendered").symlink_to("../../elsewhere")
    commit("link")
    code, out, err = run(capsys, *MATRIX)
    assert (code, out) == (1, "")
    assert "clusters/zones/rendered is a link" in err


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("to", ["elsewhere.yaml", "clusters/other/cluster.yaml"])
def test_a_file_that_moves_changes_both_places(to: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With renames, as the user may have set them, git would name the new place alone."""
    git("config", "diff.renames", "copies")
    git("checkout", "-q", "-b", "branch")
    Path(to).parent.mkdir(exist_ok=True)
    git("mv", "clusters/zones/cluster.yaml", to)
    commit("moved")
    names = ["other", "zones"] if "other" in to else ["zones"]
    assert run(capsys, *MATRIX)[1].split() == names


def crossed(number: int) -> None:
    """Make the branches `one` and `two`, which both merged so many commits: all of them are best common ancestors."""
    rows = ["feature done"]
    for at in range(number):
        rows += [
            f"commit refs/heads/c{at}",
            f"mark :{at + 1}",
            f"committer n <e@x> {1_700_000_000 + at} +0000",
        ]
        rows += ["data 1", "c", "from main", ""]
    for name in ("one", "two"):
        rows += [f"commit refs/heads/{name}", f"committer n <e@x> {1_800_000_000} +0000", "data 3", name]
        rows += ["from main", *(f"merge :{at + 1}" for at in range(number)), ""]
    stream = "".join(f"{row}\n" for row in (*rows, "done")).replace(
        "from main", f"from {git('rev-parse', 'main')}"
    )
    subprocess.run(["git", "fast-import", "--quiet"], input=stream.encode(), check=True)


@pytest.mark.usefixtures("repository")
def test_more_common_ancestors_than_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody who merges both ways chooses their number: with 4,000 of them the matrix took 14 s."""
    crossed(257)
    git("checkout", "-q", "-f", "one")
    verb = (*MATRIX[:-1], "two")
    code, out, err = run(capsys, *verb)
    assert (code, out) == (1, "")
    assert "HEAD and two have 257 best common ancestors, more than 256" in err
    assert "git merge two, which leaves one" in err
    git("merge", "-q", "-m", "both", "two")
    assert run(capsys, *verb)[:2] == (0, "")
