// SPDX-License-Identifier: Apache-2.0
// Elements and numbers. Text from the run enters the page through el() only, as text.
"use strict";

const $ = (id) => document.getElementById(id);

// el("td", { class: "n", onclick: f }, "text", node, ...). No string is ever read as HTML.
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  return fill(node, attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null) continue;
    node.append(child);
  }
  return node;
}

const format = (() => {
  const THIN = "\u202f";
  const group = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

  const integer = (n) => group.format(n);
  const fixed = (n, digits) => n.toLocaleString("en-US",
    { minimumFractionDigits: digits, maximumFractionDigits: digits });
  // What rounds to zero has no sign.
  const percent = (share, digits = 1) => fixed(100 * share, digits).replace(/^-(?=[0.]*$)/, "") + THIN + "%";

  // Three significant digits with a prefix: 1.23 M.
  function scaled(n, unit) {
    const steps = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
    if (n === 0) return "0" + (unit ? THIN + unit : "");
    for (const [size, prefix] of steps) {
      if (Math.abs(n) < size && size > 1) continue;
      const v = n / size;
      const digits = v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;
      return String(Number(v.toFixed(digits))) + (prefix || unit ? THIN + prefix + (unit || "") : "");
    }
    return String(n);
  }

  function bytes(n) {
    const steps = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
    for (const [size, unit] of steps) {
      if (n >= size) return fixed(n / size, n / size >= 100 ? 0 : n / size >= 10 ? 1 : 2) + THIN + unit;
    }
    return integer(n) + THIN + "B";
  }

  // Microseconds as a time that people read.
  function time(us) {
    if (us === 0) return "0";
    if (us >= 1e6) return fixed(us / 1e6, 3) + THIN + "s";
    if (us >= 1e3) return fixed(us / 1e3, 3) + THIN + "ms";
    if (us >= 1) return fixed(us, us >= 100 ? 1 : 2) + THIN + "\u00b5s";
    return fixed(us * 1e3, us >= 0.01 ? 0 : 1) + THIN + "ns";
  }

  // The same for times that stand below each other: one unit, that of `typical` or one below it, and
  // three digits of `finest`.
  function times(typical, finest) {
    const units = [[1e6, "s"], [1e3, "ms"], [1, "\u00b5s"], [1e-3, "ns"]], own = units.findIndex(([n]) => Math.abs(typical) >= n);
    const at = own < 0 ? units.length - 1 : own + (finest > 0 && finest < 0.01 * units[own][0] && own + 1 < units.length ? 1 : 0);
    const [size, unit] = units[at], digits = finest > 0 ? Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(finest / size)))) : 3;
    return (us) => fixed(us / size, digits) + THIN + unit;
  }

  return { integer, fixed, percent, scaled, bytes, time, times };
})();

// Steps of 1, 2, 5 times a power of ten: at most `most` of them in [from, to].
function ticks(from, to, most) {
  const raw = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw) || power;
  const out = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9; at += step) out.push(at);
  return out;
}
