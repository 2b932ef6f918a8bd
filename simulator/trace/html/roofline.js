// SPDX-License-Identifier: Apache-2.0
// Roofline: a dot per layer at its operations per byte of external memory and its rate; the roofs
// are the memory's bandwidth and the array's peak per element type. Two operations per
// multiply-add, one per vector element.
"use strict";

const roofline = (() => {
  const ops = (l) => 2 * l.macs + l.vector_elements;

  function points(m) {
    const peak = m.tables.dram_bytes_per_cycle;
    return m.layers.filter((l) => ops(l) > 0 && l.dram > 0).map((l) => {
      const cycles = Math.max(l.cycles, l.mxu_cycles, l.vec_cycles, peak ? l.dram / peak : 0, 1);
      return { l, x: ops(l) / l.dram, y: ops(l) / (cycles / (m.report.clock_mhz * 1e6)) };
    });
  }

  function draw(m) {
    const dots = points(m), peaks = [...new Map(m.tables.peaks.map((p) => [p.macs_per_s, p])).values()];
    const bandwidth = m.tables.dram_bytes_per_cycle * m.report.clock_mhz * 1e6;
    if (!dots.length || !peaks.length) {
      $("roofline-plot").replaceChildren(el("p", { class: "note" }, "No layer both computes and reads external memory."));
      return;
    }
    const top = Math.max(...peaks.map((p) => 2 * p.macs_per_s), ...dots.map((d) => d.y)) * 2;
    const ridge = bandwidth ? 2 * peaks[peaks.length - 1].macs_per_s / bandwidth : 1;
    const xs = [...dots.map((d) => d.x), ridge / 10, ridge * 4], low = Math.min(...dots.map((d) => d.y));
    const x = { from: 10 ** Math.floor(Math.log10(Math.min(...xs))), to: 10 ** Math.ceil(Math.log10(Math.max(...xs))), log: true, title: "operations per byte of external memory", text: (v) => format.scaled(v) };
    const y = { from: Math.max(10 ** Math.floor(Math.log10(low)), top / 1e6), to: top, log: true, title: "operations per second", text: (v) => format.scaled(v, "op/s") };
    const f = plot.frame(1160, 400, x, y);
    f.root.setAttribute("aria-label", "Roofline of the layers");
    const most = Math.max(...peaks.map((p) => 2 * p.macs_per_s));
    if (bandwidth) {
      const left = Math.max(x.from, y.from / bandwidth), right = Math.min(x.to, most / bandwidth);
      f.root.append(svg("line", { class: "roof", x1: f.X(left), y1: f.Y(bandwidth * left), x2: f.X(right), y2: f.Y(bandwidth * right) }));
      const mid = Math.sqrt(left * right), angle = Math.atan2(f.Y(bandwidth * right) - f.Y(bandwidth * left), f.X(right) - f.X(left)) * 180 / Math.PI;
      f.root.append(svg("text", { class: "roof-text", "text-anchor": "middle", transform: `translate(${f.X(mid)} ${f.Y(bandwidth * mid) - 8}) rotate(${angle})` }, `DRAM ${format.scaled(bandwidth, "B/s")}`));
    }
    for (const p of peaks) {
      const roof = 2 * p.macs_per_s;
      f.root.append(svg("line", { class: "roof", x1: f.X(Math.max(x.from, bandwidth ? roof / bandwidth : x.from)), x2: f.X(x.to), y1: f.Y(roof), y2: f.Y(roof) }),
        svg("text", { class: "roof-text", x: f.X(x.to) - 4, y: f.Y(roof) - 6, "text-anchor": "end" }, `${m.tables.peaks.filter((q) => q.macs_per_s === p.macs_per_s).map((q) => q.dtype).join(", ")} ${format.scaled(roof, "op/s")}`));
    }
    const largest = Math.max(...dots.map((d) => d.l.share));
    const bySize = [...dots].sort((a, b) => b.l.share - a.l.share);
    for (const d of bySize) {
      const r = 3.5 + 8 * Math.sqrt(d.l.share / largest);
      const dot = svg("circle", {
        class: "dot", cx: f.X(d.x), cy: f.Y(Math.max(y.from, d.y)), r, fill: theme.series(d.l.kernelIndex), "fill-opacity": 0.8,
        tabindex: 0, role: "button", "data-layer": d.l.index, "aria-label": `${d.l.title}: ${format.scaled(d.y, "op/s")} at ${format.scaled(d.x)} operations per byte`,
        onclick: () => layers.show(d.l.index), onkeydown: (e) => { if (e.key === "Enter") layers.show(d.l.index); },
      });
      const roof = Math.min(most, bandwidth ? bandwidth * d.x : most);
      f.root.append(tip.on(dot, () => [...input.layerRows(d.l.index), `${format.scaled(d.y, "op/s")} at ${format.scaled(d.x)} op/B: ${format.percent(d.y / roof)} of the roof`]));
    }
    const kernels = [...new Set(dots.map((d) => d.l.kernelIndex))];
    $("roofline-plot").replaceChildren(f.root,
      el("div", { class: "legend" }, kernels.map((k) => el("span", {}, el("i", { class: "swatch", style: `background:${theme.series(k)}` }), m.kernels[k]))),
      el("p", { class: "note" }, "A dot per layer that computes and reads external memory; its area is the layer's share of the run. Its rate is over the cycles by which it moves the end on, or those that it keeps an engine or the memory busy if they are more (what it loads early hides behind others). Operations: two per multiply-add, one per vector element. Click a dot to see it in the timeline."));
    mark();
  }

  function mark() {
    for (const dot of $("roofline-plot").querySelectorAll(".dot")) {
      dot.classList.toggle("chosen", Number(dot.dataset.layer) === view.state.layer);
    }
  }

  function start(m) {
    draw(m);
    theme.onChange(() => draw(m));
    let chosen = -1;
    view.onChange((s) => {
      if (s.layer !== chosen) mark();
      chosen = s.layer;
    });
  }
  return { start };
})();
