"""`ipamc report` in a real Chromium: what the page says is what the lock and `ipamc show` say, for everybody."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from ipamc.report.page import About, render
from ipamc.report.page_data import Part
from ipamc.review.address_map import map_of, versions_of
from ipamc.workspace.disk import assets
from tests.browser.conftest import Open
from tests.support.examples import everything
from tests.support.in_process import ipamc

EXAMPLES = Path(__file__).parents[2] / "clusters"

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
  quarantineDays: 7
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  nodeSelector: rack == "a"
  ipv4: {cidrs: [10.1.0.0/22], blockSize: 26}
  reserved: [{cidr: 10.1.3.0/25, reason: "gateways <b>, NET-7"}]
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: b}
spec:
  nodeSelector: rack == "b"
  ipv4: {cidrs: [10.2.0.0/24], blockSize: 26}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: nobody}
spec:
  nodeSelector: rack == "z"
  ipv4: {cidrs: [10.3.0.0/24], blockSize: 26}
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository that is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git("init", "--quiet", "--initial-branch=main")
    return tmp_path


def git(*arguments: str, day: str = "") -> None:
    """Run git. Commits are of noon of this day."""
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    dates = {"GIT_COMMITTER_DATE": f"{day}T12:00:00Z"} if day else {}
    subprocess.run(["git", *who, *arguments], check=True, env=os.environ | dates, stdout=subprocess.DEVNULL)


def commit(nodes: dict[str, dict[str, str]], day: str, subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a lock of these nodes, by name with their labels."""
    folder = Path("clusters/lab")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    items = [{"name": name, "labels": labels} for name, labels in nodes.items()]
    inventory = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": items}
    (folder / "nodes.json").write_text(json.dumps(inventory))
    seconds = subprocess.run(["date", "-ud", day, "+%s"], capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds.strip())
    done = run("lock", "lab", "--leave", "all")
    assert done.returncode == 0, done.stderr
    git("add", "--all")
    git("commit", "--quiet", "--message", subject, day=day)


