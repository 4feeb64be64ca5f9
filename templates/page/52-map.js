// The map of one range, for a mouse, for a keyboard, and as a table.

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
    this.list.addEventListener("toggle", () => {
      if (this.list.open) this.fill();
    });
    this.frame = el("figure", {}, this.caption, this.canvas, this.list);
    this.describe();
    place.append(this.frame);
    view.page.watch(this);
  }

  /** Say in words what the map shows: the numbers of today, or what an older version of the lock had. */
  describe() {
    const { range, view } = this,
      { addresses, blocks, cluster } = range;
    let said = `${range.cidr}: ${plural(blocks.held, "block")} held, ${countText(blocks.free)} free, ${shareText(addresses)} used.`;
    if (view.number < cluster.versions.length - 1) {
      range.mine = range.mine || linesIn(range);
      said = `${range.cidr}: ${plural(range.mine.filter((index) => view.alive[index] && cluster.lines.state[index] <= PENDING).length, "block")} held then.`;
    }
    this.caption.textContent = said;
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${said} Arrow keys move from block to block, Enter opens a block.`,
    );
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
    const layout = this.layout(),
      { blocks } = this.range.cluster.lines;
    return (
      layout.range.mine.find((index) => {
        if (!this.view.alive[index]) return false;
        const [start, end] = cellsOf(layout, blocks[index]);
        return start <= cell && cell < end;
      }) ?? -1
    );
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
    const { cluster } = this.range,
      index = this.lineAt(cell);
    if (index >= 0)
      return `${cluster.nodes[cluster.lines.node[index]]} · ${cidrText(cluster.lines.blocks[index])} · ${stateText(cluster, index)}`;
    const block = this.blockAt(cell),
      mark = this.range.marks.find((one) => overlap(one.block, block));
    return `${cidrText(block)} · ${markText(mark)}`;
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
    const index = this.lineAt(cell),
      block = index >= 0 ? this.range.cluster.lines.blocks[index] : this.blockAt(cell);
    this.view.page.choose(this.view, index, block, this.range);
  }

  key(event) {
    const layout = this.layout(),
      { columns, cells } = layout;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (by === undefined && !["Enter", " ", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const start = Math.max(this.cursor, 0);
    if (event.key === "Enter" || event.key === " ") {
      this.choose(start);
      this.view.page.enterPanel();
      return;
    }
    const next =
      event.key === "Home" ? 0 : event.key === "End" ? cells - 1 : this.cursor < 0 ? 0 : start + by;
    this.cursor = Math.min(Math.max(next, 0), cells - 1);
    this.view.chosen = this.blockAt(this.cursor);
    this.paint();
    this.view.page.say(this.said(this.cursor));
  }

  /** The table of blocks: 500 rows, and a button for more. */
  fill(most = 500) {
    const { cluster } = this.range,
      rows = [];
    let more = 0;
    for (const index of this.laid ? this.laid.range.mine : linesIn(this.range)) {
      if (!this.view.alive[index]) continue;
      if (rows.length >= most) {
        more += 1;
        continue;
      }
      rows.push(
        el(
          "tr",
          {},
          el("td", {}, cidrText(cluster.lines.blocks[index])),
          el("td", {}, cluster.nodes[cluster.lines.node[index]]),
          el("td", {}, stateText(cluster, index)),
          el("td", { class: "number" }, index < cluster.current ? index + 2 : ""),
        ),
      );
    }
    const head = el(
      "tr",
      {},
      ...["block", "node", "state", "line of the lock"].map((name) => el("th", { scope: "col" }, name)),
    );
    const button = more
      ? el("button", { type: "button", onclick: () => this.fill(most + 5000) }, `${countText(more)} more`)
      : null;
    this.list.replaceChildren(
      this.list.firstChild,
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))),
      ...(button ? [button] : []),
    );
  }
}
