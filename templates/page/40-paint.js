// Painting a map. Colours come from the style sheet, so that light, dark and print are decided there alone.

const SHADES = 12; // colours for values of a label; further values share the last one

/** The colours of the moment. */
function paletteOf() {
  const style = getComputedStyle(document.documentElement),
    read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    state: STATE_CLASSES.map(read),
    shades: Array.from({ length: SHADES }, (_, number) => read(`shade-${number}`)),
    none: read("none"),
    ink: read("ink"),
    faint: read("faint"),
    lit: read("lit"),
    page: read("page"),
  };
}

/** The mark of a block by its state: lines that go across it, so that no state is told by colour alone. */
function hatch(context, state, x, y, width, height, ink) {
  if (width < 5 || height < 5 || state === HELD || state === FREE || state === UNLINED) return; // lines across tell the others apart
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = ink;
  context.lineWidth = 1;
  context.beginPath();
  if (state === PENDING) context.rect(x + 1, y + 1, width - 2, height - 2);
  for (
    let at = x - height;
    at < x + width && state !== PENDING && state !== RELEASED && state !== OVER;
    at += 5
  ) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
    if (state === EXCLUDED) {
      context.moveTo(at, y);
      context.lineTo(at + height, y + height);
    }
  }
  if (state === RELEASED || state === OVER) {
    context.moveTo(x, y + height / 2);
    context.lineTo(x + width, y + height / 2);
  }
  context.stroke();
  context.restore();
}

/**
 * Paint a range. `view` says what: alive (the lines of a version), colour (a function from a line's index to a
 * colour, or null for states), lit (lines that stand out, or null), gone (lines that are shown as outlines).
 */
function paint(canvas, layout, view, palette) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.round(layout.width * ratio);
  canvas.height = Math.round(Math.max(layout.total, 1) * ratio);
  canvas.style.height = `${layout.total}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.clearRect(0, 0, layout.width, layout.total);
  paintRows(context, layout, view, palette);
  const { lines } = layout.range.cluster,
    pad = layout.cell >= 6 ? 1 : 0,
    low = layout.height >= 6 ? 1 : 0;
  const fill = (block, colour, state, alpha) => {
    const [start, end] = cellsOf(layout, block);
    context.globalAlpha = alpha;
    for (const [x, y, width, height] of rectangles(layout, start, end)) {
      context.fillStyle = colour;
      const wide = Math.max(width - pad, 1);
      context.fillRect(x, y, wide, height - low);
      if (state !== undefined) hatch(context, state, x, y, wide, height - low, palette.page);
    }
  };
  for (const { block, state } of layout.range.marks) fill(block, palette.state[state], state, 1);
  for (const index of layout.range.mine) {
    if (!view.alive[index]) continue;
    const state = lines.state[index],
      inUse = state <= PENDING;
    const colour = view.colour && inUse ? view.colour(index) : palette.state[state];
    fill(lines.blocks[index], colour, state, view.lit && !view.lit.has(index) ? 0.22 : 1);
  }
  context.globalAlpha = 1;
  for (const index of view.gone || []) outline(context, layout, lines.blocks[index], palette.lit, [3, 2]);
  if (view.lit && view.lit.size < 20000) {
    for (const index of view.lit) {
      if (view.alive[index] && overlap(lines.blocks[index], layout.range.block))
        outline(context, layout, lines.blocks[index], palette.lit, []);
    }
  }
  if (view.chosen) outline(context, layout, view.chosen, palette.ink, [], 2);
}

function outline(context, layout, block, colour, dash, width = 1.5) {
  if (!overlap(block, layout.range.block)) return;
  const [start, end] = cellsOf(layout, block),
    edge = layout.cell >= 6 ? 1 : 0;
  context.strokeStyle = colour;
  context.lineWidth = layout.cell >= 6 ? width : 1;
  context.setLineDash(dash);
  for (const [x, y, wide, height] of rectangles(layout, start, end)) {
    context.strokeRect(x, y, Math.max(wide - edge, 1.5), Math.max(height - edge, 1.5));
  }
  context.setLineDash([]);
}

/** The ground: free cells, the prefix of each row, and the strips. */
function paintRows(context, layout, view, palette) {
  const { gutter, columns, cell, height, cells } = layout,
    free = palette.state[FREE];
  context.font = `${height >= 9 ? 11 : 10}px ui-monospace, Menlo, Consolas, monospace`;
  context.textBaseline = "middle";
  let labelled = -99;
  for (const row of layout.rows) {
    if (row.until) {
      const from = cellBlock(layout, row.cell, layout.unit),
        to = cellBlock(layout, row.until - 1, layout.unit);
      const taken = layout.range.marks.some(
        ({ block }) => block.first <= from.first && lastOf(block) >= lastOf(to),
      );
      context.fillStyle = palette.faint;
      context.fillRect(gutter, row.y, columns * cell, STRIP);
      context.fillStyle = palette.ink;
      const first = addressText(from.family, from.first),
        last = addressText(to.family, lastOf(to));
      const blocks = (row.until - row.cell) * 2 ** (layout.range.pool.size - layout.unit);
      const within = layout.large.some(
        (index) =>
          view.alive[index] &&
          lastOf(layout.range.cluster.lines.blocks[index]) >= from.first &&
          layout.range.cluster.lines.blocks[index].first <= lastOf(to),
      );
      const what = taken ? "not for pods" : within ? "in a larger block" : "without a node";
      const said = `${plural(blocks, "block")} ${what}: ${first} – ${last}`;
      context.fillText(said, gutter + 6, row.y + STRIP / 2, Math.max(columns * cell - 8, 40));
      labelled = row.y + 4;
      continue;
    }
    const here = Math.min(columns, cells - row.cell),
      wide = here * cell,
      gap = cell >= 6 ? 1 : 0;
    context.fillStyle = free;
    if (gap)
      for (let column = 0; column < here; column += 1)
        context.fillRect(gutter + column * cell, row.y, cell - gap, height - (height >= 6 ? 1 : 0));
    else context.fillRect(gutter, row.y, wide, height);
    if (gutter && row.y - labelled >= 13) {
      context.fillStyle = palette.ink;
      context.fillText(
        cidrText(cellBlock(layout, row.cell, Math.max(layout.inRow, layout.range.block.prefix))),
        0,
        row.y + height / 2 + 0.5,
        gutter - 6,
      );
      labelled = row.y;
    }
  }
}
