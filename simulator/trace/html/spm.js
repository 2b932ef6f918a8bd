// SPDX-License-Identifier: Apache-2.0
// The scratchpad's map: address by time, a cell in the colour of the layer whose data live there.
"use strict";

const spm = (() => {
  const H = 260, TOP = 8;

  // The map as an image, one pixel per cell.
  function image(m) {
    const { rows, columns } = m.tables.spm, canvas = el("canvas", { width: columns, height: rows });
    const g = canvas.getContext("2d"), pixels = g.createImageData(columns, rows);
    const colour = Array.from({ length: 10 }, (_, k) => parseInt(theme.series(k).slice(1), 16));
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const layer = m.d.map[r * columns + c], at = 4 * ((rows - 1 - r) * columns + c);
        if (!layer) continue;
        const v = colour[(layer - 1) % 10];
        pixels.data.set([v >> 16, v >> 8 & 255, v & 255, 255], at);
      }
    }
    g.putImageData(pixels, 0, 0);
    return canvas;
  }

  function plot(m) {
    const t = m.tables.spm, size = t.rows * t.row_bytes;
    let picture = image(m);
    theme.onChange(() => { picture = image(m); });
    const draw = (g, w) => {
      const paint = theme.colours(), width = w - memory.LEFT - memory.RIGHT, height = H - memory.BOTTOM - TOP;
      g.fillStyle = paint.lane;
      g.fillRect(memory.LEFT, TOP, width, height);
      g.imageSmoothingEnabled = false;
      g.drawImage(picture, memory.LEFT, TOP, width, height);
      const step = 2 ** Math.round(Math.log2(size / 4)), labels = [];
      for (let v = 0; v <= size; v += step) labels.push([TOP + height * (1 - v / size), v ? format.bytes(v) : "0"]);
      memory.axes(m, g, w, H, TOP, "address", labels);
      const x = memory.LEFT + (t.peak_column + 0.5) / t.columns * width;
      g.strokeStyle = paint.ink;
      g.setLineDash([3, 3]);
      g.beginPath();
      g.moveTo(x, TOP);
      g.lineTo(x, TOP + height);
      g.stroke();
      g.setLineDash([]);
      const text = `most at once: ${format.bytes(t.peak_bytes)}`, right = x > memory.LEFT + width * 0.6;
      g.font = '600 11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
      const wide = g.measureText(text).width + 10, left = right ? x - wide - 4 : x + 4;
      g.fillStyle = paint.card;
      g.fillRect(left, TOP + 4, wide, 18);
      g.fillStyle = paint.ink;
      g.textAlign = "left";
      g.textBaseline = "middle";
      g.fillText(text, left + 5, TOP + 13.5);
    };
    const about = (x, y, w) => {
      const width = w - memory.LEFT - memory.RIGHT, height = H - memory.BOTTOM - TOP;
      const c = Math.floor((x - memory.LEFT) / width * t.columns), r = Math.floor((1 - (y - TOP) / height) * t.rows);
      if (c < 0 || c >= t.columns || r < 0 || r >= t.rows) return null;
      const layer = m.d.map[r * t.columns + c], where = `from byte ${format.integer(r * t.row_bytes)}, cycle ${format.integer(c / t.columns * m.cycles)}`;
      return layer ? [...input.layerRows(layer - 1).slice(0, 2), where] : ["nothing lives here", where];
    };
    return memory.canvasPlot(H, "Scratchpad: whose data live where",
      `From the write that brings them to their last read, in ${format.integer(t.rows)} rows of ${format.bytes(t.row_bytes)} (the part of ${format.bytes(m.report.spm.capacity_bytes)} that is used) and ${format.integer(t.columns)} columns of time; a cell has the colour of the layer that wrote it, the last one when there were several.`, draw, about);
  }

  return { plot };
})();
