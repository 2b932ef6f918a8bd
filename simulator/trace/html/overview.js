// SPDX-License-Identifier: Apache-2.0
// The header, the tiles with the run's figures, and the run's description at the end.
"use strict";

const overview = (() => {
  function tile(name, value, unit, more, share) {
    return el("div", { class: "tile" },
      el("div", { class: "name" }, name),
      el("div", { class: "value" }, value, unit ? el("small", {}, unit) : null),
      share === undefined ? null : el("div", { class: "meter", role: "img", "aria-label": `${name}: ${format.percent(share)}` },
        el("i", { style: `width:${Math.min(100, 100 * share).toFixed(2)}%` })),
      el("div", { class: "more" }, more || "\u00a0"));
  }

  function engineTile(r, name, title) {
    const e = r.engines.find((x) => x.name === name);
    if (!e) return null;
    const partial = e.stalls.busy_partial || 0;
    return tile(title, format.fixed(100 * e.busy_cycles / Math.max(1, r.cycles), 1), "% at full rate",
      `and ${format.percent(partial / Math.max(1, r.cycles))} partly`, e.busy_cycles / Math.max(1, r.cycles));
  }

  function tiles(m) {
    const r = m.report, b = r.bounds, peak = m.tables.dram_bytes_per_cycle;
    const rate = (r.dram.read_bytes + r.dram.write_bytes) / Math.max(1, r.cycles);
    const out = [
      tile("Cycles", format.integer(r.cycles), "", `${format.integer(r.instructions)} instructions`),
      tile("Time", format.time(r.time_us), "", `at ${format.integer(r.clock_mhz)} MHz`),
    ];
    if (r.eager) {
      out.push(tile("Launches", format.integer(r.eager.launches), "", `and ${format.integer(r.eager.views)} calls that launch nothing`),
        tile("Waits for the host", format.fixed(100 * r.eager.bubble_cycles / Math.max(1, r.cycles), 1), "% of the run",
          `the host sees ${format.time(r.eager.latency_us)}`, r.eager.bubble_cycles / Math.max(1, r.cycles)));
    }
    if (b.ideal_cycles > 0 && !m.part) {
      out.push(tile("Over the ideal bound", format.fixed(b.latency_over_ideal, 2), "\u00d7",
        `bounds: array ${format.scaled(b.mac_cycles)}, memory ${format.scaled(b.dram_cycles)}, vector ${format.scaled(b.vector_cycles)}`));
    }
    if (b.mapped_cycles > 0 && !m.part) {
      out.push(tile("Over the mapped bound", format.fixed(b.latency_over_mapped, 2), "\u00d7",
        `${format.scaled(b.mapped_cycles)} cycles with each layer's fit`));
    }
    out.push(engineTile(r, "mxu", "Matrix engine"), engineTile(r, "vec", "Vector engine"));
    out.push(tile("External memory", format.fixed(rate, 1), "B/cycle",
      peak ? `${format.percent(rate / peak)} of ${format.fixed(peak, 1)}` : "no limit", peak ? rate / peak : undefined));
    if (r.spm.peak_bytes) {
      out.push(tile("Scratchpad, at most", format.bytes(r.spm.peak_bytes), "",
        `of ${format.bytes(r.spm.capacity_bytes)}`, r.spm.peak_bytes / r.spm.capacity_bytes));
    }
    $("tiles").replaceChildren(...out.filter(Boolean));
  }

  function about(m) {
    const r = m.report;
    const rows = [["program", r.program], ["target", `${r.target}, ${format.integer(r.clock_mhz)} MHz`],
      ["hardware", `program ${r.hardware_hash.program}, timing ${r.hardware_hash.timing}`],
      ...r.inputs.map((x) => [`input ${x.name}`, x.from]),
      ...r.outputs.map((x) => [`output ${x.name}`, `${x.dtype}[${x.shape.join(",")}], CRC-32 ${x.crc32}`]),
      ["noise", `${r.runs.noise}, seed ${r.runs.seed}, ${r.runs.n} run${r.runs.n === 1 ? "" : "s"}`],
      ["memory traffic", `${format.bytes(r.dram.read_bytes)} read (instructions ${format.bytes(r.dram.fetch_bytes)}), ${format.bytes(r.dram.write_bytes)} written; ` +
        `rows ${format.integer(r.dram.row_hits)} hit, ${format.integer(r.dram.row_misses)} opened, ${format.integer(r.dram.refreshes)} refreshes`]];
    $("about-body").replaceChildren(el("table", {}, el("tbody", {}, rows.map(([a, b]) => el("tr", {}, el("th", { scope: "row" }, a), el("td", {}, b))))));
  }

  function start(m) {
    const r = m.report;
    document.title = `${r.program || "program"} on ${r.target || "npu"}: npusim`;
    $("program").textContent = r.program || "program";
    $("program").title = r.program || "";
    $("target").textContent = `${r.target || "npu"}, ${format.integer(r.clock_mhz)} MHz`;
    if (r.fault || r.stopped) {
      $("fault").hidden = false;
      $("fault").textContent = r.fault ? `The run ended with a fault.\n${r.fault}` : `The run was stopped: ${r.stopped}`;
    }
    const sections = [...document.querySelectorAll("main section")].filter((s) => !s.hidden && s.querySelector("h2"));
    $("nav").replaceChildren(...sections.map((s) => el("a", { href: `#${s.id}` }, s.id === "critical" ? "Critical path" : s.id === "about" ? "Run" : s.id[0].toUpperCase() + s.id.slice(1))));
    tiles(m);
    about(m);
  }

  return { start };
})();
