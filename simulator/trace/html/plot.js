// SPDX-License-Identifier: Apache-2.0
// Axes of the plots that are drawn as SVG.
"use strict";

const plot = (() => {
  const measure = document.createElement("canvas").getContext("2d");

  // Width of a label of an axis.
  function wide(text) {
    measure.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    return measure.measureText(text).width;
  }

  // Places of the labels of an axis.
  function marks(axis, most) {
    if (!axis.log) return ticks(axis.from, axis.to, most);
    const out = [];
    for (let p = Math.ceil(Math.log10(axis.from) - 1e-9); p <= Math.log10(axis.to) + 1e-9; p++) out.push(10 ** p);
    return out;
  }

  // A frame of w x h with room for axes: the title left of the labels. x, y: { from, to, log, title, text }.
  function frame(w, h, x, y) {
    const labels = Math.max(0, ...marks(y, 5).map((v) => wide(y.text(v))));
    const box = { left: Math.max(74, Math.ceil(labels) + 32), right: 18, top: 14, bottom: 46 };
    const inner = { w: w - box.left - box.right, h: h - box.top - box.bottom };
    const at = (axis, v, size) => (axis.log
      ? (Math.log10(v) - Math.log10(axis.from)) / (Math.log10(axis.to) - Math.log10(axis.from))
      : (v - axis.from) / (axis.to - axis.from || 1)) * size;
    const X = (v) => box.left + at(x, v, inner.w);
    const Y = (v) => box.top + inner.h - at(y, v, inner.h);
    const root = svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img" });
    for (const v of marks(x, x.few || 8)) {
      root.append(svg("line", { class: "grid", x1: X(v), x2: X(v), y1: box.top, y2: box.top + inner.h }),
        svg("text", { x: X(v), y: box.top + inner.h + 17, "text-anchor": "middle", class: "x" }, x.text(v)));
    }
    for (const v of marks(y, 5)) {
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.left + inner.w, y1: Y(v), y2: Y(v) }),
        svg("text", { x: box.left - 8, y: Y(v) + 4, "text-anchor": "end", class: "y" }, y.text(v)));
    }
    root.append(svg("line", { class: "axis", x1: box.left, x2: box.left + inner.w, y1: box.top + inner.h, y2: box.top + inner.h }),
      svg("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: box.top + inner.h }),
      svg("text", { x: box.left + inner.w / 2, y: h - 8, "text-anchor": "middle" }, x.title),
      svg("text", { transform: `translate(14 ${box.top + inner.h / 2}) rotate(-90)`, "text-anchor": "middle", class: "title" }, y.title));
    return { root, X, Y, box, inner };
  }
  return { frame };
})();
