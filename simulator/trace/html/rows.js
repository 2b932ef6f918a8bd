// SPDX-License-Identifier: Apache-2.0
// Rows of a table in a box that scrolls. A short table has all of them as elements; of a long one
// only those around the visible part are, between two spacers as high as the others. Printing
// makes all of them.
"use strict";

const rows = (() => {
  const WHOLE = 300; // up to so many rows all are elements
  const AROUND = 20; // rows kept above and below the visible ones
  let shown = null; // what stands in the box

  // Fills `body` with make(item) for each item. Returns { row(item): its element or undefined,
  // reveal(item): scrolls the box to it }.
  function fill(box, body, items, make, columns) {
    const at = new Map(items.map((item, i) => [item, i])), long = items.length > WHOLE;
    let made = new Map(), height = 0, first = 0, end = 0;

    const spacer = (n) => el("tr", { class: "spacer", "aria-hidden": "true" },
      el("td", { colspan: columns, style: `height:${n * height}px` }));
    function put(from, to) {
      const before = made, focused = document.activeElement;
      made = new Map();
      for (let i = from; i < to; i++) made.set(items[i], before.get(items[i]) || make(items[i]));
      body.replaceChildren(...(from ? [spacer(from)] : []), ...made.values(), ...(to < items.length ? [spacer(items.length - to)] : []));
      [first, end] = [from, to];
      if (focused && focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
    }
    // Columns do not become narrower while the box scrolls.
    function widths() {
      const heads = [...box.querySelectorAll("thead th")], wide = heads.map((th) => th.getBoundingClientRect().width);
      heads.forEach((th, i) => { th.style.minWidth = `${wide[i]}px`; });
    }
    function update() {
      if (!long || !body.isConnected) return;
      const top = Math.floor(box.scrollTop / height), bottom = top + Math.ceil(box.clientHeight / height);
      const from = (rest) => Math.max(0, top - rest), to = (rest) => Math.min(items.length, bottom + rest);
      if (from(AROUND / 2) >= first && to(AROUND / 2) <= end) return;
      put(from(AROUND), to(AROUND));
      widths();
    }
    function start() {
      put(0, long ? AROUND : items.length);
      if (!long) return;
      height = (body.rows[AROUND - 1].getBoundingClientRect().bottom - body.rows[0].getBoundingClientRect().top) / AROUND || 1;
      end = 0;
      update();
    }
    function reveal(item) {
      const i = at.get(item);
      if (i === undefined) return;
      const head = box.querySelector("thead").offsetHeight, h = long ? height : body.offsetHeight / items.length;
      if (i * h < box.scrollTop || (i + 1) * h + head > box.scrollTop + box.clientHeight) box.scrollTop = i * h - (box.clientHeight - head) / 2;
      update();
    }

    start();
    shown = { update, all: () => { if (long) put(0, items.length); }, again: () => { end = 0; update(); } };
    return { row: (item) => made.get(item), reveal };
  }

  function start(box) {
    box.addEventListener("scroll", () => { if (shown) shown.update(); }, { passive: true });
    new ResizeObserver(() => { if (shown) shown.update(); }).observe(box);
    addEventListener("beforeprint", () => { if (shown) shown.all(); });
    addEventListener("afterprint", () => { if (shown) shown.again(); });
  }

  return { start, fill };
})();
