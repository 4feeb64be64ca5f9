// The document's data as arrays. `report/page_data.py` writes it.

const HELD = 0,
  PENDING = 1,
  QUARANTINED = 2,
  RELEASED = 3,
  RESERVED = 4,
  EXCLUDED = 5,
  UNLINED = 6,
  FREE = 7,
  OVER = 8;
const STATE_NAMES = [
  "held",
  "pending",
  "quarantined",
  "released",
  "reserved",
  "excluded",
  "in use, in no line",
  "free",
  "quarantine over",
];
const STATE_CLASSES = [
  "held",
  "pending",
  "quarantined",
  "released",
  "reserved",
  "excluded",
  "unlined",
  "free",
  "over",
];

/** [number, how often, …] as an array. */
function fromRuns(runs, length) {
  const column = new Int32Array(length);
  let at = 0;
  for (let index = 0; index < runs.length; index += 2) {
    column.fill(runs[index], at, at + runs[index + 1]);
    at += runs[index + 1];
  }
  return column;
}

/** Call a function with each number of [gap, how many in a row, …]. */
function eachOf(ranges, call) {
  let at = 0;
  for (let index = 0; index < ranges.length; index += 2) {
    at += ranges[index];
    for (let number = 0; number < ranges[index + 1]; number += 1) call(at + number);
    at += ranges[index + 1];
  }
}

/** How many numbers [gap, how many in a row, …] has. */
function lengthOf(ranges) {
  let sum = 0;
  for (let index = 1; index < ranges.length; index += 2) sum += ranges[index];
  return sum;
}

/** Decode a cluster. */
function decodeCluster(raw) {
  const count = raw.lines.node.length;
  const prefix = fromRuns(raw.lines.prefix, count);
  const lines = {
    count,
    node: Int32Array.from(raw.lines.node),
    pool: fromRuns(raw.lines.pool, count),
    state: fromRuns(raw.lines.state, count),
    since: new Map(raw.lines.since),
    moved: new Set(raw.lines.moved),
    addresses: new Map(raw.lines.addresses),
    atStart: new Set(raw.atStart),
    blocks: new Array(count),
  };
  let before = 0;
  raw.lines.first.forEach((first, index) => {
    if (typeof first === "number") {
      before += first;
      lines.blocks[index] = { family: 4, first: before, prefix: prefix[index] };
    } else {
      lines.blocks[index] = parseCidr(first);
    }
  });
  const labels = raw.labels.map((label) =>
    label.isName
      ? label
      : { ...label, of: label.few ? new Map(label.few) : fromRuns(label.of, raw.inventory) },
  );
  const cluster = { ...raw, lines, labels, groupOf: fromRuns(raw.groupOf, raw.inventory) };
  cluster.linesOf = linesByNode(lines, raw.nodes.length);
  cluster.pools = raw.pools.map((pool) => decodePool(pool, cluster));
  cluster.versions = decodeVersions(cluster);
  return cluster;
}

/** For each node the indexes of its lines, as one array and offsets into it. */
function linesByNode(lines, nodes) {
  const start = new Int32Array(nodes + 1);
  for (const node of lines.node) start[node + 1] += 1;
  for (let node = 0; node < nodes; node += 1) start[node + 1] += start[node];
  const next = start.slice(),
    all = new Int32Array(lines.count);
  lines.node.forEach((node, index) => {
    all[next[node]++] = index;
  });
  return (node) => all.subarray(start[node], start[node + 1]);
}

function decodePool(raw, cluster) {
  const pool = { ...raw, cluster };
  const marks = [
    ...raw.reserved.map(([text, reason]) => ({ block: parseCidr(text), state: RESERVED, reason })),
    ...raw.excluded.map((text) => ({ block: parseCidr(text), state: EXCLUDED })),
    ...raw.unlined.map((text) => ({ block: parseCidr(text), state: UNLINED })),
  ];
  pool.ranges = raw.ranges.map((range) => {
    const block = parseCidr(range.cidr);
    return { ...range, pool, cluster, block, marks: marks.filter((mark) => overlap(mark.block, block)) };
  });
  return pool;
}

/** What is said of addresses without a line: free, or what a mark says, with the reason that its author gave. */
function markText(mark) {
  if (!mark) return "free";
  return mark.reason ? `${STATE_NAMES[mark.state]} (${mark.reason})` : STATE_NAMES[mark.state];
}

