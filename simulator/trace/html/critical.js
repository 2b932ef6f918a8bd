// SPDX-License-Identifier: Apache-2.0
// The critical path: which engines and layers the run's length comes from, slack, and what-ifs.
"use strict";

const critical = (() => {
  const WAYS = ["dispatch", "room in a queue", "queue", "engine", "result", "signal", "end of all", "host"];
  const SCALES = [2, 5, 10]; // times as fast that a bar of the what-ifs may stand for
  const HOST = WAYS.indexOf("host");
  let perEngine = new Map(); // engine, or "host" -> { from, to } of the path's steps there

  // What the path spends where. Steps follow each other without gaps, so all of it adds up.
  function sums(m) {
    const s = m.d.step, work = new Float64Array(m.tables.engines.length), layer = new Float64Array(m.layers.length);
    let latency = 0, other = 0, host = 0, at = 0;
    perEngine = new Map(m.tracks.map((t) => [t.engine, { from: [], to: [] }]));
    perEngine.set("host", { from: [], to: [] });
    const spans = m.tables.engines.map((_, e) => perEngine.get(e));
    for (let k = 0; k < s.insn.length; k++) {
      const i = s.insn[k], own = s.cycles[k] - s.latency[k] - s.other[k], e = m.c.engine[i], hosts = s.kind[k] === HOST;
      if (hosts) host += own;
      else work[e] += own;
      latency += s.latency[k];
      other += s.other[k];
      const l = m.layerOf(i);
      if (l >= 0) layer[l] += s.cycles[k];
      const span = hosts ? perEngine.get("host") : spans[e];
      if (own && span) {
        span.from.push(at);
        span.to.push(at + own);
      }
      at += s.cycles[k];
    }
    m.layers.forEach((l, i) => { l.path = layer[i]; });
    return { engine: new Map([...work.entries()]), latency, other, host };
  }

  function slack(m) {
    const cp = m.tables.engines.indexOf("cp");
    m.layers.forEach((l) => { l.slack = Infinity; });
    for (let i = 0; i < m.d.n; i++) {
      const l = m.layerOf(i);
      if (l >= 0 && m.c.engine[i] !== cp) m.layers[l].slack = Math.min(m.layers[l].slack, m.c.slack[i]);
    }
    m.layers.forEach((l) => { if (l.slack === Infinity) l.slack = undefined; });
  }

  // Calls f(from, to) for the path's spans of an engine in [from, to); those closer than a pixel
  // become one.
  function spans(engine, from, to, pixels, f) {
    const s = perEngine.get(engine), gap = (to - from) / pixels;
    if (!s) return;
    for (let k = Math.max(0, model.last(s.from, from)); k < s.from.length && s.from[k] < to; k++) {
      const begin = s.from[k];
      for (let next; s.to[k] < to && (next = model.last(s.from, s.to[k] + gap)) > k;) k = next;
      f(begin, s.to[k]);
    }
  }

  function pathBar(m, sum) {
    const parts = [...sum.engine].filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1])
      .map(([e, n]) => [m.tables.engines[e], n, `work of ${m.tables.engines[e]} that the end waits for`, theme.series(e)]);
    if (sum.host) parts.unshift(["host", sum.host, "work of the host: launches that the device and the end wait for", theme.state("host")]);
    if (sum.latency) parts.push(["signals", sum.latency, "signals on their way between engines", theme.state("wait_semaphore")]);
    if (sum.other) parts.push(["other", sum.other, "fetching and arbitration that no dependence explains", theme.state("queue_empty")]);
    return [el("div", { class: "stack", style: "height:28px" }, parts.map(([name, n, meaning, colour]) => {
      const share = n / Math.max(1, m.cycles);
      return tip.on(el("div", { style: `width:${(100 * share).toFixed(4)}%;background:${colour};color:${theme.inkOn(colour)};line-height:28px`, tabindex: share > 0.002 ? 0 : undefined, role: "img", "aria-label": `${name} ${format.percent(share)}` },
        share > 0.05 ? `${name} ${format.percent(share)}` : ""), () => [`${name}: ${format.integer(n)} cycles, ${format.percent(share, 2)}`, meaning]);
    })),
    el("div", { class: "legend" }, parts.map(([name, n, , colour]) => el("span", {}, el("i", { class: "swatch", style: `background:${colour}` }), `${name} ${format.integer(n)}`)))];
  }

  function ways(m) {
    const s = m.d.step, by = new Map();
    for (let k = 0; k < s.insn.length; k++) by.set(s.kind[k], (by.get(s.kind[k]) || 0) + s.cycles[k]);
    return [...by].sort((a, b) => b[1] - a[1]).filter(([, n]) => n >= m.cycles * 0.001)
      .map(([k, n]) => `${WAYS[k]} ${format.percent(n / m.cycles)}`).join(", ");
  }

  function layerTable(m) {
    const top = [...m.layers].filter((l) => l.path > 0).sort((a, b) => b.path - a.path).slice(0, 12);
    return el("table", { class: "named" }, el("thead", {}, el("tr", {}, ["layer", "cycles", "share", "slack"].map((t, i) => el("th", { class: i ? "n" : "", title: i === 1 ? "cycles on the path" : undefined }, t)))),
      el("tbody", {}, top.map((l) => el("tr", {}, el("td", { class: "name" }, el("button", { type: "button", class: "link", title: l.title, onclick: () => layers.show(l.index) }, l.title)),
        el("td", { class: "n" }, format.integer(l.path)), el("td", { class: "n" }, format.percent(l.path / m.cycles)),
        el("td", { class: "n" }, l.slack === undefined ? "" : format.integer(l.slack))))));
  }

  function whatifs(m) {
    const list = m.tables.whatif, now = m.report.time_us;
    if (!list.length) return el("p", { class: "note" }, m.part ? "None: what-ifs need a run to its end." : "No what-ifs in this report: npusim --what-if makes them.");
    const most = Math.max(...list.map((w) => Math.max(now / w.rerun_us, now / w.predicted_us)));
    const full = SCALES.find((s) => s >= most) || 10 ** Math.ceil(Math.log10(most)); // of a full bar
    const bar = (us, colour) => {
      const gain = Math.max(0, now / us - 1) / (full - 1);
      return el("span", { class: "gain" }, el("i", { style: `width:${(100 * gain).toFixed(1)}%;background:${colour}` }));
    };
    return el("table", { class: "whatif" },
      el("thead", {}, el("tr", {}, ["what if", "predicted", "run again", "faster", "off by"].map((t, i) => el("th", { class: i ? "n" : "" }, t)), el("th", {}, `gain (full: ${full}\u00d7)`), el("th", {}, "parameters"))),
      el("tbody", {}, [...list].sort((a, b) => a.rerun_us - b.rerun_us).map((w) => el("tr", {}, el("td", {}, w.title),
        el("td", { class: "n" }, format.time(w.predicted_us)), el("td", { class: "n" }, format.time(w.rerun_us)),
        el("td", { class: "n" }, `${format.fixed(now / w.rerun_us, 2)}\u00d7`), el("td", { class: "n" }, format.percent(Math.round((w.predicted_us / w.rerun_us - 1) * 1000) / 1000 + 0)),
        el("td", {}, bar(w.rerun_us, theme.state("busy")), bar(w.predicted_us, theme.state("busy_partial"))),
        el("td", { class: "node", title: w.change }, w.change)))));
  }

  const NOTE = "Each line is the same program on a machine with other parameters. Predicted: the longest path with other durations, from this run's log alone. Run again: the program timed on that machine (upper bar). The program stays as compiled for the machine of this run; compiling it for the other one may gain more.";

  function draw(m, sum) {
    $("critical-body").replaceChildren(
      el("p", { class: "note" }, `The chain of instructions that ends last; everything on it delays the end. It goes on by: ${ways(m)}.`),
      ...pathBar(m, sum),
      el("div", { class: "two uneven" },
        el("div", {}, el("h3", {}, "Layers on the path"), el("div", { class: "scroll" }, layerTable(m)),
          el("p", { class: "note" }, "slack: cycles by which all of the layer could come later without the end moving." + (sum.host ? " What the host does on the path counts for the layer that it launches." : ""))),
        el("div", {}, el("h3", {}, "What if"), el("div", { class: "scroll" }, whatifs(m)),
          m.tables.whatif.length ? el("p", { class: "note" }, NOTE) : null)));
  }

  function start(m) {
    if (!m.d.step.insn || !m.d.step.insn.length) {
      m.layers.forEach((l) => { l.path = 0; });
      return;
    }
    $("critical").hidden = false;
    $("path-label").hidden = false;
    const sum = sums(m);
    slack(m);
    draw(m, sum);
    theme.onChange(() => draw(m, sum));
  }

  return { start, spans };
})();
