#!/usr/bin/env python3
"""How long `ipamc report` takes, how large its page is, and how long a Chromium takes to open it.

    .venv/bin/python tools/benchmarks/report.py [NODES...] [--runs 5]

The lock has a history of six commits, in each of which a part of the nodes joins. "open" is from the start of the
navigation until the page has painted what is on the screen and answers: a frame after its script ended. It takes
the Chromium that CHROMIUM names, or the one that .ci/chromium finds. Least of the runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from inputs import start, write_inventory
from measure import git, ipamc, least
from playwright.sync_api import Browser, sync_playwright
from tables import table

NODES = (300, 5_000, 100_000)
STEPS = 6
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
OPENED = """() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0)))"""


def main() -> None:
    """Print a row for each number of nodes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int, default=NODES)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or _found()
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for count in asked.nodes:
            with tempfile.TemporaryDirectory() as scratch:
                rows.append(_row(Path(scratch), count, asked.runs, browser))
        browser.close()
    print(table(("nodes", "seconds to make", "MB of memory", "KiB of the page", "seconds to open"), rows))


def _found() -> str:
    script = Path(__file__).parents[2] / ".ci" / "chromium"
    return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _row(top: Path, count: int, runs: int, browser: Browser) -> list[str]:
    folder = start(top)
    git(top, "init", "--quiet")
    for step in range(1, STEPS + 1):
        write_inventory(folder, "slim JSON", range(count * step // STEPS))
        ipamc(top, "lock")
        git(top, "add", "clusters/bench/ipam.lock")
        git(top, "commit", "--quiet", "--message", f"step {step}")
    path = top / "page.html"
    made = least([ipamc(top, "report", "--write", str(path)) for _ in range(runs)])
    opened = min(_open(browser, path) for _ in range(runs))
    return [
        f"{count:,}",
        f"{made.wall:.2f}",
        f"{made.memory / 1e6:.0f}",
        f"{path.stat().st_size // 1024:,}",
        f"{opened:.2f}",
    ]


def _open(browser: Browser, path: Path) -> float:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    seconds = page.evaluate(OPENED) / 1000
    page.close()
    return float(seconds)


if __name__ == "__main__":
    main()
