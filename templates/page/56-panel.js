// What is said of one block, or of one node.

function ofFree(view, block, range) {
  const mark = range && range.marks.find((one) => overlap(one.block, block)),
    state = markText(mark);
  return [
    el("h2", {}, cidrText(block)),
    el(
      "p",
      {},
      range ? `${state}, in ${range.cidr} of pool ${range.pool.name} (${view.cluster.name})` : state,
    ),
    el("p", {}, el("code", {}, `ipamc which ${cidrText(block)} ${view.cluster.name}`)),
  ];
}

function ofNode(page, view, node, chosen) {
  const { cluster } = view,
    { lines } = cluster,
    known = node < cluster.inventory,
    space = cluster.mode === "address-space",
    nowhere = space ? "not requested by a cluster" : "not in the inventory";
  const own = [...cluster.linesOf(node)].filter((index) => view.alive[index]);
  const row = (index) =>
    el(
      "li",
      { class: index === chosen ? "chosen" : "" },
      link(() => page.choose(view, index, lines.blocks[index], null), cidrText(lines.blocks[index])),
      ` ${cluster.poolNames[lines.pool[index]] || "no pool"}, ${stateText(cluster, index)}`,
      el("br"),
      el(
        "small",
        {},
        [
          index < cluster.current ? `${cluster.lock}:${index + 2}` : "not in today's lock",
          sinceText(view, index),
        ]
          .filter(Boolean)
          .join(", "),
      ),
    );
  const group = known ? cluster.groups[cluster.groupOf[node]] || [] : [];
  const reasons = group.map(([pool, verdict, why]) =>
    el(
      "li",
      {},
      el("b", {}, `${verdict}: ${pool}`),
      ` ${why}`,
      el("br"),
      el(
        "small",
        {},
        space ? "clusterSelector " : "nodeSelector ",
        el("code", {}, (cluster.pools.find((one) => one.name === pool) || {}).selector || ""),
      ),
    ),
  );
  const keeps = own.some((index) => lines.state[index] === HELD)
    ? "It keeps the block that it got when it was placed. These pools select it, in this order:"
    : "These pools select it, in this order:";
  const without = known
    ? "No pool selects it, or there are too many pools to list here:"
    : `It is ${nowhere}. The lock keeps its line until another node can get the block:`;
  const labels = known
    ? cluster.labels
        .map((label) => [label.key, labelOf(cluster, label, node)])
        .filter(([, value]) => value !== "")
    : [];
  return [
    el("h2", {}, cluster.nodes[node]),
    el("p", {}, `${known ? (space ? "a range" : "a node") : nowhere} of ${cluster.name}`),
    el("h3", {}, own.length ? "Blocks" : "No block in this version"),
    el("ul", {}, ...own.map(row)),
    el("h3", {}, "Why"),
    el("p", {}, group.length ? keeps : without),
    el("ol", {}, ...reasons),
    el("p", {}, el("code", {}, `ipamc why ${cluster.nodes[node]} ${cluster.name}`)),
    labels.length ? el("h3", {}, "Labels") : null,
    el(
      "table",
      { class: "labels" },
      el(
        "tbody",
        {},
        ...labels.map(([key, value]) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, key),
            el(
              "td",
              {},
              link(() => page.search(`${key}=${value}`), value),
            ),
          ),
        ),
      ),
    ),
  ].filter(Boolean);
}

/** Since which version a line is there. */
function sinceText(view, index) {
  const { versions } = view.cluster;
  for (let number = view.number; number > 0; number -= 1) {
    let here = false;
    eachOf(versions[number].added, (one) => {
      here = here || one === index;
    });
    if (here) return `since ${[versions[number].day, versions[number].text].filter(Boolean).join(" · ")}`;
  }
  const first = versions[0];
  return versions.length > 1 && first.second ? `since ${first.day} or before` : "";
}
