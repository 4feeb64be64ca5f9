// A cluster on the page: its maps, its slider over versions, its legend, what changed, room by label.

/** Make an element. Children are elements or text; text is never read as HTML. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const MOST_VALUES = 400;  // of a label that is offered as colour
const MOST_LABELS = 100;

/** What is shown of a cluster. */
class ClusterView {
  constructor(cluster, section, page) {
    Object.assign(this, { cluster, section, page, maps: [], colouring: null, lit: null, chosen: null });
    this.number = cluster.versions.length - 1;
    this.against = page.plan ? 0 : -1;
    this.alive = aliveAt(cluster, this.number);
    ageTo(cluster, page.day);
    this.changes = null;
    this.nodesOf = new Map();
    section.querySelector(".controls").append(this.controls());
    if (cluster.versions.length > 1) section.querySelector(".time").append(this.timeline(), this.changed());
    else section.querySelector(".time").remove();
    const room = this.roomByLabel();
    if (room) section.querySelector(".by-label").append(room);
    const many = cluster.pools.length > 12;
    cluster.pools.forEach((pool, number) => {
      const place = section.querySelector(`[data-pool="${number}"]`);
      if (!many || number < 12 || this.page.plan) place.open = true;
      for (const range of pool.ranges) this.maps.push(new MapView(this, range, place));
      if (pool.first + pool.further) {
        place.querySelector(".takes").append(" ", el("button", { type: "button", class: "link", onclick: () => this.page.search(`pool=${pool.name}`) }, "Show the blocks of these nodes"));
      }
      const trend = this.trend(pool, number);
      if (trend) place.querySelector(".trend").append(trend);
    });
    if (this.against >= 0) this.compare(this.against);
  }

  /** The choice of colours, and their legend. */
  controls() {
    const { cluster } = this;
    const useful = cluster.labels.filter((label) => !label.isName && label.values.length > 1 && label.values.length <= MOST_VALUES);
    const places = [/rack/, /zone/, /row|room|region/], rank = (label) => {
      const place = places.findIndex((pattern) => pattern.test(label.key));
      return (place < 0 ? places.length : place) * 1000 + label.values.length;
    };
    this.labels = useful.sort((one, other) => rank(one) - rank(other)).slice(0, MOST_LABELS);
    this.select = el("select", { id: `colour-${cluster.name}`, onchange: () => this.colourBy(this.select.value) },
      el("option", { value: "" }, "state"), ...this.labels.map((label) => el("option", { value: label.key }, label.key)));
    this.legend = el("ul", { class: "legend", "aria-label": "Legend" });
    this.showLegend();
    return el("div", { class: "row" }, el("label", { for: `colour-${cluster.name}` }, "Colour by "), this.select, this.legend);
  }

  colourBy(key) {
    const { cluster } = this, label = this.labels.find((one) => one.key === key);
    this.label = label;
    if (label) {
      const often = new Int32Array(label.values.length);
      for (let node = 0; node < cluster.inventory; node += 1) if (valueOf(label, node) >= 0) often[valueOf(label, node)] += 1;
      const order = [...often.keys()].sort((one, other) => often[other] - often[one] || one - other);
      this.shade = new Int32Array(label.values.length);
      // Values in their own order, so that rack-1 and rack-2 have neighbouring colours; the rarest share one.
      order.slice(0, SHADES - 1).sort((one, other) => one - other).forEach((value, place) => { this.shade[value] = place; });
      order.slice(SHADES - 1).forEach((value) => { this.shade[value] = SHADES - 1; });
    }
    this.colouring = label && ((index) => {
      const node = cluster.lines.node[index], value = node < cluster.inventory ? valueOf(label, node) : -1;
      return value < 0 ? this.page.palette.none : this.page.palette.shades[this.shade[value]];
    });
    this.showLegend();
    this.repaint();
  }

  showLegend() {
    const items = [], swatch = (kind, text) => el("li", {}, el("span", { class: `swatch ${kind}` }), text);
    if (this.label) {
      this.label.values.forEach((value, number) => {
        if (this.shade[number] < SHADES - 1) items.push(swatch(`shade-${this.shade[number]}`, value));
      });
      const rest = this.shade.filter((shade) => shade === SHADES - 1).length;
      if (rest) items.push(swatch(`shade-${SHADES - 1}`, `${rest} more`));
      items.push(swatch("none", `no ${this.label.key}`));
    }
    const used = new Set([FREE]);
    this.cluster.lines.state.forEach((state) => used.add(state));
    for (const pool of this.cluster.pools) for (const range of pool.ranges) for (const mark of range.marks) used.add(mark.state);
    for (const state of [...used].sort((one, other) => one - other)) if (!this.label || state > PENDING) items.push(swatch(STATE_CLASSES[state], STATE_NAMES[state]));
    if (this.changes) items.push(swatch("lit", "changed"), swatch("gone", "went away"));
    this.legend.replaceChildren(...items);
  }

