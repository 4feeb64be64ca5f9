"""The door to the file system: what is read, what is written and in which order, and what is never touched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ipamc.workspace import disk, locked_folder, output, safe_read
from ipamc.workspace.clusters import find
from ipamc.workspace.disk import read_lock
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import read_sources
from ipamc.workspace.locked_folder import LockedFolder, lock_folder
from ipamc.workspace.output import Changes, compare
from ipamc.workspace.source import Disk


@pytest.fixture(params=["handles", "paths"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cluster's folder; on this system, and as on one that opens no folders."""
    if request.param == "paths":
        monkeypatch.setattr(locked_folder, "_BY_HANDLE", False)
    monkeypatch.chdir(tmp_path)
    folder = Path("clusters/lab")
    folder.mkdir(parents=True)
    return folder


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def write(folder: str, lock: str | None, texts: Mapping[str, str] | None) -> Changes:
    """Write as a run does that read the folder just before."""
    with lock_folder(folder) as place:
        return output.write(place, lock, texts, Disk().inputs(folder))


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Reading.


def test_sources_are_read_in_order_of_path_and_as_they_are(cluster: Path) -> None:
    for name in (
        "z.yaml",
        "b/nodes.yml",
        "a.json",
        "b.yaml",
        "notes.txt",
        ".hidden.yaml",
        ".git/a.yaml",
        "rendered/a.yaml",
        "b/rendered/c.yaml",
    ):
        put(cluster / name, f"{name}\r\n")
    sources, refused = read_sources("clusters/lab")
    assert not refused
    wanted = ["a.json", "b.yaml", "b/nodes.yml", "b/rendered/c.yaml", "z.yaml"]
    assert list(sources) == [f"clusters/lab/{name}" for name in wanted]
    assert sources["clusters/lab/a.json"] == b"a.json\r\n"


def test_paths_are_as_the_user_would_type_them(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cluster / "sub/a.yaml")
    monkeypatch.chdir(cluster / "sub")
    assert list(read_sources(".")[0]) == ["a.yaml"]
    assert list(read_sources("..")[0]) == ["../sub/a.yaml"]


def test_a_link_within_the_folder_is_read(cluster: Path) -> None:
    put(cluster / ".data/nodes.yaml", "nodes")
    (cluster / "nodes.yaml").symlink_to(".data/nodes.yaml")
    assert read_sources("clusters/lab") == ({"clusters/lab/nodes.yaml": b"nodes"}, [])


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.symlink_to("../../secret.yaml"), "is a link that leaves the cluster's folder"),
        (lambda path: path.symlink_to("/etc"), "is a link that leaves the cluster's folder"),
        (lambda path: path.symlink_to("folder"), "is a link to a folder"),
        (lambda path: path.symlink_to("nowhere.yaml"), "is a link to nothing"),
        (lambda path: path.symlink_to("bad.yaml"), "is a link to nothing"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.write_text("x" * 11), "has 11 bytes, more than 10"),
    ],
)
def test_what_is_no_input_is_refused(
    cluster: Path, make: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_read, "LARGEST_FILE", 10)
    put(Path("secret.yaml"))
    (cluster / "folder").mkdir()
    put(cluster / "good.yaml")
    make(cluster / "bad.yaml")  # type: ignore[operator]  # a function of a path
    sources, refused = read_sources("clusters/lab")
    assert not sources
    assert [(each.code, each.at.path, each.message) for each in refused] == [
        ("IPC0107", "clusters/lab/bad.yaml", f"'bad.yaml' {problem}")
    ]


def test_a_link_to_a_folder_is_refused_whatever_its_name(cluster: Path) -> None:
    (cluster / "more").symlink_to("/etc")
    assert [each.at.path for each in read_sources("clusters/lab")[1]] == ["clusters/lab/more"]


def test_the_lock_is_read_as_it_is_and_through_no_link(cluster: Path) -> None:
    assert read_lock("clusters/lab") is None
    put(cluster / "ipam.lock", "{}\r\n")
    assert read_lock("clusters/lab") == b"{}\r\n"
    (cluster / "ipam.lock").rename(cluster / "other")
    (cluster / "ipam.lock").symlink_to("other")
    with pytest.raises(EnvironmentFailure, match="is a link"):
        read_lock("clusters/lab")


