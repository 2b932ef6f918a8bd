// SPDX-License-Identifier: Apache-2.0
// The table of layers: sorted by a click on a heading, filtered by words, a row leads to the
// timeline. Of a long table only the rows around the visible part are elements (rows.js).
"use strict";

const layers = (() => {
  let m, order = { key: "start_cycle", down: false }, words = [], list = null;
  const collator = new Intl.Collator("en", { numeric: true });

  const COLUMNS = [
    { key: "index", title: "#", n: true, text: (l) => String(l.index + 1) },
    { key: "title", title: "layer", cell: (l) => el("td", { class: "name", title: l.title }, el("i", { class: "swatch", style: `background:${theme.series(l.index)}` }), l.title) },
    { key: "kernel", title: "kernel", text: (l) => l.kernel || l.op },
    { key: "cycles", title: "cycles", n: true, text: (l) => format.integer(l.cycles), hint: "by how much the layer moves the end of the run on; they add up to the run" },
    { key: "share", title: "share", n: true, cell: (l) => el("td", { class: "n" }, format.percent(l.share), el("span", { class: "bar" }, el("i", { style: `width:${(100 * l.share).toFixed(1)}%` }))) },
    { key: "start_cycle", title: "start", n: true, text: (l) => format.integer(l.start_cycle) },
    { key: "end_cycle", title: "end", n: true, text: (l) => format.integer(l.end_cycle) },
    { key: "macs", title: "MMAC", n: true, text: (l) => format.fixed(l.macs / 1e6, 2), hint: "millions of multiply-adds" },
    { key: "utilization", title: "util %", n: true, text: (l) => format.fixed(100 * l.utilization, 1), hint: "multiply-adds against the array's 16-bit peak over its cycles" },
    { key: "dram_in", title: "KiB in", n: true, of: (l) => l.bytes.dram_read, text: (l) => format.fixed(l.bytes.dram_read / 1024, 1), hint: "useful bytes from external memory" },
    { key: "dram_out", title: "KiB out", n: true, of: (l) => l.bytes.dram_write, text: (l) => format.fixed(l.bytes.dram_write / 1024, 1) },
    { key: "path", title: "on path", n: true, when: () => Boolean(m.d.step.insn), text: (l) => format.integer(l.path), hint: "cycles of the critical path under this layer" },
    { key: "slack", title: "slack", n: true, when: () => m.layers.some((l) => l.slack !== undefined), of: (l) => (l.slack === undefined ? Infinity : l.slack), text: (l) => (l.slack === undefined ? "" : format.integer(l.slack)), hint: "cycles by which all of it could come later without moving the end; 0: on the critical path" },
    { key: "bound", title: "bound", cell: (l) => el("td", {}, el("span", { class: "pill" }, l.bound)), hint: "what was occupied for the largest part of its cycles" },
    { key: "node", title: "model node", cell: (l) => el("td", { class: "node", title: l.node || "" }, l.node || "") },
  ];

  const valueOf = (column, l) => (column.of ? column.of(l) : l[column.key]);
  const shownColumns = () => COLUMNS.filter((c) => !c.when || c.when());

  function matching() {
    const column = COLUMNS.find((c) => c.key === order.key);
    const compare = (a, b) => {
      const x = valueOf(column, a), y = valueOf(column, b);
      const d = typeof x === "number" ? x - y || 0 : collator.compare(String(x || ""), String(y || ""));
      return (order.down ? -d : d) || a.index - b.index;
    };
    return m.layers.filter((l) => words.every((w) => l.text.includes(w))).sort(compare);
  }

  function heading(c) {
    const sorted = order.key === c.key;
    const sort = () => {
      order = { key: c.key, down: sorted ? !order.down : Boolean(c.n) && c.key !== "index" && c.key !== "start_cycle" };
      draw();
      const again = [...$("layer-table").querySelectorAll("th button")].find((b) => b.dataset.key === c.key);
      if (again) again.focus();
    };
    return el("th", { class: c.n ? "n" : "", scope: "col", "aria-sort": sorted ? (order.down ? "descending" : "ascending") : undefined, title: c.hint },
      el("button", { type: "button", "data-key": c.key, onclick: sort }, c.title + (sorted ? (order.down ? " \u25be" : " \u25b4") : "")));
  }

  function draw() {
    const found = matching(), shown = shownColumns();
    const row = (l) => el("tr", {
      tabindex: 0, "aria-selected": String(l.index === view.state.layer), onclick: () => show(l.index),
      onkeydown: (e) => { if (e.key === "Enter") { e.preventDefault(); e.stopPropagation(); show(l.index); } },
    }, shown.map((c) => (c.cell ? c.cell(l) : el("td", { class: c.n ? "n" : "" }, c.text(l) || ""))));
    const body = el("tbody", {});
    $("layer-table").replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, shown.map(heading))), body));
    list = rows.fill($("layer-table"), body, found, row, shown.length);
    const part = found.reduce((sum, l) => sum + l.cycles, 0);
    $("layer-count").textContent = `${found.length} of ${m.layers.length}, ${format.integer(part)} cycles (${format.percent(m.cycles ? part / m.cycles : 0)})`;
  }

  // Chooses a layer and zooms the timeline there.
  function show(layer) {
    const l = m.layers[layer];
    view.choose(-1);
    view.chooseLayer(layer);
    view.show(l.start_cycle, l.end_cycle);
    const box = $("timeline").getBoundingClientRect();
    if (box.bottom < 200 || box.top > innerHeight - 200) $("timeline").scrollIntoView({ block: "start" });
  }

  function filter(text) {
    words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if ($("layer-filter").value !== text) $("layer-filter").value = text;
    draw();
  }

  function find(text) {
    filter(text);
    const first = matching()[0];
    if (first && words.length) show(first.index);
  }

  function start(theModel) {
    m = theModel;
    for (const l of m.layers) l.text = `${l.title} ${l.kernel} ${l.op} ${l.node} ${l.bound}`.toLowerCase();
    $("layer-filter").addEventListener("input", () => filter($("layer-filter").value));
    rows.start($("layer-table"));
    draw();
    theme.onChange(draw);
    let chosen = -1;
    view.onChange((s) => {
      if (s.layer === chosen) return;
      const before = list.row(m.layers[chosen]);
      if (before) before.setAttribute("aria-selected", "false");
      list.reveal(m.layers[s.layer]);
      const now = list.row(m.layers[s.layer]);
      if (now) now.setAttribute("aria-selected", "true");
      chosen = s.layer;
    });
  }

  return { start, show, filter, find };
})();
