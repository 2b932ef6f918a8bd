// SPDX-License-Identifier: Apache-2.0
// Light and dark, and the colours of what is drawn. The palettes keep apart for the common kinds
// of colour blindness (after Okabe and Ito, and Tol's muted scheme); no view tells things apart by
// colour alone.
"use strict";

const theme = (() => {
  const STATE = {
    busy: "#0072b2", busy_partial: "#56b4e9", wait_semaphore: "#e69f00", wait_dma: "#d55e00",
    wait_dram: "#cc79a7", refresh: "#8d4a7f", dram_conflict: "#b49bd0", bank_conflict: "#f0e442",
    psum: "#009e73", dependency: "#7fd1b9", queue_empty: "#8a94a0", queue_full: "#b5bdc7",
    fetch: "#5f7896", barrier: "#c2b391", idle: "", host: "#a0522d",
  };
  const LIGHT = ["#4477aa", "#cc6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#ee8866",
    "#44aa99", "#8877bb"];
  const DARK = ["#6699d0", "#dd7788", "#4caf5e", "#ddcc66", "#77d4f2", "#cc66a0", "#b3b34d", "#ee9977",
    "#5cc2b0", "#a294d6"];
  const listeners = [];
  let chosen = null; // what the user asked for

  const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const name = () => chosen || system();

  function apply() {
    document.documentElement.dataset.theme = name();
    listeners.forEach((f) => f());
  }
  function toggle() {
    chosen = name() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("npusim-theme", chosen);
    } catch { /* a page from a file may not have any */ }
    apply();
  }
  function start() {
    try {
      chosen = localStorage.getItem("npusim-theme");
    } catch { /* likewise */ }
    if (chosen !== "dark" && chosen !== "light") chosen = null;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
    $("theme").addEventListener("click", toggle);
    apply();
  }

  const css = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const colours = () => ({
    card: css("--card"), ink: css("--ink"), muted: css("--muted"), faint: css("--faint"),
    line: css("--line"), lane: css("--lane"), accent: css("--accent"), soft: css("--accent-soft"),
    warn: css("--warn"),
  });
  const series = (i) => (name() === "dark" ? DARK : LIGHT)[((i % 10) + 10) % 10];
  const state = (key) => STATE[key] || css("--line");

  // Black or white, whichever reads better on a colour.
  function inkOn(colour) {
    const v = parseInt(colour.slice(1), 16);
    const light = 0.299 * (v >> 16) + 0.587 * (v >> 8 & 255) + 0.114 * (v & 255);
    return light > 140 ? "#10151c" : "#ffffff";
  }

  return { start, toggle, onChange: (f) => listeners.push(f), colours, series, state, inkOn, name };
})();
