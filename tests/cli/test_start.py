"""What a run imports: a start is most of the time of a small cluster, so a run imports only what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import CLUSTER

RUN = "import atexit, sys, ipamc.cli; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); ipamc.cli.main()"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", "lab"))
    return tmp_path


def imported(repository: Path, words: str, **environment: str) -> set[str]:
    """Return the modules that are there when a run ends."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words.split()],
        cwd=repository,
        env={**{key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


HEAVY = {"msgspec", "yaml", "jinja2", "jsonschema", "jsonschema_rs", "subprocess", "hashlib"}


def test_the_version_and_the_names_of_verbs_import_no_library_but_click(repository: Path) -> None:
    words = {"_IPAMC_COMPLETE": "bash_complete", "COMP_WORDS": "ipamc com", "COMP_CWORD": "1"}
    for found in (imported(repository, "--version"), imported(repository, "", **words)):
        assert {name for name in found if name.startswith("ipamc.")} <= {
            "ipamc.__main__",
            "ipamc._version",
            "ipamc.cli",
            "ipamc.cli.command",
            "ipamc.model",
            "ipamc.model.progress",
            "ipamc.workspace",
            "ipamc.workspace.signals",
        }
        assert not found & HEAVY


def test_names_of_clusters_are_completed_without_the_compiler(repository: Path) -> None:
    words = {"_IPAMC_COMPLETE": "bash_complete", "COMP_WORDS": "ipamc compile ", "COMP_CWORD": "2"}
    found = imported(repository, "", **words)
    assert not found & (HEAVY - {"msgspec"})
    assert "ipamc.pipeline" not in found
    assert "ipamc.report.finding_documents" not in found


def test_a_compile_imports_neither_plan_nor_processes(repository: Path) -> None:
    """The reports of findings that nobody asked for are not imported either."""
    found = imported(repository, "compile")
    assert "ipamc.pipeline" in found
    parts = (
        "ipamc.review.diff",
        "ipamc.review.runbook",
        "ipamc.report.finding_documents",
    )
    assert [name for name in found if name.startswith(parts)] == []
    assert not found & {
        "subprocess",
        "jsonschema",
        "multiprocessing",
        "concurrent.futures",
        "ipamc.workspace.git_run",
    }
    # Of this cluster: it has no tests, space, policies, BGP, masquerading, Calico's selectors, JSON, or errors.
    needless = (
        "assertions.run check.address_space place.spaces read.space_index check.admission render.targets.cel"
    )
    needless += " check.bgp check.network render.targets.bgp check.follows model.selector.calico_tokens"
    needless += " read.syntax.json_stream read.hints place.allocate.shortage workspace.survey"
    assert not found & {f"ipamc.{name}" for name in needless.split()}
    assert len([name for name in found if name.startswith("ipamc")]) <= 136


def test_the_collector_does_not_go_through_what_was_imported(repository: Path) -> None:
    """Neither while modules are imported nor when the process ends."""
    code = "import atexit, gc, sys; found = []; gc.callbacks.append(lambda when, about: found.append(when)); from ipamc.__main__ import main; found.clear(); atexit.register(lambda: print(found.count('start'), gc.get_freeze_count() > 10_000, file=sys.stderr)); sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "compile"],
        cwd=repository,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    times, frozen = done.stderr.splitlines()[-1].split()
    assert int(times) < 5  # with the threshold of Python it is 30
    assert frozen == "True"