  /** The slider over versions. */
  timeline() {
    const { cluster } = this, last = cluster.versions.length - 1, id = `time-${cluster.name}`;
    this.slider = el("input", { type: "range", id, min: 0, max: last, value: last, step: 1, oninput: () => this.goTo(Number(this.slider.value)) });
    this.when = el("output", { for: id });
    const choices = [["-1", "nothing"], ["before", "the version before"], ["week", "7 days before"], ["0", "the first one here"]];
    this.since = el("select", { id: `since-${cluster.name}`, onchange: () => this.compareBy(this.since.value) },
      ...choices.map(([value, text]) => el("option", { value }, text)));
    const step = (by, text, name) => el("button", { type: "button", "aria-label": name, onclick: () => { this.slider.value = Number(this.slider.value) + by; this.goTo(Number(this.slider.value)); } }, text);
    this.summary = el("p", { class: "changed", role: "status" });
    this.past = el("p", { class: "note", hidden: true }, `The maps below show this version; everything else is of ${this.page.day}.`);
    const note = [];
    if (cluster.leftOut) note.push(`${plural(cluster.leftOut, "version")} between these are left out`);
    if (cluster.unreadable) note.push(`${plural(cluster.unreadable, "version")} cannot be read`);
    if (cluster.shallow) note.push("this clone is shallow: older versions are not here");
    const bar = el("div", { class: "row" }, el("label", { for: id }, "Version of the lock "), step(-1, "◀", "Older version"), this.slider, step(1, "▶", "Newer version"), this.when);
    const with_ = el("div", { class: "row" }, el("label", { for: `since-${cluster.name}` }, "Compare with "), this.since);
    if (this.page.plan) { this.since.value = "0"; with_.hidden = true; }
    this.showWhen();
    return el("div", {}, bar, this.past, with_, this.summary, note.length ? el("p", { class: "note" }, `${note.join("; ")}.`) : null);
  }

  showWhen() {
    const version = this.cluster.versions[this.number];
    this.when.textContent = [version.time, version.text].filter(Boolean).join(" · ");
  }

  goTo(number) {
    this.number = number;
    if (this.slider) this.slider.value = number;
    this.alive = aliveAt(this.cluster, number);
    const last = this.cluster.versions.length - 1;
    ageTo(this.cluster, number === last ? this.page.day : this.cluster.versions[number].day || this.page.day);
    if (this.past) this.past.hidden = number === last || this.page.plan;
    for (const map of this.maps) map.describe();
    this.showLegend();
    this.showWhen();
    if (this.since) this.compareBy(this.page.plan ? "0" : this.since.value);
    else this.repaint();
  }

  /** The version that held 7 days before today, or before the version that is shown; the first one without one. */
  weekBefore(number) {
    const { versions } = this.cluster, last = number === versions.length - 1;
    const now = last ? Date.parse(`${this.page.day}T23:59:59Z`) / 1000 : versions[number].second;
    let found = 0;
    for (let at = 0; at <= number; at += 1) if (versions[at].second && versions[at].second <= now - 7 * 86400) found = at;
    return found;
  }

  compareBy(choice) {
    const from = { before: this.number - 1, week: this.weekBefore(this.number) }[choice] ?? Number(choice);
    this.compare(from >= 0 && from < this.number ? from : choice === "week" && from === this.number ? from : -1);
  }

  compare(from) {
    this.against = from;
    this.changes = from < 0 ? null : changesBetween(this.cluster, from, this.number);
    if (this.summary) {
      const version = from < 0 ? null : this.cluster.versions[from];
      this.summary.textContent = version ? `Since ${[version.time, version.text].filter(Boolean).join(" · ")}: ${changeText(this.changes, this.cluster)}.` : "";
    }
    this.showLegend();
    this.repaint();
  }

