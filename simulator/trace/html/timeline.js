// SPDX-License-Identifier: Apache-2.0
// The timeline's canvas: overview, ruler, layers, a lane per engine, bandwidth, arrows.
"use strict";

const timeline = (() => {
  const LEFT = 64, OVERVIEW = 34, RULER = 26, LAYERS = 34, LANE = 30, HOST = 20, GAP = 7, BANDWIDTH = 46;
  const ARROWS = 250; // at most so many are drawn
  let m, canvas, g, lanes = [], width = 0, height = 0, bandwidth, kept = {};

  const colourOf = (layer) => {
    if (layer < 0) return theme.colours().faint;
    return theme.series($("colour").value === "kernel" ? m.layers[layer].kernelIndex : layer);
  };

  function layout() {
    lanes = [];
    let y = 0;
    const add = (kind, h, extra) => {
      lanes.push({ kind, y, h, x: LEFT, ...extra });
      y += h + GAP;
    };
    add("overview", OVERVIEW);
    add("ruler", RULER);
    add("layers", LAYERS);
    if (m.tables.marks.length) add("marks", 14);
    if (m.host.n) add("host", HOST);
    for (const t of m.tracks) add("engine", LANE, { track: t, name: m.tables.engines[t.engine] });
    add("bandwidth", BANDWIDTH);
    height = y;
  }

  function resize() {
    const box = $("canvas-box"), ratio = window.devicePixelRatio || 1;
    width = Math.max(360, box.clientWidth);
    if (canvas.width === Math.round(width * ratio) && canvas.height === Math.round(height * ratio)) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(); // at once: the canvas has just been emptied
  }

  const plotWidth = () => Math.max(50, Math.floor(width - LEFT - 8));
  const toX = (cycle) => LEFT + (cycle - view.state.from) / (view.state.to - view.state.from) * plotWidth();
  const toCycle = (x) => view.state.from + (x - LEFT) / plotWidth() * (view.state.to - view.state.from);

  function label(lane, words, paint) {
    g.font = paint.label;
    g.fillStyle = paint.muted;
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillText(words, LEFT - 10, lane.y + lane.h / 2);
  }

  function drawOverview(lane, paint) {
    const { from, to, end } = view.state, w = plotWidth();
    label(lane, "run", paint);
    g.fillStyle = paint.lane;
    g.fillRect(LEFT, lane.y, w, lane.h);
    g.drawImage(strip(lane, paint, w), LEFT, lane.y, w, lane.h);
    const x0 = LEFT + from / end * w, x1 = LEFT + to / end * w;
    g.fillStyle = paint.accent;
    g.globalAlpha = 0.16;
    g.fillRect(x0, lane.y, Math.max(2, x1 - x0), lane.h);
    g.globalAlpha = 1;
    g.strokeStyle = paint.accent;
    g.lineWidth = 1.5;
    g.strokeRect(x0 + 0.75, lane.y + 0.75, Math.max(2, x1 - x0 - 1.5), lane.h - 1.5);
  }

  // The whole run's picture, drawn once per width and theme.
  function strip(lane, paint, w) {
    const key = `${w} ${theme.name()}`;
    if (kept.key === key) return kept.canvas;
    const ratio = window.devicePixelRatio || 1;
    const picture = el("canvas", { width: Math.round(w * ratio), height: Math.round(lane.h * ratio) });
    const p = picture.getContext("2d");
    p.scale(ratio, ratio);
    p.fillStyle = paint.faint;
    const shown = m.tracks.filter((t) => m.tables.engines[t.engine] !== "cp" && t.n);
    const row = lane.h / Math.max(1, shown.length), per = view.state.end / w;
    shown.forEach((t, r) => {
      let busy = 0;
      for (let x = 0; x < w; x++) {
        const b = model.busyUpTo(t, (x + 1) * per);
        const h = Math.max(0.6, (row - 1) * Math.min(1, (b - busy) / per));
        if (b > busy) p.fillRect(x, (r + 1) * row - h, 1, h);
        busy = b;
      }
    });
    kept = { key, canvas: picture };
    return picture;
  }

  function drawRuler(lane, paint, bottom) {
    const { from, to } = view.state;
    g.font = paint.small;
    g.textBaseline = "top";
    const marks = ticks(from, to, plotWidth() / 130);
    const step = marks.length > 1 ? marks[1] - marks[0] : to - from;
    for (const at of marks) {
      const x = Math.round(toX(at)) + 0.5;
      g.strokeStyle = paint.line;
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(x, lane.y + 2);
      g.lineTo(x, bottom);
      g.stroke();
      const last = x > LEFT + plotWidth() - 60;
      g.textAlign = last ? "right" : "left";
      g.fillStyle = paint.ink;
      g.fillText(step >= 1e6 ? format.scaled(at) : format.integer(at), x + (last ? -4 : 4), lane.y);
      g.fillStyle = paint.muted;
      g.fillText(format.time(m.us(at)), x + (last ? -4 : 4), lane.y + 12);
    }
    label(lane, "cycles", paint);
  }

  function drawLayers(lane, paint) {
    label(lane, "layers", paint);
    g.font = paint.small;
    g.textBaseline = "middle";
    g.textAlign = "left";
    let right = -1;
    const half = lane.h / 2;
    for (const l of m.layers) {
      const x0 = Math.max(LEFT, toX(l.start_cycle)), x1 = Math.min(LEFT + plotWidth(), toX(l.end_cycle));
      if (x1 <= LEFT || x0 >= LEFT + plotWidth()) continue;
      const colour = colourOf(l.index);
      const lower = x0 < right - 1;
      const y = lane.y + (lower ? half : 0), h = half - 1;
      g.fillStyle = colour;
      g.fillRect(x0, y, Math.max(1, x1 - x0 - 0.7), h);
      if (l.index === view.state.layer) {
        g.strokeStyle = paint.ink;
        g.lineWidth = 2;
        g.strokeRect(x0, y, Math.max(2, x1 - x0 - 0.7), h);
      }
      if (x1 - x0 > 42) {
        g.save();
        g.beginPath();
        g.rect(x0, y, x1 - x0 - 2, h);
        g.clip();
        g.fillStyle = theme.inkOn(colour);
        g.fillText(l.title, x0 + 4, y + h / 2 + 0.5);
        g.restore();
      }
      right = lower ? right : x1;
    }
  }

  function drawMarks(lane, paint) {
    label(lane, "marks", paint);
    g.fillStyle = paint.accent;
    for (const [kind, , cycle] of m.tables.marks) {
      const x = toX(cycle);
      if (x < LEFT || x > LEFT + plotWidth()) continue;
      g.fillRect(x, lane.y, kind === "open" || kind === "close" ? 2 : 1, lane.h);
    }
  }

  function drawHost(lane, paint) {
    label(lane, "host", paint);
    host.draw(g, m, { x: LEFT, y: lane.y, w: plotWidth(), h: lane.h, from: view.state.from, to: view.state.to }, colourOf, paint);
  }

  function drawLaunches(paint) {
    const lane = lanes.find((l) => l.kind === "host"), cp = lanes.find((l) => l.kind === "engine");
    if (lane && cp && $("arrows").checked) host.lines(g, m, toX, view.state.from, view.state.to, lane.y + lane.h, cp.y, paint);
  }

  function drawBandwidth(lane, paint) {
    label(lane, "DRAM", paint);
    const w = plotWidth();
    bandwidth.draw(g, { x: LEFT, y: lane.y, w, h: lane.h, from: view.state.from, to: view.state.to }, paint);
  }

  const laneOf = (engine) => lanes.find((l) => l.track && l.track.engine === engine);

  function arrow(i, strong, paint) {
    const back = m.c.cause[i];
    if (!back) return false;
    const cause = i - back, to = laneOf(m.c.engine[i]), from = laneOf(m.c.engine[cause]);
    if (!to || !from) return false;
    const x0 = toX(m.c.start[i] - m.c.signal[i]), x1 = toX(m.c.start[i]);
    if (x1 < LEFT || x0 > LEFT + plotWidth()) return false;
    const down = to.y > from.y;
    const y0 = from.y + (down ? from.h * 0.72 : 0), y1 = down ? to.y : to.y + to.h * 0.72;
    g.strokeStyle = strong ? paint.ink : paint.faint;
    g.fillStyle = g.strokeStyle;
    g.lineWidth = strong ? 1.8 : 1;
    g.beginPath();
    g.moveTo(x0, y0);
    g.bezierCurveTo(x0 + 6, (y0 + y1) / 2, x1 - 6, (y0 + y1) / 2, x1, y1);
    g.stroke();
    const s = down ? -1 : 1;
    g.beginPath();
    g.moveTo(x1, y1);
    g.lineTo(x1 - 3.5, y1 + s * 6);
    g.lineTo(x1 + 3.5, y1 + s * 6);
    g.fill();
    return true;
  }

  function drawArrows(paint) {
    const { chosen } = view.state;
    if (chosen >= 0) {
      arrow(chosen, true, paint);
      for (const i of followers(chosen)) arrow(i, true, paint);
    }
    if (!$("arrows").checked) return;
    const found = [];
    for (const lane of lanes) {
      if (!lane.track || !lane.track.n) continue;
      const [a, b] = tracks.inWindow(lane.track, view.state.from, view.state.to);
      if (b - a > ARROWS * 4) return;
      for (let k = a; k <= b; k++) if (m.c.cause[lane.track.id[k]]) found.push(lane.track.id[k]);
      if (found.length > ARROWS) return;
    }
    found.forEach((i) => arrow(i, false, paint));
  }

  // Instructions that this one let start; looked for among the next ones only.
  function followers(i) {
    const out = [];
    for (let k = i + 1; k < m.d.n && k < i + 4000 && out.length < 20; k++) {
      if (m.c.cause[k] && k - m.c.cause[k] === i) out.push(k);
    }
    return out;
  }

  function outline(i, colour, w) {
    const lane = laneOf(m.c.engine[i]);
    if (!lane) return;
    const k = model.last(lane.track.from, m.c.start[i], lane.track.n);
    const at = [k, k + 1].find((n) => n >= 0 && lane.track.id[n] === i);
    const from = at === undefined ? m.c.start[i] : lane.track.from[at];
    const to = at === undefined ? from + m.c.issued[i] : lane.track.to[at];
    const x0 = Math.max(LEFT, toX(from)), x1 = Math.min(LEFT + plotWidth(), toX(to));
    if (x1 < LEFT || x0 > LEFT + plotWidth()) return;
    g.strokeStyle = colour;
    g.lineWidth = w;
    g.strokeRect(x0, lane.y + 0.5, Math.max(2, x1 - x0), lane.h * 0.72);
  }

  function drawPath(paint) {
    if (!m.d.step.insn || !$("path").checked) return;
    for (const lane of lanes) {
      if (!lane.track && lane.kind !== "host") continue;
      critical.spans(lane.track ? lane.track.engine : "host", view.state.from, view.state.to, plotWidth(), (from, to) => {
        const x0 = Math.max(LEFT, toX(from)), x1 = Math.min(LEFT + plotWidth(), toX(to));
        if (x1 < LEFT || x0 > LEFT + plotWidth()) return;
        g.fillStyle = paint.ink;
        g.fillRect(x0, lane.y - 4, Math.max(1, x1 - x0), 3);
      });
    }
  }

  function paintOf() {
    const family = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    return { ...theme.colours(), small: `11px ${family}`, label: `600 12px ${family}` };
  }

  function draw() {
    const paint = paintOf(), mode = $("colour").value;
    g.clearRect(0, 0, width, height);
    const ruler = lanes.find((l) => l.kind === "ruler");
    for (const lane of lanes) {
      if (lane.kind !== "engine" && lane.kind !== "host") continue;
      g.fillStyle = paint.lane;
      g.fillRect(LEFT, lane.y, plotWidth(), lane.h);
    }
    drawRuler(ruler, paint, height - GAP);
    for (const lane of lanes) {
      if (lane.kind === "overview") drawOverview(lane, paint);
      if (lane.kind === "layers") drawLayers(lane, paint);
      if (lane.kind === "marks") drawMarks(lane, paint);
      if (lane.kind === "host") drawHost(lane, paint);
      if (lane.kind === "bandwidth") drawBandwidth(lane, paint);
      if (lane.kind !== "engine") continue;
      label(lane, lane.name, paint);
      g.save();
      g.beginPath();
      g.rect(LEFT, lane.y - 5, plotWidth(), lane.h + 6);
      g.clip();
      tracks.draw(g, m, lane.track, { x: LEFT, y: lane.y, w: plotWidth(), h: lane.h, from: view.state.from, to: view.state.to }, mode, paint);
      g.restore();
    }
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, plotWidth(), height);
    g.clip();
    drawPath(paint);
    drawArrows(paint);
    drawLaunches(paint);
    if (view.state.chosen >= 0) outline(view.state.chosen, paint.ink, 2);
    g.restore();
    const { from, to } = view.state;
    $("range").textContent = `${format.integer(from)} to ${format.integer(to)}: ${format.integer(to - from)} cycles, ${format.time(m.us(to - from))}`;
  }

  function hit(x, y) {
    const lane = lanes.find((l) => y >= l.y - 3 && y < l.y + l.h + 3);
    if (!lane || x < LEFT) return { lane };
    const cycle = toCycle(x), slack = 2 * (view.state.to - view.state.from) / plotWidth();
    if (lane.kind === "engine") {
      const k = tracks.at(lane.track, cycle, slack);
      return { lane, cycle, i: k < 0 ? -1 : lane.track.id[k] };
    }
    if (lane.kind === "layers") {
      const found = m.layers.filter((l) => cycle >= l.start_cycle - slack && cycle < l.end_cycle + slack);
      const lower = y > lane.y + lane.h / 2 && found.length > 1;
      return { lane, cycle, layer: found.length ? found[lower ? 1 : 0].index : -1 };
    }
    if (lane.kind === "host") {
      const k = host.at(m.host, cycle, slack);
      return { lane, cycle, launch: k, layer: k < 0 ? -1 : m.host.layer[k] };
    }
    return { lane, cycle };
  }

  function start(theModel) {
    m = theModel;
    canvas = $("canvas");
    g = canvas.getContext("2d");
    bandwidth = memory.rates(m);
    layout();
    resize();
    new ResizeObserver(resize).observe($("canvas-box"));
    view.onChange(draw);
    theme.onChange(view.changed);
    for (const id of ["colour", "arrows", "path"]) $(id).addEventListener("change", view.changed);
  }

  // For tests: where a lane is.
  const laneMiddle = (name) => {
    const lane = lanes.find((l) => l.name === name || l.kind === name);
    return lane.y + lane.h * 0.35;
  };

  return { start, draw, laneMiddle, hit, toCycle, toX, plotWidth, LEFT, followers, bandwidthAt: (cycle) => bandwidth.at(cycle, (view.state.to - view.state.from) / plotWidth()) };
})();