def test_clusters_are_the_folders_below_clusters(cluster: Path) -> None:
    for name in ("b", ".schemas"):
        (cluster.parent / name).mkdir()
    put(cluster.parent / "README.md")
    assert find() == ["clusters/b", "clusters/lab"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, "there is no folder clusters/"),
        ("mkdir", "has no cluster"),
        ("touch", "there is no folder clusters/"),
    ],
)
def test_no_clusters_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: str | None, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if make:
        getattr(Path("clusters"), make)()
    with pytest.raises(EnvironmentFailure, match=said):
        find()


# Writing.


def test_what_changed_is_written_and_what_no_longer_belongs_is_removed(cluster: Path) -> None:
    first = write("clusters/lab", "one\n", {"a/b/c.yaml": "c", "d.yaml": "d", "e/f.yaml": "f"})
    assert first == Changes(lock=True, written=("a/b/c.yaml", "d.yaml", "e/f.yaml"))
    second = write("clusters/lab", "one\n", {"d.yaml": "D", "e/f.yaml": "f"})
    assert second == Changes(written=("d.yaml",), removed=("a/b/c.yaml",))
    assert files(cluster) == {"ipam.lock": "one\n", "rendered/d.yaml": "D", "rendered/e/f.yaml": "f"}
    assert not (cluster / "rendered/a").exists()


def test_what_is_the_same_is_not_touched(cluster: Path) -> None:
    wanted = {"a.yaml": "a"}
    write("clusters/lab", "one\n", wanted)
    paths = (cluster / "ipam.lock", cluster / "rendered/a.yaml")
    for path in paths:
        os.utime(path, (1, 1))
    assert not write("clusters/lab", "one\n", wanted)
    assert [path.stat().st_mtime for path in paths] == [1, 1]


def test_compare_tells_what_write_would_do_and_does_nothing(cluster: Path) -> None:
    write("clusters/lab", "one\n", {"a.yaml": "a", "b.yaml": "b"})
    before = files(cluster)
    would = compare("clusters/lab", "two\n", {"b.yaml": "B", "c.yaml": "c"})
    assert would == Changes(lock=True, written=("b.yaml", "c.yaml"), removed=("a.yaml",))
    assert files(cluster) == before
    assert write("clusters/lab", "two\n", {"b.yaml": "B", "c.yaml": "c"}) == would


def test_line_ends_count(cluster: Path) -> None:
    write("clusters/lab", None, {"a.yaml": "a\n"})
    put(cluster / "rendered/a.yaml", "a\r\n")
    assert compare("clusters/lab", None, {"a.yaml": "a\n"}).written == ("a.yaml",)


def test_the_lock_alone(cluster: Path) -> None:
    put(cluster / "rendered/stays.yaml")
    assert write("clusters/lab", "one\n", None) == Changes(lock=True)
    assert write("clusters/lab", None, {}) == Changes(removed=("stays.yaml",))
    assert files(cluster) == {"ipam.lock": "one\n"}


def test_a_file_where_a_folder_was_and_the_other_way_round(cluster: Path) -> None:
    write("clusters/lab", None, {"a": "file", "b/c": "file"})
    write("clusters/lab", None, {"a/x": "file", "b": "file"})
    assert files(cluster / "rendered") == {"a/x": "file", "b": "file"}


def test_dot_files_are_foreign(cluster: Path) -> None:
    """Argo CD reads them."""
    put(cluster / "rendered/a/.argocd-source.yaml")
    write("clusters/lab", None, {"a/b.yaml": "b"})
    assert files(cluster / "rendered") == {"a/b.yaml": "b"}


