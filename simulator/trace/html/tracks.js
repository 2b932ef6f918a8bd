// SPDX-License-Identifier: Apache-2.0
// Drawing of one engine's lane. Few instructions in the window: a rectangle each. Many: one column
// per pixel whose height is the exact share of busy cycles, from the prefix sums of model.js, so
// that a frame costs the same however long the run is.
"use strict";

const tracks = (() => {
  const SINGLE = 1.5; // instructions per pixel up to which each is drawn

  // First and last slice in [from, to).
  function inWindow(t, from, to) {
    const first = Math.max(0, model.last(t.from, from, t.n));
    return [first, model.last(t.from, to, t.n)];
  }

  function colourOf(m, mode, i) {
    const layer = m.layerOf(i);
    if (mode === "state") return theme.state("busy");
    if (layer < 0) return theme.colours().faint;
    return theme.series(mode === "kernel" ? m.layers[layer].kernelIndex : layer);
  }

  // lane: { x, y, w, h, from, to }; rectangles of one colour are filled in one go.
  function batch() {
    const paths = new Map();
    return {
      add(colour, x, y, w, h) {
        let p = paths.get(colour);
        if (!p) paths.set(colour, p = new Path2D());
        p.rect(x, y, w, h);
      },
      fill(g) {
        for (const [colour, p] of paths) {
          g.fillStyle = colour;
          g.fill(p);
        }
      },
    };
  }

  function colouring(m, mode) {
    const faint = theme.colours().faint, busy = theme.state("busy");
    const series = Array.from({ length: 10 }, (_, k) => theme.series(k));
    return (i) => {
      if (mode === "state") return busy;
      const layer = m.layerOf(i);
      if (layer < 0) return faint;
      return series[(mode === "kernel" ? m.layers[layer].kernelIndex : layer) % 10];
    };
  }

  function singles(g, m, t, lane, first, last, mode, paint) {
    const scale = lane.w / (lane.to - lane.from), top = lane.h * 0.72;
    const rects = batch(), colour = colouring(m, mode), text = [];
    const X = (cycle) => lane.x + (cycle - lane.from) * scale;
    for (let k = first; k <= last; k++) {
      const i = t.id[k], x0 = Math.max(lane.x - 2, X(t.from[k])), x1 = Math.min(lane.x + lane.w + 2, X(t.to[k]));
      const waitClass = m.c.class[i];
      if (waitClass && t.from[k] > t.waitFrom[k]) {
        const w0 = Math.max(lane.x, X(t.waitFrom[k]));
        if (x0 - w0 > 0.2) rects.add(theme.state(m.tables.class_keys[waitClass]), w0, lane.y + top + 1, x0 - w0, lane.h - top - 1);
      }
      if (x1 < lane.x) continue;
      const fillColour = colour(i);
      rects.add(fillColour, x0, lane.y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 0.7 : 0)), top);
      if (x1 - x0 > 34) text.push([x0, x1, m.tables.opcodes[m.c.opcode[i]], fillColour]);
    }
    rects.fill(g);
    g.font = paint.small;
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (const [x0, x1, word, fillColour] of text) {
      if (g.measureText(word).width + 8 > x1 - x0) continue;
      g.fillStyle = theme.inkOn(fillColour);
      g.fillText(word, Math.max(x0, lane.x) + 4, lane.y + top / 2 + 0.5);
    }
  }

  function columns(g, m, t, lane, mode) {
    const per = (lane.to - lane.from) / lane.w, top = lane.h * 0.72;
    const rects = batch(), colour = colouring(m, mode);
    let busy = model.busyUpTo(t, lane.from), wait = model.waitUpTo(t, lane.from, m.c);
    for (let x = 0; x < lane.w; x++) {
      const end = lane.from + (x + 1) * per, k = Math.max(0, model.last(t.from, end, t.n));
      const next = k + 1 < t.n && t.waitFrom[k + 1] <= end ? k + 1 : k; // whose wait it is at the end
      const b = t.from[k] <= end ? t.busy[k] + Math.min(end, t.to[k]) - t.from[k] : 0;
      const waits = m.c.class[t.id[next]];
      const w = t.waitFrom[next] <= end ? t.wait[next] + (waits ? Math.min(end, t.from[next]) - t.waitFrom[next] : 0) : 0;
      if (b > busy) {
        const h = Math.max(1, top * Math.min(1, (b - busy) / per));
        rects.add(colour(t.id[k]), lane.x + x, lane.y + top - h, 1, h);
      }
      const cls = waits || m.c.class[t.id[k]];
      if (w > wait && cls) {
        const h = Math.max(1, (lane.h - top - 1) * Math.min(1, (w - wait) / per));
        rects.add(theme.state(m.tables.class_keys[cls]), lane.x + x, lane.y + top + 1, 1, h);
      }
      busy = b;
      wait = w;
    }
    rects.fill(g);
  }

  // The class that an engine was in, over the whole lane; where there are more than pixels, that in
  // the middle of each.
  function classes(g, m, s, lane) {
    const rects = batch(), scale = lane.w / (lane.to - lane.from);
    const add = (cls, x, w) => {
      const key = m.tables.class_keys[cls];
      if (key !== "idle") rects.add(theme.state(key), lane.x + x, lane.y, w, lane.h);
    };
    const first = Math.max(0, model.last(s.from, lane.from, s.n)), last = model.last(s.from, lane.to, s.n);
    if (last - first < SINGLE * lane.w) {
      for (let k = first; k <= last; k++) {
        const x0 = Math.max(0, (s.from[k] - lane.from) * scale), x1 = Math.min(lane.w, (s.from[k] + s.cycles[k] - lane.from) * scale);
        if (x1 > x0) add(s.cls[k], x0, x1 - x0);
      }
    } else {
      for (let x = 0; x < lane.w; x++) add(s.cls[Math.max(0, model.last(s.from, lane.from + (x + 0.5) / scale, s.n))], x, 1);
    }
    rects.fill(g);
  }

  function draw(g, m, t, lane, mode, paint) {
    if (mode === "state" && m.states.has(t.engine)) {
      classes(g, m, m.states.get(t.engine), lane);
      return;
    }
    if (!t.n) return;
    const [first, last] = inWindow(t, lane.from, lane.to);
    if (last - first < SINGLE * lane.w) singles(g, m, t, lane, first, Math.min(t.n - 1, last + 1), mode, paint);
    else columns(g, m, t, lane, mode);
  }

  // The instruction of a track at a cycle: the one running, or the one whose wait it is; -1.
  function at(t, cycle, slack) {
    const k = model.last(t.from, cycle, t.n);
    for (const n of [k, k + 1]) {
      if (n >= 0 && n < t.n && cycle >= t.waitFrom[n] - slack && cycle < t.to[n] + slack) return n;
    }
    return -1;
  }

  return { draw, at, inWindow, colourOf };
})();
