"""A real Chromium, and pages in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = (
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Open = Callable[..., Page]
Blank = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the browser that .ci/chromium found."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    if not path:
        pytest.skip("no chromium here: .ci/chromium looks for one")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, headless=True, args=[*FLAGS])
        yield found
        found.close()


@pytest.fixture
def blank(browser: Browser) -> Iterator[Blank]:
    """Return a function that makes a page, and fails the test for what the browser complains about, or asks for that is not ours."""
    complaints: list[str] = []
    contexts = []

    def blank(
        ours: Callable[[str], bool], width: int = 1400, scheme: str = "light", *, script: bool = True
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=script,
        )
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: complaints.append(f"asks for {request.url}") if not ours(request.url) else None,
        )
        return page

    yield blank
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def opened(blank: Blank) -> Open:
    """Return a function that opens a page from the disk; it is one file, and nothing else may be asked for."""

    def opened(
        path: Path, width: int = 1400, scheme: str = "light", *, script: bool = True, to: str = ""
    ) -> Page:
        page = blank(lambda url: url.split("#")[0] == path.as_uri(), width, scheme, script=script)
        page.goto(path.as_uri() + to)
        if script:
            page.wait_for_selector("html[data-ready=yes]")
        return page

    return opened
