// SPDX-License-Identifier: Apache-2.0
// Distributions of the time over several runs, of this program and of the one that it was compared
// with: histograms, the empirical distribution, statistics with their intervals, shares of sources.
"use strict";

const jitter = (() => {
  const STATS = [["mean_us", "mean"], ["std_us", "standard deviation"], ["cv", "coefficient of variation"], ["min_us", "fastest"],
    ["p50_us", "median"], ["p90_us", "90 of 100 within"], ["p99_us", "99 of 100 within"], ["p999_us", "999 of 1000 within"], ["max_us", "slowest"]];
  const NARROW = 560, HEIGHT = 250;

  const colourOf = (i) => theme.series(i ? 1 : 0);
  const nameOf = (r, i, m) => r.program || (i ? "other program" : m.report.program || "this program");
  const value = (key, v, time) => (v === null || v === undefined ? "" : key === "cv" ? format.fixed(v, 4) : time(v));

  function histogram(r, i, name) {
    const times = r.times_us, low = Math.min(...times), high = Math.max(...times);
    const spread = high - low || Math.max(1e-6, low * 1e-6), n = Math.max(8, Math.min(40, Math.round(Math.sqrt(times.length)) * 2));
    const bins = new Array(n).fill(0);
    times.forEach((t) => { bins[Math.min(n - 1, Math.floor((t - low) / spread * n))]++; });
    const most = Math.max(...bins), digits = Math.max(0, Math.ceil(-Math.log10(spread / 4)));
    const f = plot.frame(NARROW, HEIGHT, { from: low, to: low + spread, title: "microseconds", few: 5, text: (v) => format.fixed(v, digits) },
      { from: 0, to: most * 1.05, title: "runs", text: (v) => format.integer(v) });
    f.root.setAttribute("aria-label", `Histogram of ${name}`);
    bins.forEach((count, b) => {
      const x = f.X(low + b * spread / n), w = f.inner.w / n;
      if (!count) return;
      f.root.append(tip.on(svg("rect", { x: x + 0.5, y: f.Y(count), width: Math.max(1, w - 1), height: f.box.top + f.inner.h - f.Y(count), fill: colourOf(i) }),
        () => [`${count} of ${times.length} runs`, `from ${format.time(low + b * spread / n)} to ${format.time(low + (b + 1) * spread / n)}`]));
    });
    const mid = f.X(r.p50_us);
    f.root.append(svg("line", { x1: mid, x2: mid, y1: f.box.top, y2: f.box.top + f.inner.h, class: "median" }));
    return el("figure", {}, el("h3", {}, `${name}: ${format.integer(times.length)} runs`), f.root);
  }

  // Times over their own median, so that programs of different length share an axis.
  function distribution(list, names) {
    const sorted = list.map((r) => [...r.times_us].sort((a, b) => a - b).map((t) => t / r.p50_us));
    const low = Math.min(...sorted.map((s) => s[0])), high = Math.max(...sorted.map((s) => s[s.length - 1]));
    const room = Math.max((high - low) * 0.03, 1e-7), digits = Math.max(1, Math.ceil(-Math.log10((high - low + room) / 4)));
    const f = plot.frame(NARROW, HEIGHT, { from: low - room, to: high + room, title: "time over its own median", few: 5, text: (v) => format.fixed(v, digits) },
      { from: 0, to: 1, title: "part of the runs", text: (v) => format.percent(v, 0) });
    f.root.setAttribute("aria-label", "Empirical distribution of the time");
    sorted.forEach((s, i) => {
      const step = Math.max(1, Math.floor(s.length / 600));
      let d = `M${f.X(low - room)},${f.Y(0)}`;
      s.forEach((t, k) => { if (k % step === 0 || k === s.length - 1) d += `H${f.X(t).toFixed(2)}V${f.Y((k + 1) / s.length).toFixed(2)}`; });
      f.root.append(svg("path", { d: `${d}H${f.X(high + room)}`, fill: "none", stroke: colourOf(i), "stroke-width": 2, "stroke-dasharray": i ? "6 3" : undefined }));
    });
    return el("figure", {}, el("h3", {}, "Part of the runs that took at most so long"), f.root,
      el("div", { class: "legend" }, names.map((n, i) => el("span", {}, el("i", { class: "swatch", style: `background:${colourOf(i)}` }), i ? `${n} (dashed)` : n))));
  }

  function table(list, names) {
    const times = new Map(list.map((r) => [r, format.times(r.mean_us, r.std_us)]));
    return el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, ""), names.map((n) => [el("th", { class: "n" }, n), el("th", {}, `${format.percent(list[0].interval_level || 0.95, 0)} interval`)]))),
      el("tbody", {}, STATS.map(([key, title]) => el("tr", {}, el("th", { scope: "row" }, title), list.map((r) => {
        const between = r.intervals && r.intervals[key];
        const text = (v) => value(key, v, times.get(r));
        return [el("td", { class: "n" }, text(r[key])), el("td", { class: "muted" }, between ? `${text(between[0])} to ${text(between[1])}` : "")];
      })))));
  }

  function shares(r, name) {
    if (!r.sources || !r.sources.length) return null;
    return el("div", {}, el("h3", {}, `${name}: what makes it vary`), r.sources.map((s, i) => {
      const share = Math.max(0, Math.min(1, s.share || 0));
      return el("div", { class: "stack-row wide" }, el("span", { class: "label" }, s.name),
        tip.on(el("div", { class: "stack", tabindex: 0, role: "img", "aria-label": `${s.name} ${format.percent(share)}` }, el("div", { style: `width:${(100 * share).toFixed(2)}%;background:${theme.series(i + 2)}` })),
          () => [`${s.name} (${s.kind})`, `without it the variance falls by ${format.percent(s.share || 0)}` + (s.share_interval ? `, between ${format.percent(s.share_interval[0] || 0)} and ${format.percent(s.share_interval[1] || 0)}` : "")]),
        el("span", { class: "muted" }, `${format.percent(s.share || 0)}, ${s.kind}`));
    }));
  }

  function draw(m) {
    const list = [m.report.runs, m.report.runs.versus].filter(Boolean), names = list.map((r, i) => nameOf(r, i, m));
    const sources = list.map((r, i) => shares(r, names[i])).filter(Boolean);
    const v = m.report.runs.versus, ratio = v && v.mean_ratio;
    $("jitter-body").replaceChildren(
      el("p", { class: "note" }, `Noise: ${list[0].noise}, seed ${list[0].seed}. ` +
        list.map((r, i) => `${names[i]}: ${format.time(r.mean_us)} on average, ${format.time(r.sampled_mean_us || 0)} of it sampled from a fitted model, the rest simulated`).join("; ") + "." +
        (ratio && ratio.value ? ` The mean of ${names[1]} over that of ${names[0]}: ${format.fixed(ratio.value, 3)}.` : "")),
      el("div", { class: "two" }, ...list.map((r, i) => histogram(r, i, names[i])), distribution(list, names)),
      el("div", { class: "scroll" }, table(list, names)),
      ...list.map((r, i) => r.resample_block > 1 ? el("p", { class: "note" }, `${names[i]}: consecutive runs are correlated (${format.fixed(r.correlation || 0, 2)}); the intervals come from blocks of ${r.resample_block} runs.`) : null).filter(Boolean),
      ...(sources.length ? [el("div", { class: "two" }, ...sources),
        el("p", { class: "note" }, "A source's share is what turning it off alone takes away of the variance; shares need not add up to 100%, since one may hide behind another.")] : []));
  }

  function start(m) {
    const r = m.report.runs;
    if (!r.times_us || r.times_us.length < 2) return;
    $("jitter").hidden = false;
    draw(m);
    theme.onChange(() => draw(m));
  }
  return { start };
})();
