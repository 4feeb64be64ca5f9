"""Options and settings of the test run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support import altered, depth

settings.register_profile(
    "default",
    deadline=None,
    max_examples=50 if depth.ALL else 15,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
if "HYPOTHESIS_PROFILE" not in os.environ:
    # Hypothesis also draws the constants of all loaded modules. An edit anywhere, and the tests that a worker ran before, would
    # change the cases of every law; each run has to play the same ones.
    same = providers.GLOBAL_CONSTANTS
    mock.patch.object(providers, "_get_local_constants", return_value=same, create=True).start()
settings.register_profile(
    "soak", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores it for what it runs in the background, and programs of tests would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or "PYTEST_XDIST_WORKER" in os.environ:
    # As under `nohup`: this process outlives a hangup, and programs of tests begin as in a terminal.
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update",
        action="store_true",
        help="rewrite the expectations of case files from what the compiler does now",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the most part of deep tests to `make test-all`."""
    items[:], left = depth.part_of(items)
    config.hook.pytest_deselected(items=left)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an update by several processes: each rewrites whole files."""
    if config.getoption("--update") and config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--update rewrites whole files: run it in one process, without -n")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at thousands of tests, which live as long as the run, again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session", autouse=True)
def one_processor() -> Iterator[None]:
    """Let ipamc see one processor: it starts further processes only where a test asks for them, each of which takes half a second to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
        yield


@pytest.fixture(autouse=True)
def none_outlives_its_test() -> Iterator[None]:
    yield
    altered.end_all()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the documentation's site, built once in a process: some 3 s."""
    from tools.website.build import build

    into = tmp_path_factory.mktemp("site")
    build(into)
    return into / "site"