def test_the_lock_is_written_first_and_a_killed_run_leaves_whole_files(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("clusters/lab", "one\n", {"a.yaml": "a", "b.yaml": "b", "gone.yaml": "g"})
    move = LockedFolder.move
    done: list[str] = []

    def killed(self: LockedFolder, name: str, path: str) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(path)
        move(self, name, path)

    with monkeypatch.context() as patch:
        patch.setattr(LockedFolder, "move", killed)
        with pytest.raises(KeyboardInterrupt):
            write("clusters/lab", "two\n", {"a.yaml": "A", "b.yaml": "B"})
    assert done == ["ipam.lock", "rendered/a.yaml"]
    assert files(cluster) == {
        "ipam.lock": "two\n",
        "rendered/a.yaml": "A",
        "rendered/b.yaml": "b",
        "rendered/gone.yaml": "g",
    }
    assert write("clusters/lab", "two\n", {"a.yaml": "A", "b.yaml": "B"}) == Changes(
        written=("b.yaml",), removed=("gone.yaml",)
    )


def test_what_a_killed_run_left_is_removed(cluster: Path) -> None:
    for name in (".ipamc-1.tmp", "rendered/.ipamc-22.tmp", "rendered/a/.ipamc-333.tmp"):
        put(cluster / name)
    assert write("clusters/lab", "one\n", {"a/b.yaml": "b"}).removed == ()
    assert files(cluster) == {"ipam.lock": "one\n", "rendered/a/b.yaml": "b"}


@pytest.mark.parametrize("link", ["rendered", "rendered/nodes", "rendered/old"])
def test_nothing_is_written_through_a_link(cluster: Path, link: str) -> None:
    outside = Path("outside")
    outside.mkdir()
    (cluster / link).parent.mkdir(exist_ok=True)
    (cluster / link).symlink_to(outside.resolve())
    for act in (write, compare):
        with pytest.raises(EnvironmentFailure, match=f"{link} is a link"):
            act("clusters/lab", "one\n", {"nodes/a.yaml": "a"})
    assert not files(outside)
    assert not (cluster / "ipam.lock").exists()


def test_a_link_to_a_file_is_replaced_not_followed(cluster: Path) -> None:
    outside = put(Path("outside.yaml"), "a")
    (cluster / "rendered").mkdir()
    for name in ("a.yaml", "old.yaml"):
        (cluster / "rendered" / name).symlink_to(outside.resolve())
    assert write("clusters/lab", None, {"a.yaml": "a"}) == Changes(written=("a.yaml",), removed=("old.yaml",))
    assert not (cluster / "rendered/a.yaml").is_symlink()
    assert outside.read_text() == "a"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/./b", ".git/config", "a\\b", "a\0b"]
)
def test_a_path_that_leaves_the_tree_is_our_bug(cluster: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is not a path below rendered/"):
        write(cluster.as_posix(), None, {path: "x"})


@pytest.mark.parametrize("cluster", ["handles"], indirect=True)
def test_one_run_at_a_time(cluster: Path) -> None:
    with (
        lock_folder("clusters/lab"),
        pytest.raises(EnvironmentFailure, match="another ipamc is running"),
        lock_folder("clusters/lab"),
    ):
        pytest.fail("two runs in one folder")
    with lock_folder("clusters/lab"):
        assert cluster.is_dir()


# Small files.


def test_create_never_writes_over_anything(cluster: Path) -> None:
    assert disk.create("clusters/new/a.yaml", "a")
    assert not disk.create("clusters/new/a.yaml", "b")
    assert files(cluster.parent) == {"new/a.yaml": "a"}


def test_text_that_is_not_utf8_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(EnvironmentFailure, match="not UTF-8"):
        disk.read_text(str(tmp_path / "a"))
    assert disk.read_text(str(tmp_path / "b")) == ""


def test_assets_are_found_in_a_checkout_and_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "__file__", str(tmp_path / "compiler/ipamc/workspace/disk.py"))
    (tmp_path / "compiler/ipamc").mkdir(parents=True)
    with pytest.raises(EnvironmentFailure, match="incomplete"):
        disk.assets("schemas")
    put(tmp_path / "schemas/a.json", "checkout")
    assert disk.assets("schemas") == {"a.json": "checkout"}
    put(tmp_path / "compiler/ipamc/schemas/a.json", "installed")
    assert disk.assets("schemas") == {"a.json": "installed"}
