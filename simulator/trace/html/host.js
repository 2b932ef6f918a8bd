// SPDX-License-Identifier: Apache-2.0
// The host of an eager program: a lane with a rectangle per launch while the host makes it, and
// lines to where the device starts them.
"use strict";

const host = (() => {
  const LINES = 250; // at most so many are drawn

  // Launches in order; the host makes one after the other, the device starts them in that order.
  function of(tables) {
    const rows = tables.dispatches, n = rows.length;
    const column = (k) => Float64Array.from(rows, (row) => row[k]);
    const layerOf = new Map(tables.tags);
    return {
      n, layer: Int32Array.from(rows, (row) => layerOf.get(row[0]) ?? -1),
      views: column(1), from: column(2), to: column(3), begin: column(4),
    };
  }

  // First and last launch that can be seen in [from, to); last < first: none.
  const inWindow = (h, from, to) => [Math.max(0, model.last(h.from, from, h.n)), model.last(h.from, to, h.n)];

  // Launches that the device has not started when this one is made.
  const ahead = (h, k) => k - 1 - model.last(h.begin, h.to[k], k);

  function draw(g, m, lane, colour, paint) {
    const h = m.host, scale = lane.w / (lane.to - lane.from), paths = new Map(), words = [];
    const [first, last] = inWindow(h, lane.from, lane.to);
    for (let k = first; k <= last; k++) {
      const x0 = Math.max(0, (h.from[k] - lane.from) * scale), x1 = Math.min(lane.w, (h.to[k] - lane.from) * scale);
      if (x1 < 0) continue;
      const fill = colour(h.layer[k]);
      if (!paths.has(fill)) paths.set(fill, new Path2D());
      paths.get(fill).rect(lane.x + x0, lane.y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 0.7 : 0)), lane.h);
      if (x1 - x0 > 34 && h.layer[k] >= 0) words.push([lane.x + x0, x1 - x0, m.layers[h.layer[k]].title, fill]);
    }
    for (const [fill, path] of paths) {
      g.fillStyle = fill;
      g.fill(path);
    }
    g.font = paint.small;
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (const [x, w, title, fill] of words) {
      g.save();
      g.beginPath();
      g.rect(x, lane.y, w - 3, lane.h);
      g.clip();
      g.fillStyle = theme.inkOn(fill);
      g.fillText(title, x + 4, lane.y + lane.h / 2 + 0.5);
      g.restore();
    }
  }

  // From the end of each launch on the host to its start on the device.
  function lines(g, m, toX, from, to, y0, y1, paint) {
    const h = m.host, [first, last] = [Math.max(0, model.last(h.begin, from, h.n)), model.last(h.to, to, h.n)];
    if (last - first > LINES) return;
    g.strokeStyle = paint.faint;
    g.lineWidth = 1;
    g.beginPath();
    for (let k = first; k <= last; k++) {
      const a = toX(h.to[k]), b = toX(h.begin[k]);
      g.moveTo(a, y0);
      g.bezierCurveTo(a, (y0 + y1) / 2, b, (y0 + y1) / 2, b, y1);
    }
    g.stroke();
  }

  // The launch that the host makes at a cycle; -1: none.
  function at(h, cycle, slack) {
    const k = model.last(h.from, cycle + slack, h.n);
    return k >= 0 && cycle < h.to[k] + slack ? k : -1;
  }

  function rows(m, k) {
    const h = m.host, layer = m.layers[h.layer[k]], queued = Math.max(0, h.begin[k] - h.to[k]), more = ahead(h, k);
    return [`launch ${format.integer(k)} of ${format.integer(h.n)}`, layer ? `layer ${layer.title}` : null,
      layer && layer.node ? `model: ${layer.node}` : null,
      `host: cycles ${format.integer(h.from[k])} to ${format.integer(h.to[k])}, ${format.time(m.us(h.to[k] - h.from[k]))}` +
        (h.views[k] ? `, after ${format.integer(h.views[k])} call${h.views[k] === 1 ? "" : "s"} that launch${h.views[k] === 1 ? "es" : ""} nothing` : ""),
      `device: starts at cycle ${format.integer(h.begin[k])}, ${queued ? `${format.time(m.us(queued))} after it was made` : "at once"}` +
        (more > 0 ? `, with ${format.integer(more)} before it` : "")];
  }

  return { of, draw, lines, at, rows, ahead };
})();
