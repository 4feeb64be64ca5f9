// Room for nodes by a label, and how the use of a pool grew.

/** For each value of a label: its nodes, and the room in the pools that take them. The least room first. */
function roomByLabel(view) {
  const choices = view.labels;
  if (!choices.length || !view.cluster.groups.some((group) => group.length)) return null;
  const table = el("table", { class: "rooms" }),
    choose = el(
      "select",
      { id: `room-${view.cluster.name}`, onchange: () => fillRoom(view, table, choose.value) },
      ...choices.map((label) => el("option", { value: label.key }, label.key)),
    );
  fillRoom(view, table, choices[0].key);
  return el("div", {}, el("h3", {}, "Room by ", choose), el("div", { class: "scroll" }, table));
}

function fillRoom(view, table, key) {
  const { cluster } = view,
    label = view.labels.find((one) => one.key === key);
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
    row.room = roomOf(view, [...row.groups], new Map(names.map((name) => [name, pools.get(name)[0].room])));
  }
  rows.sort(
    (one, other) =>
      (one.room > 0) - (other.room > 0) ||
      shareOf(other.use) - shareOf(one.use) ||
      one.room - other.room ||
      (one.value < other.value ? -1 : 1),
  );
  const head = el(
    "tr",
    {},
    ...[label.key, "nodes", "pools that take them", "used", "room for nodes"].map((name, place) =>
      el("th", { scope: "col", class: ["", "number", "wide", "", "number"][place] }, name),
    ),
  );
  table.replaceChildren(
    el("thead", {}, head),
    el(
      "tbody",
      {},
      ...rows
        .filter((row) => row.nodes)
        .slice(0, 200)
        .map((row) =>
          el(
            "tr",
            {},
            el(
              "th",
              { scope: "row" },
              link(() => view.page.search(`${label.key}=${row.value}`), row.value),
            ),
            el("td", { class: "number" }, countText(row.nodes)),
            el(
              "td",
              { class: "wide" },
              [...row.taking.keys()].slice(0, 4).join(", ") +
                (row.taking.size > 4 ? ` and ${row.taking.size - 4} more` : ""),
            ),
            el("td", {}, meter(row.use)),
            el("td", { class: "number" }, countText(row.room)),
          ),
        ),
    ),
  );
}

/**
 * For how many more nodes of some groups there is room. A node gets the blocks of both families from one pool:
 * its room counts once. Where a node gets blocks from each of several pools, the one with the least room decides.
 */
function roomOf(view, groups, rooms) {
  const giving = groups.map((group) => group.filter(([, verdict]) => verdict !== "stands in"));
  if (
    ["kubernetes", "cluster-pool"].includes(view.cluster.mode) ||
    giving.every((group) => group.length < 2)
  ) {
    return [...rooms.values()].reduce((sum, room) => sum + room, 0);
  }
  const least = giving
    .flat()
    .map(([name]) => rooms.get(name))
    .filter((room) => room !== undefined);
  return least.length ? Math.min(...least) : 0;
}

/** For each version the blocks in use of each pool: those that begin in its ranges, whatever it was called then. */
function inUse(view) {
  const { versions, lines, pools } = view.cluster,
    poolOf = new Int32Array(lines.count).fill(-1),
    used = new Int32Array(pools.length);
  pools.forEach((pool, number) => {
    for (const range of pool.ranges)
      for (const index of linesIn(range))
        if (lines.blocks[index].first >= range.block.first) poolOf[index] = number;
  });
  const count = (ranges, by) =>
    eachOf(ranges, (index) => {
      if (poolOf[index] >= 0 && lines.state[index] <= PENDING) used[poolOf[index]] += by;
    });
  return versions.map((version) => {
    count(version.removed, -1);
    count(version.added, 1);
    return used.slice();
  });
}

/** Blocks in use over the versions, as a line. */
function trendOf(view, pool, place) {
  const { versions } = view.cluster;
  if (versions.length < 3 || view.page.plan) return null;
  view.used ??= inUse(view);
  const points = versions.map((version, number) => [
    version.second || Date.parse(`${view.page.day}T23:59:59Z`) / 1000,
    view.used[number][place],
  ]);
  const used = points[points.length - 1][1];
  const most = Math.max(...points.map((point) => point[1]), 1),
    from = points[0][0],
    to = Math.max(points[points.length - 1][0], from + 1);
  const path = points
    .map(
      ([second, value]) =>
        `${(((second - from) / (to - from)) * 158 + 1).toFixed(1)},${(27 - (value / most) * 25).toFixed(1)}`,
    )
    .join(" ");
  const name = "http://www.w3.org/2000/svg",
    svg = document.createElementNS(name, "svg"),
    line = document.createElementNS(name, "polyline");
  svg.setAttribute("viewBox", "0 0 160 28");
  svg.setAttribute("role", "img");
  svg.setAttribute(
    "aria-label",
    `blocks in use of ${pool.name}: ${points[0][1]} on ${versions[0].day}, ${used} now`,
  );
  line.setAttribute("points", path);
  svg.append(line);
  return el(
    "span",
    {},
    svg,
    ` ${countText(points[0][1])} → ${plural(used, "block")} since ${versions[0].day}`,
  );
}
