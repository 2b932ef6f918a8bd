// SPDX-License-Identifier: Apache-2.0
// Pointer and keys of the timeline, the detail below it, the help.
"use strict";

const input = (() => {
  const KEYS = [
    ["a d, Left Right", "move"], ["w s, + -, Up Down", "zoom in and out"], ["0, Home", "whole run"],
    ["f", "fit the chosen instruction or layer"], ["[ ]", "previous and next instruction of the engine"],
    ["c", "go to the instruction whose signal this one waited for"], ["Enter", "choose what is under the middle"],
    ["/", "find a layer"], ["t", "light or dark"], ["Esc", "choose nothing"], ["?", "this list"],
    ["Ctrl + wheel", "zoom at the pointer"], ["shift + wheel", "move"], ["drag", "move"],
    ["shift + drag, or drag in the run's strip", "show what was dragged over"], ["double click", "show the layer"],
  ];
  let m;

  function facts(i) {
    const c = m.c, start = c.start[i], layer = m.layers[m.layerOf(i)];
    const engine = m.tables.engines[c.engine[i]], word = m.tables.opcodes[c.opcode[i]];
    const out = { title: `${engine}  ${word}`, lines: [] };
    if (layer) out.lines.push(`layer ${layer.title}${layer.kernel ? `, kernel ${layer.kernel}` : ""}`);
    if (layer && layer.node) out.lines.push(`model: ${layer.node}`);
    out.lines.push(`cycles ${format.integer(start)} to ${format.integer(start + c.done[i])}: ` +
      `${format.integer(c.issued[i])} to issue, ${format.integer(c.done[i])} to its result`);
    if (c.waited[i] && c.class[i]) {
      const who = c.waitfor[i] ? ` of ${m.tables.engines[c.waitfor[i] - 1]}` : "";
      out.lines.push(`waited ${format.integer(c.waited[i])}, most of it ${m.tables.class_titles[c.class[i]]}${who}: ` +
        m.tables.class_meanings[c.class[i]]);
    }
    if (c.queued[i]) out.lines.push(`${format.integer(c.queued[i])} cycles behind others in the queue`);
    if (c.dramin[i] || c.dramout[i]) {
      out.lines.push(`external memory: ${format.bytes(c.dramin[i])} in, ${format.bytes(c.dramout[i])} out`);
    } else if (c.work[i]) {
      out.lines.push(`work ${format.integer(c.work[i])} ${engine === "mxu" ? "multiply-adds" : engine === "vec" ? "elements" : "bytes"}`);
    }
    const tag = c.tag[i] ? m.tables.tags[c.tag[i] - 1][0] : "none";
    out.lines.push(`tag ${tag}, number ${format.integer(c.seq[i])} in order of dispatch`);
    out.code = m.d.line(c.place[i]);
    return out;
  }

  function layerRows(layer) {
    const l = m.layers[layer];
    return [l.title, l.node ? `model: ${l.node}` : null,
      `${l.kernel || l.op || ""}  bound by ${l.bound}`,
      `cycles ${format.integer(l.start_cycle)} to ${format.integer(l.end_cycle)}; moves the end by ${format.integer(l.cycles)} (${format.percent(l.share)})`,
      `${format.scaled(l.macs, "MAC")}, ${format.percent(l.utilization)} of the array; DRAM ${format.bytes(l.bytes.dram_read)} in, ${format.bytes(l.bytes.dram_write)} out`];
  }

  function hover(e) {
    const r = $("canvas").getBoundingClientRect();
    const h = timeline.hit(e.clientX - r.left, e.clientY - r.top);
    if (h.i >= 0) {
      const f = facts(h.i);
      tip.show([f.title, ...f.lines, f.code ? el("code", {}, f.code) : null], e.clientX, e.clientY);
    } else if (h.launch >= 0) {
      tip.show(host.rows(m, h.launch), e.clientX, e.clientY);
    } else if (h.layer >= 0) {
      tip.show(layerRows(h.layer), e.clientX, e.clientY);
    } else if (h.lane && h.lane.kind === "bandwidth" && h.cycle !== undefined) {
      const [read, write] = timeline.bandwidthAt(h.cycle);
      tip.show([`DRAM at cycle ${format.integer(h.cycle)}`, `read ${format.fixed(read, 1)} B/cycle, written ${format.fixed(write, 1)} B/cycle`,
        m.tables.dram_bytes_per_cycle ? `peak ${format.fixed(m.tables.dram_bytes_per_cycle, 1)} B/cycle` : null], e.clientX, e.clientY);
    } else tip.hide();
    $("canvas").style.cursor = h.i >= 0 || h.layer >= 0 ? "pointer" : "default";
  }

  function detail() {
    const i = view.state.chosen, box = $("detail");
    if (i < 0) {
      box.replaceChildren(el("span", { class: "muted" }, "Choose an instruction: click it, or walk through an engine's with [ and ]."));
      return;
    }
    const f = facts(i), back = m.c.cause[i], next = timeline.followers(i);
    const buttons = [el("button", { type: "button", onclick: () => fit() }, "Show")];
    if (back) buttons.push(el("button", { type: "button", onclick: () => goTo(i - back) }, `Let go by ${m.tables.engines[m.c.engine[i - back]]}`));
    next.slice(0, 3).forEach((k) => buttons.push(el("button", { type: "button", onclick: () => goTo(k) }, `Let ${m.tables.engines[m.c.engine[k]]} go`)));
    box.replaceChildren(
      el("div", {}, el("span", { class: "title" }, f.title), "  ", buttons),
      el("div", { class: "facts" }, f.lines.map((line) => el("span", {}, line))),
      f.code ? el("code", {}, f.code) : "");
  }

  function goTo(i) {
    view.choose(i);
    const start = m.c.start[i], end = start + m.c.done[i];
    if (start < view.state.from || end > view.state.to) {
      const half = (view.state.to - view.state.from) / 2;
      view.set((start + end) / 2 - half, (start + end) / 2 + half);
    }
  }

  function fit() {
    const i = view.state.chosen;
    if (i >= 0) view.show(m.c.start[i] - m.c.waited[i], m.c.start[i] + m.c.done[i]);
    else if (view.state.layer >= 0) view.show(m.layers[view.state.layer].start_cycle, m.layers[view.state.layer].end_cycle);
  }

  function step(by) {
    let i = view.state.chosen;
    if (i < 0) {
      const mxu = m.tracks.find((t) => m.tables.engines[t.engine] === "mxu" && t.n) || m.tracks.find((t) => t.n);
      if (mxu) goTo(mxu.id[Math.max(0, model.last(mxu.from, (view.state.from + view.state.to) / 2, mxu.n))]);
      return;
    }
    const t = m.tracks.find((x) => x.engine === m.c.engine[i]);
    const k = t.id.indexOf(i) + by;
    if (k >= 0 && k < t.n) goTo(t.id[k]);
  }

  function key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target.matches && e.target.matches("input[type=search], select, textarea");
    if (e.key === "Escape") {
      if (typing) e.target.blur();
      view.choose(-1);
      view.chooseLayer(-1);
      return;
    }
    if (typing || $("help").open) return;
    const arrows = document.activeElement === $("canvas");
    const back = m.c.cause[view.state.chosen];
    const on = {
      a: () => view.move(-0.2), d: () => view.move(0.2), w: () => view.zoom(0.6), s: () => view.zoom(1 / 0.6),
      "+": () => view.zoom(0.6), "=": () => view.zoom(0.6), "-": () => view.zoom(1 / 0.6),
      0: () => view.all(), f: fit, "[": () => step(-1), "]": () => step(1),
      c: () => { if (back) goTo(view.state.chosen - back); },
      "/": () => $("search").focus(), t: () => theme.toggle(), "?": () => $("help").showModal(),
      ...(arrows ? {
        ArrowLeft: () => view.move(-0.2), ArrowRight: () => view.move(0.2), ArrowUp: () => view.zoom(0.6),
        ArrowDown: () => view.zoom(1 / 0.6), Home: () => view.all(), Enter: () => step(0),
      } : {}),
    }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!on) return;
    e.preventDefault();
    on();
  }

  function pointer() {
    const canvas = $("canvas"), band = el("div", { style: "position:absolute;top:0;bottom:0;pointer-events:none;background:var(--accent);opacity:.18;display:none" });
    $("canvas-box").append(band);
    let drag = null;
    const cycleAt = (e, whole) => {
      const x = e.clientX - canvas.getBoundingClientRect().left;
      return whole ? (x - timeline.LEFT) / timeline.plotWidth() * view.state.end : timeline.toCycle(x);
    };
    canvas.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      const r = canvas.getBoundingClientRect();
      const h = timeline.hit(e.clientX - r.left, e.clientY - r.top);
      const strip = h.lane && h.lane.kind === "overview";
      drag = { x: e.clientX, strip, select: strip || e.shiftKey, at: cycleAt(e, strip), from: view.state.from, to: view.state.to, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!drag) { hover(e); return; }
      if (Math.abs(e.clientX - drag.x) < 3 && !drag.moved) return;
      drag.moved = true;
      tip.hide();
      if (drag.select) {
        const left = canvas.getBoundingClientRect().left;
        band.style.display = "block";
        band.style.left = `${Math.min(drag.x, e.clientX) - left}px`;
        band.style.width = `${Math.abs(e.clientX - drag.x)}px`;
      } else {
        const by = (e.clientX - drag.x) / timeline.plotWidth() * (drag.to - drag.from);
        view.set(drag.from - by, drag.to - by);
      }
    });
    const drop = (e) => {
      if (!drag) return;
      band.style.display = "none";
      const now = cycleAt(e, drag.strip);
      if (drag.moved && drag.select) view.set(Math.min(drag.at, now), Math.max(drag.at, now));
      else if (!drag.moved && drag.strip) {
        const half = (drag.to - drag.from) / 2;
        view.set(now - half, now + half);
      } else if (!drag.moved) {
        const r = canvas.getBoundingClientRect();
        const h = timeline.hit(e.clientX - r.left, e.clientY - r.top);
        view.choose(h.i >= 0 ? h.i : -1);
        if (h.layer >= 0 || h.i >= 0) view.chooseLayer(h.layer >= 0 ? h.layer : m.layerOf(h.i));
      }
      drag = null;
    };
    canvas.addEventListener("pointerup", drop);
    canvas.addEventListener("pointercancel", () => { drag = null; band.style.display = "none"; });
    canvas.addEventListener("pointerleave", tip.hide);
    canvas.addEventListener("dblclick", (e) => {
      const r = canvas.getBoundingClientRect();
      const h = timeline.hit(e.clientX - r.left, e.clientY - r.top);
      const layer = h.layer >= 0 ? h.layer : h.i >= 0 ? m.layerOf(h.i) : -1;
      if (layer >= 0) layers.show(layer);
    });
    canvas.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        view.zoom(Math.exp(Math.max(-0.6, Math.min(0.6, e.deltaY * 0.004))), cycleAt(e, false));
      } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        e.preventDefault();
        view.move((e.deltaX || e.deltaY) / timeline.plotWidth());
      }
    }, { passive: false });
  }

  function help() {
    $("help").replaceChildren(el("h2", { id: "h-help" }, "Keys"),
      el("dl", {}, KEYS.map(([keys, what]) => [el("dt", {}, keys), el("dd", {}, what)])),
      el("p", { class: "note" }, "Everything is in this file; nothing is loaded from a network. Colours of layers repeat; the tooltip has the name."),
      el("form", { method: "dialog" }, el("button", {}, "Close")));
    $("help-open").addEventListener("click", () => $("help").showModal());
  }

  function start(theModel) {
    m = theModel;
    help();
    pointer();
    document.addEventListener("keydown", key);
    $("zoom-in").addEventListener("click", () => view.zoom(0.5));
    $("zoom-out").addEventListener("click", () => view.zoom(2));
    $("zoom-all").addEventListener("click", view.all);
    $("search").addEventListener("keydown", (e) => {
      if (e.key === "Enter") layers.find($("search").value);
    });
    $("search").addEventListener("input", () => layers.filter($("search").value));
    let shown = -2;
    view.onChange((s) => {
      if (s.chosen !== shown) detail();
      shown = s.chosen;
    });
  }

  return { start, layerRows };
})();