  /** What each version changed, the newest first, and the last week in a sentence. */
  changed() {
    const { cluster } = this, last = cluster.versions.length - 1;
    if (this.page.plan) return el("div", {});
    const week = this.weekBefore(last), rows = [];
    for (let number = last; number > 0 && rows.length < 60; number -= 1) {
      const version = cluster.versions[number];
      rows.push(el("tr", {}, el("td", {}, version.day || (version.commit ? "" : "now")),
        el("td", {}, el("button", { type: "button", class: "link", onclick: () => { this.since.value = "before"; this.goTo(number); } }, version.text)),
        el("td", { class: "number" }, `+${countText(lengthOf(version.added))}`), el("td", { class: "number" }, `−${countText(lengthOf(version.removed))}`)));
    }
    const begun = cluster.versions[week], said = changeText(changesBetween(cluster, week, last), cluster);
    const text = !begun.second ? "" : week === last ? `Nothing changed in the last 7 days; the last change is of ${begun.day}: ${begun.text}.`
      : `In the last 7 days, since the version of ${begun.day}: ${said}.`;
    const head = el("tr", {}, ...["day", "commit", "lines added", "lines removed"].map((name) => el("th", { scope: "col" }, name)));
    return el("div", {}, el("p", { class: "week" }, text), el("details", {}, el("summary", {}, `${plural(last, "change")} of the lock`),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)))));
  }

  /** For each version the blocks in use of each pool: those that begin in its ranges, whatever it was called then. */
  inUse() {
    const { versions, lines, pools } = this.cluster, poolOf = new Int32Array(lines.count).fill(-1), used = new Int32Array(pools.length);
    pools.forEach((pool, number) => {
      for (const range of pool.ranges) for (const index of linesIn(range)) if (lines.blocks[index].first >= range.block.first) poolOf[index] = number;
    });
    const count = (ranges, by) => eachOf(ranges, (index) => { if (poolOf[index] >= 0 && lines.state[index] <= PENDING) used[poolOf[index]] += by; });
    return versions.map((version) => {
      count(version.removed, -1);
      count(version.added, 1);
      return used.slice();
    });
  }

  /** Blocks in use over the versions, as a line. */
  trend(pool, place) {
    const { versions } = this.cluster;
    if (versions.length < 3 || this.page.plan) return null;
    this.used ??= this.inUse();
    const points = versions.map((version, number) => [version.second || Date.parse(`${this.page.day}T23:59:59Z`) / 1000, this.used[number][place]]);
    const used = points[points.length - 1][1];
    const most = Math.max(...points.map((point) => point[1]), 1), from = points[0][0], to = Math.max(points[points.length - 1][0], from + 1);
    const path = points.map(([second, value]) => `${(((second - from) / (to - from)) * 158 + 1).toFixed(1)},${(27 - (value / most) * 25).toFixed(1)}`).join(" ");
    const name = "http://www.w3.org/2000/svg", svg = document.createElementNS(name, "svg"), line = document.createElementNS(name, "polyline");
    svg.setAttribute("viewBox", "0 0 160 28");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `blocks in use of ${pool.name}: ${points[0][1]} on ${versions[0].day}, ${used} now`);
    line.setAttribute("points", path);
    svg.append(line);
    return el("span", {}, svg, ` ${countText(points[0][1])} → ${plural(used, "block")} since ${versions[0].day}`);
  }

  /** For each value of a label: its nodes, and the room in the pools that take them. The least room first. */
  roomByLabel() {
    const choices = this.labels;
    if (!choices.length || !this.cluster.groups.some((group) => group.length)) return null;
    const table = el("table", { class: "rooms" }), choose = el("select", { id: `room-${this.cluster.name}`, onchange: () => this.fillRoom(table, choose.value) },
      ...choices.map((label) => el("option", { value: label.key }, label.key)));
    this.fillRoom(table, choices[0].key);
    return el("div", {}, el("h3", {}, "Room by ", choose), el("div", { class: "scroll" }, table));
  }

  fillRoom(table, key) {
    const { cluster } = this, label = this.labels.find((one) => one.key === key);
    const pools = new Map(cluster.pools.map((pool) => [pool.name, []]));
    for (const pool of cluster.pools) pools.get(pool.name).push(pool);
    const rows = label.values.map((value) => ({ value, nodes: 0, taking: new Map(), groups: new Set() }));
    for (let node = 0; node < cluster.inventory; node += 1) {
      const row = rows[valueOf(label, node)];
      if (!row) continue;
      row.nodes += 1;
      const group = cluster.groups[cluster.groupOf[node]] || [];
      row.groups.add(group);
      for (const [name] of group) row.taking.set(name, (row.taking.get(name) || 0) + 1);
    }
    for (const row of rows) {
      const names = [...row.taking.keys()].filter((name) => pools.has(name));
      row.use = fullest(names.flatMap((name) => pools.get(name)));
      row.room = this.roomOf([...row.groups], new Map(names.map((name) => [name, pools.get(name)[0].room])));
    }
    rows.sort((one, other) => (one.room > 0) - (other.room > 0) || shareOf(other.use) - shareOf(one.use) || one.room - other.room || (one.value < other.value ? -1 : 1));
    const head = el("tr", {}, ...[label.key, "nodes", "pools that take them", "used", "room for nodes"].map((name, place) => el("th", { scope: "col", class: ["", "number", "wide", "", "number"][place] }, name)));
    table.replaceChildren(el("thead", {}, head), el("tbody", {}, ...rows.filter((row) => row.nodes).slice(0, 200).map((row) => el("tr", {},
      el("th", { scope: "row" }, el("button", { type: "button", class: "link", onclick: () => this.page.search(`${label.key}=${row.value}`) }, row.value)),
      el("td", { class: "number" }, countText(row.nodes)),
      el("td", { class: "wide" }, [...row.taking.keys()].slice(0, 4).join(", ") + (row.taking.size > 4 ? ` and ${row.taking.size - 4} more` : "")),
      el("td", {}, meter(row.use)), el("td", { class: "number" }, countText(row.room))))));
  }

  /**
   * For how many more nodes of some groups there is room. A node gets the blocks of both families from one pool:
   * its room counts once. Where a node gets blocks from each of several pools, the one with the least room decides.
   */
  roomOf(groups, rooms) {
    const giving = groups.map((group) => group.filter(([, verdict]) => verdict !== "stands in" && verdict !== "passed over"));
    if (["kubernetes", "cluster-pool"].includes(this.cluster.mode) || giving.every((group) => group.length < 2)) {
      return [...rooms.values()].reduce((sum, room) => sum + room, 0);
    }
    const least = giving.flat().map(([name]) => rooms.get(name)).filter((room) => room !== undefined);
    return least.length ? Math.min(...least) : 0;
  }

  repaint() {
    for (const map of this.maps) map.paint();
  }

  view() {
    const lit = this.page.found && this.page.found.cluster === this.cluster ? this.page.found.lines : this.changes ? new Set(this.changes.lit.keys()) : null;
    return { alive: this.alive, colour: this.colouring, lit, gone: this.changes ? this.changes.gone : [], chosen: this.chosen };
  }
}

