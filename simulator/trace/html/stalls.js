// SPDX-License-Identifier: Apache-2.0
// A stacked bar per engine: every cycle of the run in exactly one class.
"use strict";

const stalls = (() => {
  const cyclesOf = (e, key) => (key === "busy" ? e.busy_cycles : e.stalls[key] || 0);

  function segment(m, e, c) {
    const key = m.tables.class_keys[c], cycles = cyclesOf(e, key), share = cycles / Math.max(1, m.cycles);
    if (!cycles) return null;
    const colour = theme.state(key), title = m.tables.class_titles[c];
    const waits = key === "wait_semaphore" || key === "wait_dma"
      ? Object.entries(e.wait_for).filter(([who]) => (key === "wait_dma") === who.startsWith("dma")) : [];
    const node = el("div", {
      style: `width:${(100 * share).toFixed(4)}%;background:${colour};color:${colour.startsWith("#") ? theme.inkOn(colour) : ""}`,
      tabindex: share > 0.002 ? 0 : undefined, role: "img",
      "aria-label": `${e.name}: ${title} ${format.percent(share)}`,
    }, share > 0.055 ? `${title} ${format.fixed(100 * share, share < 0.1 ? 1 : 0)}%` : "");
    return tip.on(node, () => [`${e.name}: ${title}, ${format.percent(share, 2)}`, `${format.integer(cycles)} cycles`,
      m.tables.class_meanings[c],
      waits.length ? `signalled by ${waits.map(([who, n]) => `${who} ${format.percent(n / m.cycles)}`).join(", ")}` : null]);
  }

  function draw(m) {
    const engines = m.report.engines, classes = m.tables.class_keys.map((_, c) => c);
    $("stall-bars").replaceChildren(
      ...engines.map((e) => el("div", { class: "stack-row" }, el("span", { class: "label" }, e.name),
        el("div", { class: "stack" }, classes.map((c) => segment(m, e, c))))),
      el("div", { class: "axis-row", "aria-hidden": "true" }, ["0", "25%", "50%", "75%", "100% of the run"].map((t) => el("span", {}, t))));
    const used = classes.filter((c) => engines.some((e) => cyclesOf(e, m.tables.class_keys[c])));
    $("stall-legend").replaceChildren(...used.map((c) => el("span", { title: m.tables.class_meanings[c] },
      el("i", { class: "swatch", style: `background:${theme.state(m.tables.class_keys[c])}` }), `${m.tables.class_titles[c]}: ${m.tables.class_meanings[c]}`)));
    $("stall-table").replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "engine"), el("th", { class: "n" }, "instructions"),
        used.map((c) => el("th", { class: "n", title: m.tables.class_meanings[c] }, m.tables.class_titles[c])))),
      el("tbody", {}, engines.map((e) => el("tr", {}, el("td", {}, e.name), el("td", { class: "n" }, format.integer(e.instructions)),
        used.map((c) => el("td", { class: "n" }, format.integer(cyclesOf(e, m.tables.class_keys[c])))))))));
  }

  function start(m) {
    draw(m);
    theme.onChange(() => draw(m));
  }
  return { start };
})();
