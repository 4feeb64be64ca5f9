// Where on a map a block is: rows of aligned prefixes, and cells of one block each. Rows that no version of the
// lock has a block in are drawn as one strip, so that a /32 of IPv6 with three nodes is three rows.

const GAP_ROWS = 3; // so many empty rows in a row become a strip
const MOST_BITS = 52; // of the number of a cell: exact in a script's numbers
const MOST_ROWS = 4096; // of one block: the rest of a larger one is in a strip
const STRIP = 18; // height of a strip, in pixels

/** Lay out a range in a width in pixels. */
function layOut(range, width) {
  const { block, pool, cluster } = range,
    bits = BITS[block.family];
  const mine = range.mine || (range.mine = linesIn(range));
  let longest = pool.size;
  for (const index of mine) longest = Math.max(longest, cluster.lines.blocks[index].prefix);
  const unit = Math.min(longest, pool.size + 4, block.prefix + MOST_BITS, bits);
  const cells = 2 ** (unit - block.prefix);
  const gutter = width < 520 ? 0 : block.family === 4 ? 118 : 210;
  const drawn = Math.min(cells, mine.length * 16 + 256); // a large range that is nearly empty has few rows
  const least = drawn > 20000 ? 3 : drawn > 4096 ? 5 : drawn > 512 ? 8 : 13;
  let columns = 1;
  while (columns * 2 <= cells && (width - gutter) / (columns * 2) >= least) columns *= 2;
  const cell = Math.min((width - gutter) / columns, 26);
  const height = Math.max(Math.min(cell, 16), gutter ? 4 : 5);
  const layout = { range, width, gutter, unit, columns, cell, height, cells, rows: [], large: [] };
  layout.inRow = unit - Math.log2(columns); // the prefix length of a row
  placeRows(layout, mine);
  return layout;
}

/** The lines of all versions of a cluster in a family, by address: for bisection. */
function byAddress(cluster, family) {
  const { blocks } = cluster.lines;
  cluster.sorted ??= {};
  if (!cluster.sorted[family]) {
    const all = [...blocks.keys()].filter((index) => blocks[index].family === family);
    all.sort((one, other) =>
      blocks[one].first < blocks[other].first
        ? -1
        : blocks[one].first > blocks[other].first
          ? 1
          : one - other,
    );
    cluster.sorted[family] = {
      all,
      prefixes: [...new Set(all.map((index) => blocks[index].prefix))].sort((one, other) => one - other),
    };
  }
  return cluster.sorted[family];
}

/** The first place in lines by address whose block begins at an address, or after it. */
function placeOf(all, blocks, address) {
  let low = 0,
    high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (blocks[all[middle]].first < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The indexes of the lines of all versions that are in a range, by address: those around it, then those that begin in it. */
function linesIn({ block, cluster }) {
  const { blocks } = cluster.lines,
    { all, prefixes } = byAddress(cluster, block.family),
    found = [];
  for (const prefix of prefixes) {
    if (prefix >= block.prefix) break;
    const around = parseCidr(cidrText({ ...block, prefix }));
    if (around.first === block.first) continue;
    for (
      let at = placeOf(all, blocks, around.first);
      at < all.length && blocks[all[at]].first === around.first;
      at += 1
    ) {
      if (blocks[all[at]].prefix === prefix) found.push(all[at]);
    }
  }
  const last = lastOf(block);
  for (let at = placeOf(all, blocks, block.first); at < all.length && blocks[all[at]].first <= last; at += 1)
    found.push(all[at]);
  return found;
}

/** The first cell of a block in a range, and one after its last one; with fractions for smaller blocks. */
function cellsOf(layout, block) {
  const { range, unit } = layout,
    bits = BITS[block.family];
  if (block.family === 4) {
    const each = 2 ** (bits - unit),
      start = (block.first - range.block.first) / each;
    return [Math.max(start, 0), Math.min(start + 2 ** (bits - block.prefix) / each, layout.cells)];
  }
  const shift = BigInt(bits - unit),
    offset = block.first - range.block.first;
  const start = offset < 0n ? 0 : Number(offset >> shift);
  const length = 2 ** (unit - block.prefix);
  const inside = length >= 1 ? 0 : Number(((offset & ((1n << shift) - 1n)) * 1024n) >> shift) / 1024;
  return [start + inside, Math.min(start + inside + length, layout.cells)];
}

/** Decide which rows are drawn. Each has its y, and the number of its first cell; a strip has `until`, too. */
function placeRows(layout, mine) {
  const { columns, cells, range } = layout,
    all = Math.ceil(cells / columns),
    used = new Set();
  for (const index of mine) {
    const [start, end] = cellsOf(layout, range.cluster.lines.blocks[index]);
    const first = Math.floor(start / columns),
      last = Math.min(Math.ceil(end / columns), first + MOST_ROWS);
    if (Math.ceil(end / columns) > last) layout.large.push(index);
    for (let row = first; row < last; row += 1) used.add(row);
  }
  const step = layout.height + (layout.height >= 8 ? 2 : layout.height >= 5 ? 1 : 0);
  let y = 0,
    at = 0;
  const row = (number) => {
    layout.rows.push({ y, number, cell: number * columns });
    y += step;
  };
  const free = (until) => {
    if (until - at < GAP_ROWS) for (let number = at; number < until; number += 1) row(number);
    else {
      layout.rows.push({ y, number: at, cell: at * columns, until: until * columns });
      y += STRIP + 2;
    }
  };
  for (const number of [...used].sort((one, other) => one - other)) {
    if (number > at) free(number);
    row(number);
    at = number + 1;
  }
  if (at < all) free(all);
  layout.total = y;
  layout.byNumber = new Map(layout.rows.filter((one) => !one.until).map((one) => [one.number, one]));
}

/** The prefix of a number of cells from one on, as text. */
function cellBlock(layout, cell, prefix) {
  const { block } = layout.range,
    bits = BITS[block.family];
  if (block.family === 4) return { family: 4, first: block.first + cell * 2 ** (bits - layout.unit), prefix };
  return { family: 6, first: block.first + (BigInt(cell) << BigInt(bits - layout.unit)), prefix };
}

/** The rectangles of a run of cells: a block that is larger than a row has several. */
function* rectangles(layout, start, end) {
  const { columns, cell, height, gutter } = layout;
  for (let number = Math.floor(start / columns); number * columns < end; number += 1) {
    const row = layout.byNumber.get(number);
    if (!row) {
      if (number - start / columns > MOST_ROWS) return;
      continue;
    }
    const left = Math.max(start - row.cell, 0) * cell,
      right = Math.min(end - row.cell, columns) * cell;
    yield [gutter + left, row.y, right - left, height];
  }
}

/** The cell at a point of the map, or -1. */
function cellAt(layout, x, y) {
  let low = 0,
    high = layout.rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.rows[middle].y <= y) low = middle;
    else high = middle - 1;
  }
  const row = layout.rows[low];
  if (!row || x < layout.gutter) return -1;
  if (row.until) return row.cell;
  const column = (x - layout.gutter) / layout.cell;
  return column < layout.columns && row.cell + column < layout.cells
    ? row.cell + Math.floor(column * 16) / 16
    : -1;
}
