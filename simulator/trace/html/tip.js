// SPDX-License-Identifier: Apache-2.0
// The tooltip: one element that follows the pointer or stands at a focused element.
"use strict";

const tip = (() => {
  // rows: strings, or nodes; the first is the title.
  function show(rows, x, y) {
    const box = $("tip");
    box.replaceChildren(...rows.filter(Boolean).map((row, i) =>
      (typeof row === "string" ? el("div", { class: i ? "line" : "title" }, row) : row)));
    box.hidden = false;
    const w = box.offsetWidth, h = box.offsetHeight;
    const left = x + 16 + w > innerWidth ? x - w - 12 : x + 16;
    const top = y + 16 + h > innerHeight ? y - h - 12 : y + 16;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, top)}px`;
  }
  function hide() {
    $("tip").hidden = true;
  }
  // Shows rows() while the pointer is over the element or the focus is on it.
  function on(node, rows) {
    node.addEventListener("pointermove", (e) => show(rows(), e.clientX, e.clientY));
    node.addEventListener("pointerleave", hide);
    node.addEventListener("focus", () => {
      const r = node.getBoundingClientRect();
      show(rows(), r.left + r.width / 2, r.bottom);
    });
    node.addEventListener("blur", hide);
    return node;
  }
  return { show, hide, on };
})();
