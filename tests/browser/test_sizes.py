"""Pages of 8 to 100,000 nodes: complete, of a size that one can send, and the same picture as before."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from tests.browser import racks
from tests.browser.conftest import Open
from tests.support.in_process import ipamc

PICTURES = Path(__file__).parent / "pictures"
LOUD = 40
"""A difference of a pixel, of 255, that text in another font does not make in a picture of a sixth of the size."""
TOLERANCE = 0.025
"""The share of pixels that may differ so much."""


def page_of(folder: Path, nodes: int) -> Path:
    racks.write(folder, nodes)
    path = folder / "page.html"
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1795305600"}  # 2026-11-22
    done: subprocess.CompletedProcess[str] = ipamc(
        "report", "--write", str(path), cwd=folder, environment=environment
    )
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.deep
@pytest.mark.parametrize(("nodes", "most"), [(5_000, 2 << 20), (100_000, 12 << 20)])
def test_every_line_is_on_a_large_page(nodes: int, most: int, tmp_path: Path, opened: Open) -> None:
    path = page_of(tmp_path, nodes)
    assert path.stat().st_size < most
    page = opened(path)
    drawn, last = page.evaluate(
        """() => {
            const [view] = page.views, all = view.cluster.lines.blocks;
            const seen = view.maps.map((map) => map.layout()).flatMap((layout) => layout.range.mine.filter(
                (index) => [...rectangles(layout, ...cellsOf(layout, all[index]))].length));
            return [new Set(seen).size, cidrText(all[all.length - 1])];
        }"""
    )
    rows = (tmp_path / "clusters/lab/ipam.lock").read_text().splitlines()
    assert drawn == len(rows) - 1
    assert f'"block":"{last}"' in rows[-1]
    page.fill("#search", last.partition("/")[0])
    page.press("#search", "Enter")
    assert f"clusters/lab/ipam.lock:{len(rows)}" in page.locator("#panel").inner_text()


@pytest.mark.deep
@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("nodes", [8, 300])
def test_the_page_looks_as_it_did(
    nodes: int, width: int, tmp_path: Path, opened: Open, *, update: bool
) -> None:
    """Small pictures of the whole page. After a change that is wanted: pytest --update, and look at them."""
    page = opened(page_of(tmp_path, nodes), width)
    for look in ("light", "dark", "print"):
        page.emulate_media(
            color_scheme="dark" if look == "dark" else "light", media="print" if look == "print" else "screen"
        )
        page.evaluate(
            "(look) => window.dispatchEvent(new Event(look === 'print' ? 'beforeprint' : 'resize'))", look
        )
        page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        taken = Image.open(io.BytesIO(page.screenshot(full_page=True, scale="css"))).convert("RGB")
        small = taken.resize((width // 6, round(taken.height / 6)), Image.Resampling.BOX)
        path = PICTURES / f"{nodes}-{width}-{look}.png"
        if update:
            path.parent.mkdir(exist_ok=True)
            small.save(path, optimize=True)
        with Image.open(path) as opened_picture:
            before = opened_picture.convert("RGB")
        assert abs(before.height - small.height) < 0.1 * before.height
        difference = ImageChops.difference(before, small.resize(before.size))
        loud = max(difference.split(), key=lambda band: sum(band.histogram()[LOUD:]))
        share = sum(loud.histogram()[LOUD:]) / (before.width * before.height)
        assert share < TOLERANCE, path.name
