"""ipamc in environments that differ from a developer's: the same output, byte by byte, of every verb."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from ipamc.read.ansible import read_inventory
from ipamc.read.routes import read_routes
from tests.importing import test_ansible
from tests.support import dumps

CHECKOUT = Path(__file__).parents[2]
NO_LIBYAML = (
    "import runpy, sys; sys.modules['yaml._yaml'] = None; runpy.run_module('ipamc', None, '__main__', True)"
)
LINES = (
    "compile --check", "plan", "plan --base HEAD", "show", "test", "verify --base HEAD", "report --write page.html", "why bj-001",
    "which bj-001", "export netbox", "import lab dump.json --mode cluster-pool --cilium-version 1.18", "check dump.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a cluster, and a dump of another one."""
    top = tmp_path_factory.mktemp("repository")
    shutil.copytree(CHECKOUT / "clusters/zones", top / "clusters/zones")
    (top / "dump.json").write_text(dumps.kubectl(dumps.node("a"), dumps.cilium_node("a", "10.0.0.0/24")))
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=top, check=True)
    said(top, "init lab")  # it also tells git of the merge driver, in .git/config
    return top


def said(top: Path, line: str, *options: str, **environment: str) -> tuple[int, str, str]:
    """Run ipamc as a process; return its exit code, stdout and stderr, and take back what it wrote."""
    done = subprocess.run(
        [sys.executable, *(options or ("-m", "ipamc")), *line.split()],
        cwd=top, env={**os.environ, "COLUMNS": "80", **environment}, capture_output=True, check=False, text=True,
    )  # fmt: skip
    subprocess.run(["git", "clean", "-fdq"], cwd=top, check=True)
    return done.returncode, done.stdout, done.stderr


@cache
def usual(top: Path, line: str) -> tuple[int, str, str]:
    return said(top, line)


HELP = """
from ipamc.cli import VERBS, main
for words in ([], *([verb] for verb in VERBS), ["ci", "github"], ["apply"], ["export", "netbox"]):
    main([*words, "--help"])
"""


@pytest.mark.parametrize("line", LINES[:4])
def test_without_docstrings_and_assertions(repository: Path, line: str) -> None:
    assert said(repository, line, PYTHONOPTIMIZE="2") == usual(repository, line)


def test_help_without_docstrings(repository: Path) -> None:
    """PYTHONOPTIMIZE=2 strips docstrings, and help texts are docstrings."""
    assert said(repository, "", "-c", HELP, PYTHONOPTIMIZE="2") == said(repository, "", "-c", HELP)


@pytest.mark.parametrize("line", LINES)
def test_without_libyaml(repository: Path, line: str) -> None:
    """PyYAML without its C loader, as pip builds it where libyaml has no headers."""
    assert said(repository, line, "-c", NO_LIBYAML) == usual(repository, line)


@pytest.mark.parametrize("line", LINES[:6])
def test_without_a_home(repository: Path, line: str) -> None:
    """A home in which nothing can be written, nor found."""
    there = {
        "HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null",
        "XDG_CONFIG_HOME": "/dev/null",
        "TMPDIR": "/dev/null",
    }
    assert said(repository, line, **there) == usual(repository, line)


@pytest.mark.parametrize("line", LINES[:4])
def test_isolated(repository: Path, line: str) -> None:
    """`python -I` ignores the environment, and imports nothing from the working directory."""
    start = f"import runpy, sys; sys.path.insert(0, {str(CHECKOUT / 'compiler')!r}); runpy.run_module('ipamc', None, '__main__', True)"
    assert said(repository, line, "-I", "-c", start) == usual(repository, line)


# Windows line ends


def windows(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("line", LINES)
def test_inputs_with_line_ends_of_windows(repository: Path, line: str, tmp_path: Path) -> None:
    """As git with core.autocrlf checks them out: all but lock and rendered files, for which `ipamc init` writes eol=lf."""
    shutil.copytree(repository, tmp_path / "clone")
    top = tmp_path / "clone"
    for path in (top / "dump.json", *(top / "clusters/zones").glob("*.*")):
        if path.name != "ipam.lock":
            windows(path)
    assert said(top, line) == usual(repository, line)


def test_a_lock_with_line_ends_of_windows_is_refused_with_a_way_out(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository, tmp_path / "clone")
    windows(tmp_path / "clone/clusters/zones/ipam.lock")
    code, _, text = said(tmp_path / "clone", "compile zones")
    assert code == 1
    assert "IPC0409" in text
    assert "run ipamc init, whose .gitattributes prevents this" in text


def test_a_list_of_clusters_with_line_ends_of_windows(repository: Path) -> None:
    (repository / "names").write_bytes(b"zones\r\n\r\n")
    assert said(repository, "plan --clusters-from names") == said(repository, "plan zones")


@pytest.mark.parametrize(
    "path", sorted((CHECKOUT / "tests/read/routes").iterdir()), ids=lambda path: path.name
)
def test_a_routing_table_with_line_ends_of_windows(path: Path) -> None:
    unix, dos = (read_routes("a", path.read_bytes().replace(b"\n", end)) for end in (b"\n", b"\r\n"))
    assert (dos.routes, dos.unread) == (unix.routes, unix.unread)


@pytest.mark.parametrize("text", [test_ansible.INI, test_ansible.YAML])
def test_an_inventory_of_ansible_with_line_ends_of_windows(text: str) -> None:
    unix, dos = (read_inventory("a", text.replace("\n", end).encode()) for end in ("\n", "\r\n"))
    assert dos == unix


@pytest.mark.parametrize("name", ["dump.json", "dump.yaml"])
def test_a_dump_with_line_ends_of_windows(repository: Path, name: str) -> None:
    whole = json.loads((repository / "dump.json").read_text())
    text = (repository / "dump.json").read_text() if name == "dump.json" else yaml.safe_dump(whole)
    found = []
    for end in ("\n", "\r\n"):
        (repository / name).write_bytes(text.replace("\r\n", "\n").replace("\n", end).encode())
        found.append(said(repository, f"check {name}"))
    assert found[0] == found[1]
