"""What a branch may put in the place of a file: none of it makes a reader wait, read without end, or look elsewhere."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from ipamc.workspace import disk, inputs, safe_read
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.safe_read import link_on_the_way, refuse_way_out


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "is a link"),
        (lambda path: path.symlink_to("file"), "is a link"),
        (lambda path: path.symlink_to("nothing"), "is a link"),
        (lambda path: path.symlink_to(path), "is a link"),
        (os.mkfifo, "is not a regular file"),
        (bind, "is not a regular file"),
        (Path.mkdir, "is not a regular file"),
        (lambda path: path.write_text("x" * 11), "has 11 bytes, more than 10"),
    ],
)
def test_what_is_not_read(
    tmp_path: Path, make: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(safe_read, "LARGEST_FILE", 10)
    Path("file").write_text("text")
    path = Path("bad")
    make(path)  # type: ignore[operator]  # a function of a path
    with pytest.raises(EnvironmentFailure, match=f"^bad {problem}: "):
        disk.read_bytes("bad")
    assert not disk.is_same(path, b"text")


def test_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert safe_read.read(str(path)) is None
    assert safe_read.read(str(path / "below a file")) is None
    path.write_bytes(b"0123456789")
    assert safe_read.read(str(path / "below a file")) is None
    assert safe_read.read(str(path), 10) == b"0123456789"
    assert disk.is_same(path, b"0123456789")
    assert not disk.is_same(path, b"0123456")


def test_an_input_is_compared_without_another_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = b"0123456789" * 100_000
    Path("file").write_bytes(data)
    Path("link").symlink_to("file")
    tracemalloc.start()
    assert inputs.is_source("file", ".", data)
    assert inputs.is_source("link", ".", data)
    assert tracemalloc.get_traced_memory()[1] < len(data)
    tracemalloc.stop()
    for other in (b"", data[1:], data[:-1], data + b"x", b"x" + data[1:], data[:-1] + b"x"):
        assert not inputs.is_source("file", ".", other)
    assert not inputs.is_source("nothing", ".", b"")
    Path("link").unlink()
    Path("link").symlink_to("/dev/zero")
    with pytest.raises(EnvironmentFailure, match="leaves the cluster's folder"):
        inputs.is_source("link", ".", data)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_size_that_is_not_true_is_no_limit() -> None:
    """The kernel says that files of /proc have 0 bytes."""
    assert b"Name:" in (safe_read.read("/proc/self/status") or b"")
    with pytest.raises(EnvironmentFailure, match="has more than 5 bytes"):
        safe_read.read("/proc/self/status", 5)


def test_a_file_that_is_replaced_by_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a system that cannot refuse links when it opens a file."""
    path, secret = tmp_path / "file", tmp_path / "secret"
    path.write_text("text")
    secret.write_text("secret")
    lstat = os.lstat

    def replaced(name: str) -> os.stat_result:
        status = lstat(name)
        path.unlink()
        path.symlink_to(secret)
        return status

    for flags in (safe_read._FLAGS, os.O_RDONLY):  # noqa: SLF001 - another system
        path.unlink()
        path.write_text("text")
        with monkeypatch.context() as patch:
            patch.setattr(safe_read, "_FLAGS", flags)
            patch.setattr(os, "lstat", replaced)
            with pytest.raises((EnvironmentFailure, OSError)):
                safe_read.read(str(path))


def test_files_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (safe_read, inputs):
        monkeypatch.setattr(module, "LARGEST_INPUTS", 25)
    for name in "abcd":
        Path(f"{name}.yaml").write_text("x" * 10)
    sources, refused = inputs.read_sources(".")
    assert not sources
    assert [(each.at.path, each.message) for each in refused] == [
        ("c.yaml", "'c.yaml' has, together with the files read before it, more than 25 bytes")
    ]


@pytest.fixture
def work_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree with links, as the working directory; it is reached by a link, too."""
    top = tmp_path / "real"
    for folder in (".git", "clusters/lab", "other/lab", "sub/.git", "sub/lab"):
        (top / folder).mkdir(parents=True)
    (tmp_path / "outside/lab").mkdir(parents=True)
    (tmp_path / "way").symlink_to(top)
    for link, target in {
        "clusters/inside": "lab",
        "clusters/outside": "../../outside/lab",
        "clusters/nothing": "nowhere",
        "clusters/itself": "itself",
        "inside": "other",
        "outside": "../outside",
        "repository": "sub",
    }.items():
        (top / link).symlink_to(target)
    monkeypatch.chdir(top)
    return top


@pytest.mark.parametrize(
    ("folder", "link"),
    [
        ("clusters/lab", ""),
        ("./clusters/lab", ""),
        ("clusters/../clusters/lab", ""),
        ("sub/lab", ""),
        ("clusters/none", ""),
        ("clusters/inside", "clusters/inside"),
        ("clusters/inside/", "clusters/inside"),
        ("clusters/outside", "clusters/outside"),
        ("clusters/nothing", "clusters/nothing"),
        ("clusters/itself", "clusters/itself"),
        ("inside/lab", "inside"),
        ("inside/lab/..", "inside"),
        ("outside/lab", "outside"),
        ("repository/lab", "repository"),
    ],
)
def test_links_on_the_way_to_a_cluster(work_tree: Path, folder: str, link: str) -> None:
    assert link_on_the_way(folder) == link
    for top in (work_tree, work_tree.parent / "way"):
        assert link_on_the_way(f"{top}/{folder}") == (f"{top}/{link}" if link else "")


def test_links_from_a_folder_of_the_work_tree(work_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work_tree / "clusters")
    for folder in ("lab", ".", "..", "../clusters/lab"):
        assert link_on_the_way(folder) == ""
    assert link_on_the_way("../inside/lab") == "../inside"
    assert link_on_the_way("../repository/lab") == "../repository"


def test_links_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real/lab").mkdir(parents=True)
    (tmp_path / "way").symlink_to("real")
    (tmp_path / "real/link").symlink_to("lab")
    monkeypatch.chdir(tmp_path)
    assert link_on_the_way("way/lab") == "way"
    assert link_on_the_way(f"{tmp_path}/way/lab") == ""
    assert link_on_the_way(f"{tmp_path}/way/link") == f"{tmp_path}/way/link"


def test_files_are_not_written_out_of_the_work_tree(work_tree: Path) -> None:
    for path in ("report", "inside/report", "repository/report", "new/report", f"{work_tree}/../report"):
        assert disk.replace(path, "text")
    for path in ("outside/report", "outside/new/report", "clusters/itself/report"):
        with pytest.raises(EnvironmentFailure, match=r"is a link that leaves .*/real, so .* is not written"):
            disk.replace(path, "text")
        with pytest.raises(EnvironmentFailure, match="is a link that leaves"):
            disk.create(path, "text")
        with pytest.raises(EnvironmentFailure, match="is a link that leaves"):
            refuse_way_out(str(work_tree / path))
    assert list((work_tree.parent / "outside").iterdir()) == [work_tree.parent / "outside/lab"]


def test_only_regular_files_are_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("link").symlink_to("file")
    os.mkfifo("pipe")
    for path in ("link", "pipe"):
        with pytest.raises(EnvironmentFailure, match=f"{path} is "):
            disk.replace(path, "new")
    assert Path("file").read_text() == "old"
    os.link("file", "second name")
    assert disk.replace("file", "new")
    assert Path("second name").read_text() == "old"
