// A cluster on the page: its colours and their legend, its slider over versions, what changed.

/** What is shown of a cluster. */
class ClusterView {
  constructor(cluster, section, page) {
    Object.assign(this, { cluster, page, maps: [], colouring: null, chosen: null });
    this.number = cluster.versions.length - 1;
    this.alive = aliveAt(cluster, this.number);
    ageTo(cluster, page.day);
    this.changes = null;
    section.querySelector(".controls").append(this.controls());
    if (cluster.versions.length > 1) section.querySelector(".time").append(this.timeline(), this.changed());
    else section.querySelector(".time").remove();
    const room = roomByLabel(this);
    if (room) section.querySelector(".by-label").append(room);
    const many = cluster.pools.length > 12;
    cluster.pools.forEach((pool, number) => {
      const place = section.querySelector(`[data-pool="${number}"]`);
      if (!many || number < 12 || this.page.plan) place.open = true;
      for (const range of pool.ranges) this.maps.push(new MapView(this, range, place));
      if (pool.first + pool.further) {
        place.querySelector(".takes").append(
          " ",
          link(() => this.page.search(`pool=${pool.name}`), "Show the blocks of these nodes"),
        );
      }
      const trend = trendOf(this, pool, number);
      if (trend) place.querySelector(".trend").append(trend);
    });
    if (page.plan) this.compare(0);
  }

  /** The choice of colours, and their legend. */
  controls() {
    const { cluster } = this;
    const useful = cluster.labels.filter(
      (label) => !label.isName && label.values.length > 1 && label.values.length <= MOST_VALUES,
    );
    const places = [/rack/, /zone/, /row|room|region/],
      rank = (label) => {
        const place = places.findIndex((pattern) => pattern.test(label.key));
        return (place < 0 ? places.length : place) * 1000 + label.values.length;
      };
    this.labels = useful.sort((one, other) => rank(one) - rank(other)).slice(0, MOST_LABELS);
    this.select = el(
      "select",
      { id: `colour-${cluster.name}`, onchange: () => this.colourBy(this.select.value) },
      el("option", { value: "" }, "state"),
      ...this.labels.map((label) => el("option", { value: label.key }, label.key)),
    );
    this.legend = el("ul", { class: "legend", "aria-label": "Legend" });
    this.showLegend();
    return el(
      "div",
      { class: "row" },
      el("label", { for: `colour-${cluster.name}` }, "Colour by "),
      this.select,
      this.legend,
    );
  }

  colourBy(key) {
    const { cluster } = this,
      label = this.labels.find((one) => one.key === key);
    this.label = label;
    if (label) {
      const often = new Int32Array(label.values.length);
      for (let node = 0; node < cluster.inventory; node += 1)
        if (valueOf(label, node) >= 0) often[valueOf(label, node)] += 1;
      const order = [...often.keys()].sort((one, other) => often[other] - often[one] || one - other);
      this.shade = new Int32Array(label.values.length);
      // Values in their own order, so that rack-1 and rack-2 have neighbouring colours; the rarest share one.
      order
        .slice(0, SHADES - 1)
        .sort((one, other) => one - other)
        .forEach((value, place) => {
          this.shade[value] = place;
        });
      order.slice(SHADES - 1).forEach((value) => {
        this.shade[value] = SHADES - 1;
      });
    }
    this.colouring =
      label &&
      ((index) => {
        const node = cluster.lines.node[index],
          value = node < cluster.inventory ? valueOf(label, node) : -1;
        return value < 0 ? this.page.palette.none : this.page.palette.shades[this.shade[value]];
      });
    this.showLegend();
    this.repaint();
  }

  showLegend() {
    const items = [],
      swatch = (kind, text) => el("li", {}, el("span", { class: `swatch ${kind}` }), text);
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
    for (const pool of this.cluster.pools)
      for (const range of pool.ranges) for (const mark of range.marks) used.add(mark.state);
    for (const state of [...used].sort((one, other) => one - other))
      if (!this.label || state > PENDING) items.push(swatch(STATE_CLASSES[state], STATE_NAMES[state]));
    if (this.changes) items.push(swatch("lit", "changed"), swatch("gone", "removed"));
    this.legend.replaceChildren(...items);
  }

