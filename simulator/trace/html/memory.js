// SPDX-License-Identifier: Apache-2.0
// External memory's bandwidth over time, and the scratchpad's map.
"use strict";

const memory = (() => {
  const BINS = 16384;

  // Bytes of transfers, spread evenly from start to end, as running sums over bins: what passes in
  // any interval is a difference of two.
  function rates(m) {
    const n = Math.min(BINS, Math.max(1, m.cycles)), per = Math.max(1, m.cycles) / n;
    const read = new Float64Array(n + 1), write = new Float64Array(n + 1);
    for (let i = 0; i < m.d.n; i++) {
      const r = m.c.dramin[i], w = m.c.dramout[i];
      if (!r && !w) continue;
      const from = m.c.start[i], to = Math.max(from + 1, from + m.c.done[i]);
      const first = Math.floor(from / per), last = Math.min(n - 1, Math.floor((to - 1e-9) / per));
      for (let b = first; b <= last; b++) {
        const part = (Math.min(to, (b + 1) * per) - Math.max(from, b * per)) / (to - from);
        read[b + 1] += part * r;
        write[b + 1] += part * w;
      }
    }
    for (let b = 0; b < n; b++) {
      read[b + 1] += read[b];
      write[b + 1] += write[b];
    }
    const upTo = (sums, cycle) => {
      const at = Math.max(0, Math.min(n, cycle / per)), b = Math.min(n - 1, Math.floor(at));
      return sums[b] + (at - b) * (sums[b + 1] - sums[b]);
    };
    const between = (from, to) => {
      const wide = Math.max(to, from + 1e-9) - from;
      return [(upTo(read, to) - upTo(read, from)) / wide, (upTo(write, to) - upTo(write, from)) / wide];
    };
    let most = m.tables.dram_bytes_per_cycle || 0;
    if (!most) for (let b = 0; b < n; b++) most = Math.max(most, (read[b + 1] - read[b] + write[b + 1] - write[b]) / per);

    // lane: { x, y, w, h, from, to }. Written stands on read.
    function draw(g, lane, paint) {
      g.fillStyle = paint.lane;
      g.fillRect(lane.x, lane.y, lane.w, lane.h);
      const step = (lane.to - lane.from) / lane.w, low = new Path2D(), high = new Path2D();
      for (let x = 0; x < lane.w; x++) {
        const at = lane.from + x * step, [r, w] = between(Math.max(0, Math.min(at, at + step - per)), Math.max(at + step, at + per));
        const hr = Math.min(lane.h, lane.h * r / (most || 1)), hw = Math.min(lane.h - hr, lane.h * w / (most || 1));
        if (hr > 0.3) low.rect(lane.x + x, lane.y + lane.h - hr, 1, hr);
        if (hw > 0.3) high.rect(lane.x + x, lane.y + lane.h - hr - hw, 1, hw);
      }
      g.fillStyle = theme.state("busy");
      g.fill(low);
      g.fillStyle = theme.state("wait_dma");
      g.fill(high);
      g.strokeStyle = paint.faint;
      g.setLineDash([4, 3]);
      g.beginPath();
      g.moveTo(lane.x, lane.y + 0.5);
      g.lineTo(lane.x + lane.w, lane.y + 0.5);
      g.stroke();
      g.setLineDash([]);
    }
    return { draw, most, at: (cycle, width) => between(cycle - Math.max(width, per) / 2, cycle + Math.max(width, per) / 2) };
  }

  function start(m) {
    const bandwidth = rates(m);
    const blocks = [bandwidthPlot(m, bandwidth)];
    if (m.tables.spm) blocks.push(spm.plot(m));
    $("memory-plots").replaceChildren(...blocks.map((b) => b.node));
    const redraw = () => blocks.forEach((b) => b.draw());
    redraw();
    theme.onChange(redraw);
    view.onChange(redraw);
    new ResizeObserver(redraw).observe($("memory-plots"));
  }

  // A canvas that fits its box, h pixels high; draw(g, w).
  function canvasPlot(h, title, note, draw, about) {
    const canvas = el("canvas", { class: "plot-canvas", role: "img", "aria-label": title });
    const node = el("div", {}, el("h3", {}, title), canvas, note ? el("p", { class: "note" }, note) : null);
    const redraw = () => {
      const w = canvas.clientWidth || 600, ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.height = `${h}px`;
      const g = canvas.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw(g, w);
    };
    canvas.addEventListener("pointermove", (e) => {
      const r = canvas.getBoundingClientRect();
      const rows = about(e.clientX - r.left, e.clientY - r.top, r.width);
      if (rows) tip.show(rows, e.clientX, e.clientY);
      else tip.hide();
    });
    canvas.addEventListener("pointerleave", tip.hide);
    return { node, draw: redraw };
  }

  const LEFT = 74, RIGHT = 18, BOTTOM = 34;

  // Axes around a plot over the whole run, and the window of the timeline in it.
  function axes(m, g, w, h, top, title, labels) {
    const paint = theme.colours(), width = w - LEFT - RIGHT;
    g.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    g.fillStyle = paint.muted;
    g.textBaseline = "top";
    for (const at of ticks(0, m.cycles, width / 110)) {
      const x = LEFT + at / m.cycles * width;
      g.textAlign = x > LEFT + width - 30 ? "right" : "center";
      g.fillText(format.scaled(at), Math.min(x, LEFT + width), h - BOTTOM + 5);
    }
    g.textAlign = "center";
    g.fillText("cycles", LEFT + width / 2, h - 13);
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const [y, text] of labels) g.fillText(text, LEFT - 8, y);
    g.save();
    g.translate(10, top + (h - BOTTOM - top) / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText(title, 0, 0);
    g.restore();
    const { from, to, end } = view.state;
    if (to - from < 0.999 * end) {
      g.strokeStyle = paint.accent;
      g.lineWidth = 1.5;
      g.strokeRect(LEFT + from / end * width, top + 0.5, Math.max(2, (to - from) / end * width), h - BOTTOM - top - 1);
    }
  }

  function bandwidthPlot(m, rate) {
    const H = 150, peak = m.tables.dram_bytes_per_cycle;
    const draw = (g, w) => {
      const paint = theme.colours();
      rate.draw(g, { x: LEFT, y: 8, w: Math.floor(w - LEFT - RIGHT), h: H - BOTTOM - 8, from: 0, to: m.cycles }, paint);
      const y = (v) => 8 + (H - BOTTOM - 8) * (1 - v / (rate.most || 1));
      axes(m, g, w, H, 8, "B/cycle", ticks(0, rate.most || 1, 4).map((v) => [y(v), format.scaled(v)]));
    };
    const about = (x, y, w) => {
      if (x < LEFT || x > w - RIGHT) return null;
      const width = w - LEFT - RIGHT, cycle = (x - LEFT) / width * m.cycles, [r, wr] = rate.at(cycle, m.cycles / width);
      return [`cycle ${format.integer(cycle)}`, `read ${format.fixed(r, 1)} B/cycle`, `written ${format.fixed(wr, 1)} B/cycle`, peak ? `${format.percent((r + wr) / peak)} of the peak` : null];
    };
    const b = canvasPlot(H, "External memory: useful bytes per cycle", null, draw, about);
    b.node.append(el("div", { class: "legend" }, el("span", {}, el("i", { class: "swatch", style: `background:${theme.state("busy")}` }), "read"),
      el("span", {}, el("i", { class: "swatch", style: `background:${theme.state("wait_dma")}` }), "written, on top of it"),
      peak ? el("span", {}, `dashed: peak, ${format.fixed(peak, 1)} B/cycle`) : null,
      el("span", {}, "bytes of a transfer are spread evenly from its start to its end")));
    return b;
  }

  return { rates, start, canvasPlot, axes, LEFT, RIGHT, BOTTOM };
})();
