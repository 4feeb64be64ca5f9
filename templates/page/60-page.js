// The page: search, the panel of one block, the tip, the theme; and everything is started here.

const PAPER = 700; // the width of A4 or Letter between its margins, in pixels of CSS

class Page {
  constructor(raw) {
    this.day = raw.day;
    this.plan = Boolean(raw.plan);
    this.palette = paletteOf();
    this.found = null;
    this.main = document.querySelector("main");
    this.width = 120;
    this.live = document.getElementById("live");
    this.tipBox = document.getElementById("tip");
    this.panel = document.getElementById("panel");
    this.results = document.getElementById("results");
    this.input = document.getElementById("search");
    this.maps = new Map();
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          const map = this.maps.get(entry.target);
          map.seen = true;
          map.paint();
          this.observer.unobserve(entry.target);
        }
      },
      { rootMargin: "600px" },
    );
    this.views = raw.clusters.map(
      (cluster, number) =>
        new ClusterView(decodeCluster(cluster), document.getElementById(`cluster-${number}`), this),
    );
    this.listen();
    this.measure();
    const lines = this.views.reduce((sum, view) => sum + view.cluster.lines.count, 0);
    if (lines < 20000)
      for (const map of this.maps.values()) {
        map.seen = true;
        map.paint();
      }
    window.addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  /** What comes after # in the address: a pool of the page, or something to find. */
  follow() {
    let wanted = location.hash.slice(1);
    try {
      wanted = decodeURIComponent(wanted);
    } catch {
      return;
    }
    const pool = document.getElementById(wanted);
    if (pool && pool.matches("details.pool")) {
      pool.open = true;
      pool.scrollIntoView();
    } else if (wanted) this.search(wanted);
  }

  watch(map) {
    this.maps.set(map.frame, map);
    this.observer.observe(map.frame);
  }

  /** The width of every map. It is read once: reading it between two maps would lay out the page again for each. */
  measure() {
    const style = getComputedStyle(this.main);
    this.width = Math.max(
      Math.floor(this.main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)),
      120,
    );
    // A sheet of paper is narrower than the window: a map of the window's width would have letters that nobody can read.
    if (document.documentElement.classList.contains("printing")) this.width = Math.min(this.width, PAPER);
  }

  repaint() {
    this.palette = paletteOf();
    this.measure();
    for (const view of this.views) view.repaint();
  }

  listen() {
    let waiting = 0;
    const later = () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => this.repaint());
    };
    window.addEventListener("resize", later);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
    for (const details of document.querySelectorAll("details.pool"))
      details.addEventListener("toggle", later);
    window.addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("details.pool")) details.open = true;
      for (const map of this.maps.values()) map.seen = true;
      document.documentElement.classList.add("printing");
      this.repaint();
    });
    window.addEventListener("afterprint", () => {
      document.documentElement.classList.remove("printing");
      later();
    });
    const theme = document.getElementById("theme"),
      themes = ["auto", "light", "dark"];
    theme.hidden = false;
    theme.addEventListener("click", () => {
      const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
      if (next === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = next;
      theme.textContent = `Theme: ${next}`;
      this.repaint();
    });
    document.getElementById("finder").hidden = false;
    document.getElementById("finder").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(this.input.value);
    });
    this.input.addEventListener("input", () => {
      clearTimeout(this.typed);
      this.typed = setTimeout(() => this.search(this.input.value, true), 150);
    });
    document.addEventListener("pointerdown", (event) => {
      if (!event.target.closest("#finder")) this.results.hidden = true;
    });
    this.input.addEventListener("focus", () => {
      this.results.hidden = !this.input.value.trim();
    });
    document.getElementById("finder").addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key],
        stops = [this.input, ...this.results.querySelectorAll("button")];
      if (!by || this.results.hidden) return;
      event.preventDefault();
      stops[Math.min(Math.max(stops.indexOf(document.activeElement) + by, 0), stops.length - 1)].focus();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
        event.preventDefault();
        this.input.focus();
      }
      if (event.key === "Escape") {
        this.search("");
        this.choose(null);
      }
    });
  }

  say(text) {
    this.live.textContent = text;
  }

  tip(text, event) {
    this.tipBox.hidden = !text;
    if (!text) return;
    this.tipBox.textContent = text;
    const wide = this.tipBox.offsetWidth,
      left = Math.min(event.clientX + 14, innerWidth - wide - 8);
    this.tipBox.style.left = `${Math.max(left, 4)}px`;
    this.tipBox.style.top = `${event.clientY + (event.clientY > innerHeight - 60 ? -40 : 18)}px`;
  }

  /** Find an address, a CIDR, a node or a label. */
  search(text, typing = false) {
    clearTimeout(this.typed); // who is faster than the wait for more letters gets one answer, not two
    const wanted = text.trim();
    if (!typing) this.input.value = wanted;
    this.found = null;
    const items = wanted ? this.views.flatMap((view) => this.matches(view, wanted)) : [];
    const nothing = wanted && !items.length ? [el("li", {}, this.noneText(wanted))] : [];
    const more = items.length > 40 ? [el("li", {}, `and ${countText(items.length - 40)} more`)] : [];
    this.results.replaceChildren(
      ...items
        .slice(0, 40)
        .map(({ view, text: said, go }) =>
          el(
            "li",
            {},
            el(
              "button",
              { type: "button", onclick: () => this.open(go) },
              this.views.length > 1 ? `${view.cluster.name}: ${said}` : said,
            ),
          ),
        ),
      ...more,
      ...nothing,
    );
    this.results.hidden = !wanted;
    if (wanted) this.say(items.length ? plural(items.length, "result") : this.noneText(wanted));
    const byAddress = parseCidr(wanted);
    if (items.length && (byAddress || items.length === 1) && !typing) this.open(items[0].go);
    else this.repaint();
  }

  /** Show what was found: the list goes, and the keyboard is where the answer is. */
  open(go) {
    this.results.hidden = true;
    go();
    this.enterPanel();
  }

  enterPanel() {
    if (this.panel.hidden) return;
    if (!this.panel.contains(document.activeElement))
      this.before = document.activeElement.closest("#finder") ? this.input : document.activeElement;
    this.panel.focus({ preventScroll: true });
  }

  noneText(text) {
    return parseCidr(text)
      ? `${text} is in no pool and no lock`
      : `no node, label or address matches ${text}`;
  }

  matches(view, text) {
    const { cluster } = view,
      { lines } = cluster,
      block = parseCidr(text),
      found = [];
    const item = (index) => ({
      view,
      text: `${cluster.nodes[lines.node[index]]} · ${cidrText(lines.blocks[index])} · ${stateText(cluster, index)}`,
      go: () => this.choose(view, index, lines.blocks[index], null),
    });
    if (block) {
      for (let index = 0; index < lines.count; index += 1)
        if (view.alive[index] && overlap(lines.blocks[index], block)) found.push(item(index));
      if (found.length) return found;
      for (const pool of cluster.pools) {
        for (const range of pool.ranges.filter((one) => overlap(one.block, block))) {
          const mark = range.marks.find((one) => overlap(one.block, block));
          found.push({
            view,
            text: `${text} is ${markText(mark)}, in ${range.cidr} of pool ${pool.name}`,
            go: () => this.choose(view, -1, block, range),
          });
        }
      }
      return found;
    }
    const [key, value] = text.includes("=") ? text.split(/=(.*)/s) : [];
    if (key === "pool")
      return this.lit(view, (node) =>
        (cluster.groups[cluster.groupOf[node]] || []).some(([name]) => name === value),
      ).map(item);
    const label =
      key &&
      (cluster.labels.find((one) => one.key === key) ||
        cluster.labels.find((one) => one.key.endsWith(`/${key}`)));
    if (label) return this.lit(view, (node) => labelOf(cluster, label, node) === value).map(item);
    const part = text.toLowerCase();
    cluster.nodes.forEach((name, node) => {
      if (found.length > 1000 || !name.toLowerCase().includes(part)) return;
      const own = [...cluster.linesOf(node)].filter((index) => view.alive[index]);
      if (own.length)
        found.push({
          view,
          exact: name === text,
          text: own
            .map((index) => `${name} · ${cidrText(lines.blocks[index])} · ${stateText(cluster, index)}`)
            .slice(0, 3)
            .join("; "),
          go: () => this.choose(view, own[0], lines.blocks[own[0]], null),
        });
      else if (node < cluster.inventory)
        found.push({
          view,
          exact: name === text,
          text: `${name} · no block in this version`,
          go: () => this.choose(view, -1, null, null, node),
        });
    });
    return found.sort((one, other) => (other.exact === true) - (one.exact === true));
  }

  /** Light up the blocks of the nodes that a function picks; return the lines, at most 1,000. */
  lit(view, picks) {
    const { cluster } = view,
      lines = new Set();
    for (let node = 0; node < cluster.inventory; node += 1) {
      if (picks(node)) for (const index of cluster.linesOf(node)) if (view.alive[index]) lines.add(index);
    }
    if (lines.size) this.found = { cluster, lines };
    return [...lines].slice(0, 1000);
  }

  /** Show one block, or one node without any, in the panel. */
  choose(view, index, block, range, node = -1) {
    const inside = this.panel.contains(document.activeElement);
    for (const other of this.views) other.chosen = other === view ? block : null;
    this.panel.hidden = !view;
    document.body.classList.toggle("beside", Boolean(view)); // on a wide screen, the maps make room
    this.repaint();
    if (!view && this.before) {
      this.before.focus({ preventScroll: true });
      this.before = null;
      this.results.hidden = true;
    }
    if (!view) return;
    const { cluster } = view,
      number = index >= 0 ? cluster.lines.node[index] : node;
    const close = el(
      "button",
      { type: "button", class: "close", "aria-label": "Close", onclick: () => this.choose(null) },
      "×",
    );
    const parts = number >= 0 ? ofNode(this, view, number, index) : ofFree(view, block, range);
    this.panel.replaceChildren(close, ...parts);
    if (inside) this.panel.focus({ preventScroll: true });
    this.say(this.panel.querySelector("h2").textContent);
    const map = view.maps.find((one) => block && overlap(one.range.block, block));
    if (map) {
      map.place.open = true;
      if (!range) map.frame.scrollIntoView({ block: "nearest" });
    }
  }
}

const page = new Page(JSON.parse(document.getElementById("data").textContent));
document.documentElement.dataset.ready = "yes";