  /** The slider over versions. */
  timeline() {
    const { cluster } = this,
      last = cluster.versions.length - 1,
      id = `time-${cluster.name}`;
    this.slider = el("input", {
      type: "range",
      id,
      min: 0,
      max: last,
      value: last,
      step: 1,
      oninput: () => this.goTo(Number(this.slider.value)),
    });
    this.when = el("output", { for: id });
    const choices = [
      ["-1", "nothing"],
      ["before", "the version before"],
      ["week", "7 days before"],
      ["0", "the oldest version here"],
    ];
    this.since = el(
      "select",
      { id: `since-${cluster.name}`, onchange: () => this.compareBy(this.since.value) },
      ...choices.map(([value, text]) => el("option", { value }, text)),
    );
    const step = (by, text, name) =>
      el(
        "button",
        {
          type: "button",
          "aria-label": name,
          onclick: () => {
            this.slider.value = Number(this.slider.value) + by;
            this.goTo(Number(this.slider.value));
          },
        },
        text,
      );
    this.summary = el("p", { class: "changed", role: "status" });
    this.past = el(
      "p",
      { class: "note", hidden: true },
      `The maps below show this version; everything else is as of ${this.page.day}.`,
    );
    const note = [];
    if (cluster.leftOut) note.push(`${plural(cluster.leftOut, "version")} between these are left out`);
    if (cluster.unreadable) note.push(`${plural(cluster.unreadable, "version")} cannot be read`);
    if (cluster.shallow) note.push("this clone is shallow and lacks older versions");
    const bar = el(
      "div",
      { class: "row" },
      el("label", { for: id }, "Version of the lock "),
      step(-1, "◀", "Older version"),
      this.slider,
      step(1, "▶", "Newer version"),
      this.when,
    );
    const with_ = el(
      "div",
      { class: "row" },
      el("label", { for: `since-${cluster.name}` }, "Compare with "),
      this.since,
    );
    if (this.page.plan) {
      this.since.value = "0";
      with_.hidden = true;
    }
    this.showWhen();
    return el(
      "div",
      {},
      bar,
      this.past,
      with_,
      this.summary,
      note.length ? el("p", { class: "note" }, `${note.join("; ")}.`) : null,
    );
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
    const { versions } = this.cluster,
      last = number === versions.length - 1;
    const now = last ? Date.parse(`${this.page.day}T23:59:59Z`) / 1000 : versions[number].second;
    let found = 0;
    for (let at = 0; at <= number; at += 1)
      if (versions[at].second && versions[at].second <= now - 7 * 86400) found = at;
    return found;
  }

  compareBy(choice) {
    const from = { before: this.number - 1, week: this.weekBefore(this.number) }[choice] ?? Number(choice);
    this.compare(choice !== "week" && from >= this.number ? -1 : from);
  }

  compare(from) {
    this.changes = from < 0 ? null : changesBetween(this.cluster, from, this.number);
    if (this.summary) {
      const version = from < 0 ? null : this.cluster.versions[from];
      this.summary.textContent = version
        ? `Since ${[version.time, version.text].filter(Boolean).join(" · ")}: ${changeText(this.changes, this.cluster)}.`
        : "";
    }
    this.showLegend();
    this.repaint();
  }

  /** What each version changed, the newest first, and the last week in a sentence. */
  changed() {
    const { cluster } = this,
      last = cluster.versions.length - 1;
    if (this.page.plan) return el("div", {});
    const week = this.weekBefore(last),
      rows = [];
    for (let number = last; number > 0 && rows.length < 60; number -= 1) {
      const version = cluster.versions[number];
      rows.push(
        el(
          "tr",
          {},
          el("td", {}, version.day || (version.commit ? "" : "now")),
          el(
            "td",
            {},
            link(() => {
              this.since.value = "before";
              this.goTo(number);
            }, version.text),
          ),
          el("td", { class: "number" }, `+${countText(lengthOf(version.added))}`),
          el("td", { class: "number" }, `−${countText(lengthOf(version.removed))}`),
        ),
      );
    }
    const begun = cluster.versions[week],
      said = changeText(changesBetween(cluster, week, last), cluster);
    const text = !begun.second
      ? ""
      : week === last
        ? `Nothing changed in the last 7 days; the last change was on ${begun.day}: ${begun.text}.`
        : `In the last 7 days (since the version of ${begun.day}): ${said}.`;
    const head = el(
      "tr",
      {},
      ...["day", "commit", "lines added", "lines removed"].map((name) => el("th", { scope: "col" }, name)),
    );
    return el(
      "div",
      {},
      el("p", { class: "week" }, text),
      el(
        "details",
        {},
        el("summary", {}, `${plural(last, "change")} of the lock`),
        el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))),
      ),
    );
  }

  repaint() {
    for (const map of this.maps) map.paint();
  }

  view() {
    const lit =
      this.page.found && this.page.found.cluster === this.cluster
        ? this.page.found.lines
        : this.changes && this.changes.lit;
    return {
      alive: this.alive,
      colour: this.colouring,
      lit,
      gone: this.changes ? this.changes.gone : [],
      chosen: this.chosen,
    };
  }
}