@pytest.fixture
def three_weeks(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commit a history: three nodes; one more and one less a week later; two more a week after that."""
    racks = {f"n{number}": {"rack": "b" if number == 2 else "a", "zone": "z1"} for number in range(1, 7)}
    chosen = [("n1", "n2", "n3"), ("n1", "n2", "n4"), ("n1", "n2", "n4", "n5", "n6")]
    days = ["2026-11-01", "2026-11-08", "2026-11-18"]
    for names, day in zip(chosen, days, strict=True):
        commit({name: racks[name] for name in names}, day, f"nodes of {day}", monkeypatch)
    return work


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ipamc(*arguments, cwd=Path.cwd(), environment=os.environ)


def report(*arguments: str) -> Path:
    path = Path("page.html").resolve()
    done = run("report", *arguments, "--write", str(path))
    assert done.returncode == 0, done.stderr
    return path


def panel(page: Page) -> str:
    return page.locator("#panel").inner_text()


def search(page: Page, text: str) -> str:
    page.fill("#search", text)
    page.press("#search", "Enter")
    return page.locator("#results").inner_text()


# What the page says


def test_the_page_has_the_numbers_of_show_and_the_lines_of_the_lock(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "clusters")
    monkeypatch.chdir(tmp_path)
    page = opened(report())
    shown = json.loads(run("show", "--output", "json", "--show-blocks").stdout)
    on_page = page.evaluate(
        """() => page.views.map((view) => ({
            cluster: view.cluster.name,
            pools: view.cluster.pools.map((pool) => ({
                pool: pool.name, family: `IPv${pool.family}`, blockSize: pool.size,
                addresses: pool.addresses, blocks: pool.blocks, room: pool.room,
                ranges: pool.ranges.map((range) => ({
                    cidr: range.cidr, addresses: range.addresses, blocks: range.blocks,
                    lines: linesIn(range).filter((index) => view.alive[index]).map((index) => ({
                        block: cidrText(view.cluster.lines.blocks[index]),
                        node: view.cluster.nodes[view.cluster.lines.node[index]],
                        state: STATE_NAMES[view.cluster.lines.state[index]],
                    })),
                })),
            })),
        }))"""
    )
    assert [found["cluster"] for found in on_page] == [found["cluster"] for found in shown["clusters"]]
    assert len(on_page) == len(list(EXAMPLES.iterdir()))
    for found, expected in zip(on_page, shown["clusters"], strict=True):
        for pool, wanted in zip(found["pools"], expected["pools"], strict=True):
            assert same(pool, wanted) == pool


def same(pool: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what `show` says of a pool, in the fields of the page."""
    cut = {key: wanted[key] for key in pool}
    fields = ("block", "node", "state")
    cut["ranges"] = [
        {
            **{key: part[key] for key in ("cidr", "addresses", "blocks")},
            "lines": [{key: line[key] for key in fields} for line in part["lines"]],
        }
        for part in wanted["ranges"]
    ]
    return cut


@pytest.mark.usefixtures("three_weeks")
def test_who_has_an_address(opened: Open) -> None:
    page = opened(report())
    assert "n1 · 10.1.0.0/26 · held" in search(page, "10.1.0.7")
    assert page.locator("#panel h2").inner_text() == "n1"
    assert "clusters/lab/ipam.lock:2, since 2026-11-01 or before" in panel(page)
    assert 'nodeSelector rack == "a"' in panel(page)
    assert "ipamc why n1 lab" in panel(page)
    assert "10.1.3.9 is reserved (gateways <b>, NET-7), in 10.1.0.0/22 of pool a" in search(page, "10.1.3.9")
    assert "10.1.2.0/24 is free, in 10.1.0.0/22 of pool a" in search(page, "10.1.2.0/24")
    assert "10.9.0.1 is in no pool and no lock" in search(page, "10.9.0.1")
    assert "n3 · 10.1.0.64/26 · quarantined since 2026-11-08" in search(page, "n3")
    assert "no node, label or address matches nowhere" in search(page, "nowhere")
    assert search(page, "rack=b").splitlines() == ["n2 · 10.2.0.0/26 · held"]
    assert len(search(page, "pool=a").splitlines()) == 4
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_link_leads_to_a_node(opened: Open) -> None:
    path = report()
    page = opened(path, to="#10.2.0.9")
    assert "n2" in panel(page)
    page.locator("details.pool").nth(1).locator("summary").first.click()  # closed
    page.locator('table.pools a[href="#pool-0-1"]').click()
    assert page.locator("details.pool").nth(1).get_attribute("open") is not None


@pytest.mark.usefixtures("three_weeks")
def test_what_did_last_week_change(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(report())
    said = page.locator(".week").inner_text()
    assert said == "In the last 7 days (since the version of 2026-11-08): 2 nodes got blocks."
    page.locator(".time summary").click()
    rows = page.locator(".time tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["2026-11-18", "2026-11-08"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")  # 2026-11-29
    quiet = opened(report()).locator(".week").inner_text()
    assert quiet.startswith("Nothing changed in the last 7 days; the last change was on 2026-11-18: ")


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_the_slider_shows_each_version(opened: Open) -> None:
    page = opened(report())
    for number, names in enumerate((["n1", "n2", "n3"], ["n1", "n2", "n3", "n4"])):
        page.locator("input[type=range]").fill(str(number))
        on_map = page.evaluate(
            """() => [...page.views[0].cluster.lines.node]
                .filter((_, index) => page.views[0].alive[index]).map((node) => page.views[0].cluster.nodes[node])"""
        )
        assert sorted(on_map) == names
    page.locator("select[id^=since]").select_option("before")
    changed = page.locator(".changed").inner_text()
    assert changed.endswith(": 1 node got blocks, 1 node left.")
    assert "removed" in page.locator(".legend").inner_text()


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_which_pools_take_whom(opened: Open) -> None:
    page = opened(report())
    assert "1 pool without a node in the inventory: nobody" in page.inner_text("main")
    room = page.locator(".by-label tbody tr").all_inner_texts()
    assert [row.split("\t")[:3] for row in room] == [["a", "4", "a"], ["b", "1", "b"]]


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_pools_without_reasons_find_their_nodes(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons are left out where pools and groups of nodes are very many."""
    monkeypatch.setattr("ipamc.review.address_map.MAP_REASONS", 0)
    page = opened(report())
    assert [line.split(" ")[0] for line in search(page, "pool=a").splitlines()] == ["n1", "n4", "n5", "n6"]
    search(page, "n1")
    assert "first: a" in panel(page)


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_plan_shows_before_and_after(opened: Open) -> None:
    path = Path("plan.html").resolve()
    path.write_text(run("plan", "--base", "HEAD~1", "--output", "html").stdout)
    page = opened(path)
    assert page.locator("#headline").inner_text() == "0 renumbered · +2 · −0 · 3 unchanged"  # noqa: RUF001 - a minus
    added = page.locator("details.added")
    assert added.locator("summary").inner_text() == "2 added: n5, n6"
    assert not added.locator("tbody").is_visible()
    added.locator("summary").click()
    assert added.locator("tbody tr").all_inner_texts()[0].startswith("n5\t10.1.0.192/26\ta\t")
    assert page.locator(".changed").inner_text() == "Since before: 2 nodes got blocks."
    lit = "() => [...page.views[0].view().lit].map((index) => page.views[0].cluster.nodes[page.views[0].cluster.lines.node[index]])"
    assert sorted(page.evaluate(lit)) == ["n5", "n6"]


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_the_picture_of_a_plan(opened: Open) -> None:
    path = Path("plan.svg").resolve()
    path.write_text(run("plan", "--base", "HEAD~1", "--output", "svg").stdout)
    page = opened(path, script=False)
    titles = page.locator("g:has(rect.new) title").all_text_contents()
    assert titles == ["10.1.0.192/26 of n5: held", "10.1.1.0/26 of n6: held"]
    assert page.locator("rect.same").count() == 6  # n1, n3 and n4, before and after


@pytest.mark.deep
def test_clusters_of_every_sort(opened: Open, tmp_path: Path) -> None:
    """All cases on one page: every mode, IPv6, blocks of other sizes, blocks outside the pools."""
    parts = []
    for name, compiled in everything().items():
        plan = compiled.plan
        versions = versions_of(plan.lock)
        versions.add_current(plan.lock)
        mapped = map_of(plan.scheme, plan.lock, plan.wants, "2026-11-22")
        parts.append(Part(map=mapped, versions=versions, lock_path=name))
    path = tmp_path / "page.html"
    path.write_text(
        render(parts, assets("templates/page"), About(title="all", subtitle="cases", day="2026-11-22"))
    )
    page = opened(path)
    on_maps = page.evaluate(
        """() => page.views.map((view) => {
            const all = view.cluster.lines.blocks, drawn = new Set(view.maps.flatMap((map) => {
                const layout = map.layout();
                return layout.range.mine.filter((index) => [...rectangles(layout, ...cellsOf(layout, all[index]))].some(([,, wide]) => wide > 0));
            }));
            return [...drawn].map((index) => cidrText(all[index])).sort();
        })"""
    )
    assert len(on_maps) > 300
    for part, drawn in zip(parts, on_maps, strict=True):
        ranges = [found.range.block for pool in part.map.pools for found in pool.use.ranges]
        inside = {str(line.block) for line in part.map.lock.lines if any(map(line.block.overlaps, ranges))}
        assert set(drawn) == inside, part.lock_path


# Hands


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_click_on_a_block(opened: Open) -> None:
    page = opened(report())
    x, y, wide, high = page.evaluate(
        """() => { const map = page.views[0].maps[0], layout = map.layout(), block = parseCidr("10.1.0.128/26");
            const [start, end] = cellsOf(layout, block); return [...rectangles(layout, start, end)][0]; }"""
    )
    canvas = page.locator("canvas").first
    canvas.hover(position={"x": x + wide / 2, "y": y + high / 2})
    assert page.locator("#tip").inner_text() == "n4 · 10.1.0.128/26 · held"
    canvas.click(position={"x": x + wide / 2, "y": y + high / 2})
    assert "n4" in panel(page)


@pytest.mark.usefixtures("three_weeks")
def test_a_keyboard_is_enough(opened: Open) -> None:
    page = opened(report())
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "search"
    page.locator("canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#live").inner_text() == "n4 · 10.1.0.128/26 · held"
    page.keyboard.press("Enter")
    assert "n4" in panel(page)
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_who_does_not_see_the_map_has_a_table(opened: Open) -> None:
    page = opened(report())
    assert all(page.locator("canvas").evaluate_all("(all) => all.map((one) => one.ariaLabel.length > 40)"))
    inputs = page.locator("input, select").evaluate_all(
        "(all) => all.filter((one) => !one.labels.length).length"
    )
    assert inputs <= 1  # the choice of "Room by" is in its heading
    page.locator(".as-table summary").first.click()
    page.wait_for_selector(".as-table tbody tr")
    rows = page.locator(".as-table").first.locator("tbody tr").all_inner_texts()
    assert rows[1].split("\t") == [
        "10.1.0.64/26",
        "n3",
        "quarantined since 2026-11-08, free since 2026-11-15",
        "3",
    ]


@pytest.mark.deep
@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.usefixtures("three_weeks")
def test_nothing_is_wider_than_the_window(opened: Open, width: int) -> None:
    page = opened(report(), width)
    search(page, "10.1.0.7")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


@pytest.mark.usefixtures("three_weeks")
def test_without_scripts_the_tables_are_there(opened: Open) -> None:
    page = opened(report(), script=False)
    assert page.locator("table.pools tbody tr").count() == 3
    assert "The maps, the search and the slider need the script" in page.inner_text("main")


# Colours


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_block_has_the_colour_of_its_state(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The pixels of the canvas, against the lock."""
    shutil.copytree(EXAMPLES, tmp_path / "clusters")
    monkeypatch.chdir(tmp_path)
    page = opened(report(), scheme=scheme)
    wrong = page.evaluate(
        """() => page.views.flatMap((view) => view.maps.flatMap((map) => {
            const layout = map.layout(), context = map.canvas.getContext("2d"), probe = document.createElement("canvas").getContext("2d");
            const rgb = (colour) => { probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1); return [...probe.getImageData(0, 0, 1, 1).data].join(); };
            return linesIn(map.range).filter((index) => view.alive[index]).flatMap((index) => {
                const { blocks, state } = view.cluster.lines, [start, end] = cellsOf(layout, blocks[index]);
                return [...rectangles(layout, start, end)].map(([x, y, wide, high]) => {
                    const seen = [...context.getImageData(x + wide / 2 - 0.5, y + high / 2, 1, 1).data].join();
                    return seen === rgb(page.palette.state[state[index]]) ? null : `${cidrText(blocks[index])}: ${seen}`;
                });
            }).filter(Boolean);
        }))"""
    )
    assert wrong == []


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_light_dark_and_print(opened: Open) -> None:
    path = report()
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert opened(path).evaluate(ground) == "rgb(255, 255, 255)"
    page = opened(path, scheme="dark")
    assert page.evaluate(ground) == "rgb(18, 23, 30)"
    page.locator("#theme").click()  # light
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.locator("#theme").click()  # dark
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.locator("#finder").is_hidden()
    assert page.evaluate("() => page.palette.state[0]") == "#2f6fb5"  # of the light theme


# Addresses


@pytest.mark.deep
def test_addresses_are_read_and_written_as_python_does(opened: Open, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "zones", tmp_path / "zones")
    path = tmp_path / "page.html"
    assert run("report", str(tmp_path / "zones"), "--write", str(path)).returncode == 0
    page = opened(path)
    draw = random.Random(6)  # noqa: S311 - the same cases in every run
    masks = [0xFFFF << shift for shift in range(0, 128, 16)]
    six = [
        ipaddress.IPv6Address(draw.getrandbits(128) & ~sum(draw.sample(masks, draw.randrange(8))))
        for _ in range(400)
    ]
    four = [ipaddress.IPv4Address(draw.getrandbits(32)) for _ in range(100)]
    texts = [*(text for one in six for text in (one.compressed, one.exploded)), *map(str, four)]
    read = page.evaluate(
        "(texts) => texts.map((text) => { const { family, value } = parseAddress(text); return addressText(family, value); })",
        texts,
    )
    assert read == [ipaddress.ip_address(text).compressed for text in texts]
    refused = ["10.0.0", "10.0.0.256", "1::2::3", "12345::", ":::", "g::", "1:2:3:4:5:6:7:8:9", "", "::1/129"]
    assert page.evaluate("(texts) => texts.map(parseCidr)", refused) == [None] * len(refused)
    cidrs = [f"{one}/{draw.randrange(129)}" for one in six] + [f"{one}/{draw.randrange(33)}" for one in four]
    networks = [str(ipaddress.ip_network(text, strict=False)) for text in cidrs]
    assert page.evaluate("(texts) => texts.map((text) => cidrText(parseCidr(text)))", cidrs) == networks


# Strangers


def test_text_of_strangers_is_text(work: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Messages of commits are anybody's, and no rule of Kubernetes holds in them."""
    bad = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> {{7*7}} ##[error] \u202e &lt;"
    commit({"n1": {"rack": "a"}}, "2026-11-01", bad, monkeypatch)
    commit({"n1": {"rack": "a"}, "n2": {"rack": "a"}}, "2026-11-08", f"again {bad}", monkeypatch)
    page = opened(report())
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("img").count() == 0
    page.locator(".time summary").click()
    shown = page.locator(".time tbody tr").first.inner_text()
    assert "again </script><script>window.hacked=1</script><img src=x" in shown
    assert "{{7*7}} ##[error]" in shown


@pytest.mark.usefixtures("three_weeks")
def test_the_policy_lets_nothing_else_in(browser: Browser) -> None:
    page = browser.new_page()
    page.goto(report().as_uri())
    page.evaluate(
        """() => {
            window.stopped = [];
            document.addEventListener("securitypolicyviolation", (event) => window.stopped.push(event.effectiveDirective));
            const script = document.createElement("script"), image = document.createElement("img"), bold = document.createElement("b");
            script.textContent = "window.hacked = 1";
            image.src = "http://localhost:1/x.png";
            bold.setAttribute("style", "color: red");
            document.body.append(script, image, bold);
        }"""
    )
    page.wait_for_function("() => window.stopped.length > 2")
    assert sorted(page.evaluate("() => window.stopped")) == ["img-src", "script-src-elem", "style-src-attr"]
    assert page.evaluate("() => window.hacked") is None
    page.close()


# Words and numbers that agree


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_block_whose_quarantine_is_over_is_free(opened: Open) -> None:
    """The map, the table, the caption and `show` say the same; of an older version the map says what was then."""
    # n3 is in quarantine from 2026-11-08 to 2026-11-15
    page = opened(report())
    states = "() => [...page.views[0].cluster.lines.since.keys()].map((index) => STATE_NAMES[page.views[0].cluster.lines.state[index]])"
    assert page.evaluate(states) == ["quarantine over"]
    caption = page.locator("figcaption").first
    assert caption.inner_text() == "10.1.0.0/22: 4 blocks held, 10 free, 37 % used."
    assert "quarantine over" in page.locator(".legend").inner_text()
    assert page.locator("table.pools th:has-text('quarantined')").count() == 0
    page.locator("input[type=range]").fill("1")
    assert page.evaluate(states) == ["quarantined"]
    assert caption.inner_text() == "10.1.0.0/22: 2 blocks held then."
    assert page.locator(".time .note").inner_text().startswith("The maps below show this version")
    shown = json.loads(run("show", "--output", "json").stdout)["clusters"][0]["pools"][0]
    assert (shown["addresses"]["quarantined"], shown["blocks"]["free"], shown["room"]) == (0, 10, 10)


@pytest.mark.deep
def test_pools_are_in_the_order_of_show(work: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """The one that is full first stands first: of two that are as full, the one with less room."""
    commit(
        {f"n{number}": {"rack": "ab"[number % 2]} for number in range(6)}, "2026-11-01", "six", monkeypatch
    )
    page = opened(report())
    listed = page.locator("table.pools tbody a").all_inner_texts()
    words = [line.split()[0] for line in run("show").stdout.splitlines() if line.strip()]
    shown = [word for word in words if word in {"a", "b", "nobody"}][:3]
    assert listed == shown == ["b", "a", "nobody"]
    assert page.locator(".by-label tbody th").all_inner_texts() == ["b", "a"]


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_an_answer_is_not_behind_the_list_of_results(opened: Open) -> None:
    """The list goes when an answer opens, the keyboard goes there, and Escape leads back to the search."""
    page = opened(report())
    focus = "() => document.activeElement.id"
    search(page, "10.1.0.7")
    assert page.locator("#results").is_hidden()
    assert page.evaluate(focus) == "panel"
    page.keyboard.press("Escape")
    assert page.evaluate(focus) == "search"
    page.fill("#search", "pool=a")
    page.wait_for_selector("#results button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "n4" in panel(page)
    page.keyboard.press("Escape")
    page.fill("#search", "pool=a")
    page.wait_for_selector("#results button")
    page.locator("h1").click()
    assert page.locator("#results").is_hidden()


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_pool_is_not_below_the_head_of_the_page(opened: Open) -> None:
    page = opened(report())
    page.set_viewport_size({"width": 1400, "height": 420})
    page.locator('table.pools a[href="#pool-0-0"]').click()
    top = page.locator("#pool-0-0").evaluate("(pool) => pool.getBoundingClientRect().top")
    head = page.locator("header.top").evaluate("(head) => head.getBoundingClientRect().bottom")
    assert head <= top < head + 40


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_map_on_paper_is_as_wide_as_paper(opened: Open) -> None:
    page = opened(report())
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("() => page.views[0].maps.map((map) => map.layout().width)") == [700] * 3
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_function("() => page.views[0].maps[0].layout().width > 1000")


@pytest.mark.deep
def test_a_cluster_that_is_refused_or_has_no_lock_is_told(
    work: Path,  # noqa: ARG001
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit({"n1": {"rack": "a"}}, "2026-11-01", "one", monkeypatch)
    shutil.copytree("clusters/lab", "clusters/new")
    Path("clusters/new/ipam.lock").unlink()
    Path("clusters/new/cluster.yaml").write_text(CLUSTER.replace("name: lab", "name: new"))
    Path("clusters/odd").mkdir()
    done = run("report", "--write", "page.html")
    assert done.returncode == 1
    page = opened(Path("page.html").resolve())
    assert page.locator(".failed").inner_text() == "clusters/odd could not be read: not on this page"
    assert "0 nodes with 0 blocks; 1 node in the inventory without a block; " in page.inner_text("#cluster-1")


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_letters_typed_before_enter_do_not_bring_the_list_back(opened: Open) -> None:
    page = opened(report())
    page.fill("#search", "10.1.0.7")
    page.press("#search", "Enter")
    page.wait_for_timeout(400)  # longer than the page waits for more letters
    assert page.locator("#results").is_hidden()


@pytest.mark.deep
def test_room_by_label_counts_a_pool_of_two_families_once(  # one node has blocks of both
    work: Path,  # noqa: ARG001
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = CLUSTER.replace("quarantineDays: 7", "ipFamilies: [IPv4, IPv6]").replace(
        "{cidrs: [10.1.0.0/22], blockSize: 26}",
        '{cidrs: [10.1.0.0/22], blockSize: 26}\n  ipv6: {cidrs: ["fd00::/48"], blockSize: 64}',
    )
    both = both.split("---\napiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: b}")[0]
    monkeypatch.setattr("tests.browser.test_report.CLUSTER", both)
    commit(
        {name: {"rack": "a", "zone": zone} for name, zone in (("n1", "y"), ("n2", "z"))},
        "2026-11-01",
        "begin",
        monkeypatch,
    )
    shown = json.loads(run("show", "--output", "json").stdout)["clusters"][0]["pools"]
    page = opened(report())
    rows = [row.split("\t") for row in page.locator(".by-label tbody tr").all_inner_texts()]
    assert [(row[0], row[3].strip(), row[4]) for row in rows] == [(zone, "25 %", "12") for zone in ("y", "z")]
    assert {pool["room"] for pool in shown} == {12}
    table = page.locator("table.pools tbody tr").all_inner_texts()
    assert ["<1 %" in row for row in table] == [False, True]
    assert "<1 % used" in page.inner_text("main")


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_a_pool_that_was_renamed_keeps_its_trend(opened: Open) -> None:
    path = Path("clusters/lab/cluster.yaml")
    path.write_text(path.read_text().replace("metadata: {name: a}", "metadata: {name: renamed}"))
    page = opened(report())
    trend = page.locator("details", has_text="renamed").first.locator(".trend").inner_text()
    assert trend.strip() == "2 → 4 blocks since 2026-11-01"


@pytest.mark.deep
def test_names_that_the_page_has_itself(work: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    names = ("live", "valueof", "constructor", "panel")
    labels = {"rack": "a", "constructor": "y", "hasOwnProperty": "x", "a.io/zone": "far", "zone": "near"}
    commit(dict.fromkeys(names, labels), "2026-11-01", "begin", monkeypatch)
    path = report()
    for name in ("live", "panel"):
        assert name in panel(opened(path, to=f"#{name}"))
    page = opened(path)
    assert len(search(page, "zone=near").splitlines()) == 4
    assert len(search(page, "hasOwnProperty=x").splitlines()) == 4
    assert "no node" in search(page, "zone=far")
    search(page, "constructor")
    assert "constructor\ny" in panel(page).replace("\t", "\n")


@pytest.mark.deep
def test_a_block_of_very_many_rows_is_not_said_to_be_free(
    work: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = CLUSTER.replace("{cidrs: [10.1.0.0/22], blockSize: 26}", "{cidrs: [10.0.0.0/12], blockSize: 28}")
    wide = wide.split("---\napiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: b}")[0]
    monkeypatch.setattr("tests.browser.test_report.CLUSTER", wide)
    commit({"n1": {"rack": "a"}}, "2026-11-01", "begin", monkeypatch)
    lines = [
        {"block": block, "pool": "a", "node": node}
        for node, block in (("n1", "10.0.0.0/13"), ("n2", "10.8.0.0/32"))
    ]
    lock = work / "clusters/lab/ipam.lock"
    head = lock.read_text().splitlines()[0]
    lock.write_text("\n".join([head, *(json.dumps(line, separators=(",", ":")) for line in lines), ""]))
    page = opened(report(), width=400)
    said = page.evaluate(
        """() => {
          const said = [], fill = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text) { said.push(text); };
          for (const map of page.maps.values()) map.paint();
          CanvasRenderingContext2D.prototype.fillText = fill;
          return said.filter((text) => text.includes(" block"));
        }"""
    )
    assert [text.partition(": ")[0].split(" ", 2)[2] for text in said] == [
        "in a larger block",
        "without a node",
    ]


@pytest.mark.deep
@pytest.mark.usefixtures("three_weeks")
def test_many_ranges_and_lines_of_any_size_find_each_other(opened: Open) -> None:
    page = opened(report())
    differ = page.evaluate(
        """() => {
          const { cluster } = page.views[0], texts = ["10.1.0.0/16", "10.1.0.0/22", "10.1.0.64/26", "10.1.0.65/32", "10.2.0.0/30", "0.0.0.0/0", "11.0.0.0/8"];
          const all = [...cluster.lines.blocks.keys()];
          return texts.filter((text) => {
            const block = parseCidr(text), brute = all.filter((index) => overlap(cluster.lines.blocks[index], block));
            return JSON.stringify(linesIn({ block, cluster }).sort()) !== JSON.stringify(brute.sort());
          });
        }"""
    )
    assert differ == []