/** The addresses of some pools by what they are used for, of the family of which the most is in use. */
function fullest(pools) {
  const sums = [4, 6].map((family) => {
    const sum = { total: 0, held: 0, quarantined: 0, reserved: 0, free: 0, released: 0 };
    for (const pool of pools) if (pool.family === family) for (const name of Object.keys(sum)) sum[name] += pool.addresses[name];
    return sum;
  });
  return shareOf(sums[1]) > shareOf(sums[0]) ? sums[1] : sums[0];
}

function shareOf(use) {
  return use.total ? (use.held + use.quarantined + use.reserved) / use.total : 0;
}

/** A bar with its percent. */
function meter(use) {
  const share = shareOf(use);
  const bar = el("span", { class: "meter" }, el("span", { class: `fill ${share > 0.95 ? "full" : share > 0.8 ? "high" : ""}` }));
  bar.firstChild.style.width = `${Math.min(share * 100, 100)}%`;
  return el("span", { class: "metered" }, bar, shareText(use));
}

/** The map of one range: a canvas that is painted once it is on the screen. */
class MapView {
  constructor(view, range, place) {
    Object.assign(this, { view, range, place, seen: false, cursor: -1 });
    this.canvas = el("canvas", { tabindex: 0, role: "img" });
    this.caption = el("figcaption", {});
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.view.page.tip(null));
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.list = el("details", { class: "as-table" }, el("summary", {}, `Blocks of ${range.cidr} as a table`));
    this.list.addEventListener("toggle", () => { if (this.list.open) this.fill(); });
    this.frame = el("figure", {}, this.caption, this.canvas, this.list);
    this.describe();
    place.append(this.frame);
    view.page.watch(this);
  }

  /** Say in words what the map shows: the numbers of today, or what an older version of the lock had. */
  describe() {
    const { range, view } = this, { addresses, blocks, cluster } = range;
    let said = `${range.cidr}: ${plural(blocks.held, "block")} held, ${countText(blocks.free)} free, ${shareText(addresses)} used.`;
    if (view.number < cluster.versions.length - 1) {
      range.mine = range.mine || linesIn(range);
      said = `${range.cidr}: ${plural(range.mine.filter((index) => view.alive[index] && cluster.lines.state[index] <= PENDING).length, "block")} held then.`;
    }
    this.caption.textContent = said;
    this.canvas.setAttribute("aria-label", `Map of ${said} Arrow keys move from block to block, Enter shows one.`);
  }

  layout() {
    const width = this.view.page.width;
    if (!this.laid || this.laid.width !== width) this.laid = layOut(this.range, width);
    return this.laid;
  }

  paint() {
    if (!this.seen || !this.place.open) return;
    paint(this.canvas, this.layout(), this.view.view(), this.view.page.palette);
    if (this.list.open) this.fill();
  }

  /** The line that has a cell in the version that is shown, or -1. */
  lineAt(cell) {
    const layout = this.layout(), { blocks } = this.range.cluster.lines;
    return layout.range.mine.find((index) => {
      if (!this.view.alive[index]) return false;
      const [start, end] = cellsOf(layout, blocks[index]);
      return start <= cell && cell < end;
    }) ?? -1;
  }

  cellOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return cellAt(this.layout(), event.clientX - box.left, event.clientY - box.top);
  }

  hover(event) {
    const cell = this.cellOf(event);
    this.view.page.tip(cell < 0 ? null : this.said(cell), event);
  }

  /** What a cell is, in a line. */
  said(cell) {
    const { cluster } = this.range, index = this.lineAt(cell);
    if (index >= 0) return `${cluster.nodes[cluster.lines.node[index]]} · ${cidrText(cluster.lines.blocks[index])} · ${stateText(cluster, index)}`;
    const block = this.blockAt(cell), mark = this.range.marks.find((one) => overlap(one.block, block));
    return `${cidrText(block)} · ${mark ? STATE_NAMES[mark.state] : "free"}`;
  }

  blockAt(cell) {
    const layout = this.layout();
    return cellBlock(layout, Math.floor(cell), layout.unit);
  }

  click(event) {
    const cell = this.cellOf(event);
    if (cell >= 0) this.choose(cell);
  }

  choose(cell) {
    const index = this.lineAt(cell), block = index >= 0 ? this.range.cluster.lines.blocks[index] : this.blockAt(cell);
    this.view.page.choose(this.view, index, block, this.range);
  }

  key(event) {
    const layout = this.layout(), { columns, cells } = layout;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (by === undefined && !["Enter", " ", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const start = Math.max(this.cursor, 0);
    if (event.key === "Enter" || event.key === " ") { this.choose(start); this.view.page.enterPanel(); return; }
    const next = event.key === "Home" ? 0 : event.key === "End" ? cells - 1 : this.cursor < 0 ? 0 : start + by;
    this.cursor = Math.min(Math.max(next, 0), cells - 1);
    this.view.chosen = this.blockAt(this.cursor);
    this.paint();
    this.view.page.say(this.said(this.cursor));
  }

  /** The table of blocks: 500 rows, and a button for more. */
  fill(most = 500) {
    const { cluster } = this.range, rows = [];
    let more = 0;
    for (const index of this.laid ? this.laid.range.mine : linesIn(this.range)) {
      if (!this.view.alive[index]) continue;
      if (rows.length >= most) { more += 1; continue; }
      rows.push(el("tr", {}, el("td", {}, cidrText(cluster.lines.blocks[index])), el("td", {}, cluster.nodes[cluster.lines.node[index]]),
        el("td", {}, stateText(cluster, index)), el("td", { class: "number" }, index < cluster.current ? index + 2 : "")));
    }
    const head = el("tr", {}, ...["block", "node", "state", "line of the lock"].map((name) => el("th", { scope: "col" }, name)));
    const button = more ? el("button", { type: "button", onclick: () => this.fill(most + 5000) }, `${countText(more)} more`) : null;
    this.list.replaceChildren(this.list.firstChild, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))), ...(button ? [button] : []));
  }
}