/** The steps of the lock, each with what it says to people. The last one is the lock as it is now. */
function decodeVersions(cluster) {
  const last = cluster.steps.length - 1;
  return cluster.steps.map((step, number) => ({
    ...step,
    number,
    day: step.second ? new Date(step.second * 1000).toISOString().slice(0, 10) : "",
    time: step.second
      ? new Date(step.second * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC"
      : "",
    text: step.commit
      ? `${step.commit.slice(0, 9)} ${step.subject}`
      : step.subject || (last ? "not committed" : "the lock as it is"),
  }));
}

/** Which lines a version of the lock has: 1 for each index that it has. */
function aliveAt(cluster, number) {
  const alive = new Uint8Array(cluster.lines.count);
  for (let step = 0; step <= number; step += 1) {
    eachOf(cluster.steps[step].removed, (index) => {
      alive[index] = 0;
    });
    eachOf(cluster.steps[step].added, (index) => {
      alive[index] = 1;
    });
  }
  return alive;
}

/** The first day on which a quarantined line may be given out again; "" where none is. */
function freeFrom(cluster, index) {
  const since = cluster.lines.since.get(index),
    days = cluster.quarantineDays;
  if (!since || days === null) return "";
  const day = new Date(
    Date.parse(since) + (days + (days === 0 && cluster.lines.moved.has(index) ? 1 : 0)) * 86400000,
  );
  return Number.isNaN(day.getTime()) ? "" : day.toISOString().slice(0, 10);
}

/** Tell the quarantines that are over on a day from those that are not. */
function ageTo(cluster, day) {
  for (const index of cluster.lines.since.keys()) {
    const from = freeFrom(cluster, index);
    cluster.lines.state[index] = from && from <= day ? OVER : QUARANTINED;
  }
}

/** The number of the value that a node has of a label, -1 without one. */
function valueOf(label, node) {
  return label.few ? (label.of.get(node) ?? -1) : label.of[node];
}

/** The label of a node, "" without one. */
function labelOf(cluster, label, node) {
  if (node >= cluster.inventory) return "";
  if (label.isName) return cluster.nodes[node];
  return label.values[valueOf(label, node)] ?? "";
}

/** How much of some addresses cannot be given out: rounded down, and 0 and 100 are said only where they are exact. */
function shareText({ held, quarantined, reserved, free, released, total }) {
  const used = held + quarantined + reserved;
  if (used > 0 && used * 100 < total) return "<1 %";
  const percent = total ? Math.floor((used * 100) / total) : 0;
  return `${free + released > 0 ? Math.min(percent, 99) : percent} %`;
}

/** What a line says of its state, as `ipamc show` says it. */
function stateText(cluster, index) {
  const { state, since, moved, addresses, atStart } = cluster.lines;
  const quarantined = since.has(index),
    free = freeFrom(cluster, index);
  const parts = [quarantined ? `quarantined since ${since.get(index)}` : STATE_NAMES[state[index]]];
  if (moved.has(index)) parts.push("moved");
  if (free) parts.push(`free ${state[index] === OVER ? "since" : "on"} ${free}`);
  if (atStart.has(index)) parts[0] += " at start";
  if (addresses.has(index)) parts.push(`${addresses.get(index)} addresses`);
  return parts.join(", ");
}

/** What changed from one version to another: the lines of each sort. */
function changesBetween(cluster, from, to) {
  const was = from < 0 ? new Uint8Array(cluster.lines.count) : aliveAt(cluster, from),
    is = aliveAt(cluster, to);
  const { node, blocks } = cluster.lines;
  const found = { joined: [], left: [], moved: [], state: [], lit: new Set() };
  const place = (index) => `${cidrText(blocks[index])} ${node[index]}`,
    gone = new Map();
  for (let index = 0; index < is.length; index += 1) {
    if (was[index] && !is[index]) gone.set(place(index), index);
  }
  const sorts = new Map();
  for (const step of cluster.steps.slice(from + 1, to + 1)) {
    const why = fromRuns(step.why, lengthOf(step.added));
    let at = 0;
    eachOf(step.added, (index) => sorts.set(index, cluster.sorts[why[at++]]));
  }
  for (const [index, sort] of sorts) {
    if (!is[index] || was[index]) continue;
    found[sort].push(index);
    found.lit.add(index);
    gone.delete(place(index));
  }
  found.gone = [...gone.values()];
  return found;
}

/** "3 nodes joined, 1 left": what changed, in words. */
function changeText(changes, cluster) {
  const nodes = (indexes) => new Set(indexes.map((index) => cluster.lines.node[index])).size;
  const parts = [
    [nodes(changes.joined), "got blocks"],
    [nodes(changes.left), "left"],
    [nodes(changes.moved), "got other blocks"],
    [changes.state.length, "changed state", "block"],
    [changes.gone.length, "left the lock", "block"],
  ];
  const said = parts
    .filter(([number]) => number)
    .map(([number, what, noun]) => `${plural(number, noun || "node")} ${what}`);
  return said.join(", ") || "nothing changed";
}
