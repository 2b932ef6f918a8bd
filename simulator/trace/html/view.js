// SPDX-License-Identifier: Apache-2.0
// What all views share: the window of time, the chosen instruction and the chosen layer.
"use strict";

const view = (() => {
  const state = { from: 0, to: 1, end: 1, chosen: -1, layer: -1 };
  const listeners = [];
  const SMALLEST = 16; // cycles
  let pending = false;

  // Tells everybody once per frame, however many changes there were.
  function changed() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      listeners.forEach((f) => f(state));
    });
  }
  function start(cycles) {
    state.end = Math.max(SMALLEST, cycles);
    state.from = 0;
    state.to = state.end;
  }
  function set(from, to) {
    let width = Math.max(SMALLEST, Math.min(state.end, to - from));
    const middle = (from + to) / 2;
    let left = middle - width / 2;
    left = Math.max(0, Math.min(left, state.end - width));
    state.from = left;
    state.to = left + width;
    changed();
  }
  function zoom(factor, at = (state.from + state.to) / 2) {
    const width = Math.max(SMALLEST, Math.min(state.end, (state.to - state.from) * factor));
    const share = (at - state.from) / (state.to - state.from);
    const left = Math.max(0, Math.min(at - share * width, state.end - width));
    set(left, left + width);
  }
  function move(share) {
    const by = share * (state.to - state.from);
    const left = Math.max(0, Math.min(state.from + by, state.end - (state.to - state.from)));
    set(left, left + state.to - state.from);
  }
  function choose(i) {
    state.chosen = i;
    changed();
  }
  function chooseLayer(layer) {
    state.layer = layer;
    changed();
  }
  // Shows [from, to) with a little room around it.
  function show(from, to) {
    const room = Math.max(8, 0.08 * (to - from));
    set(from - room, to + room);
  }
  return {
    state, start, set, zoom, move, choose, chooseLayer, show, changed,
    all: () => set(0, state.end), onChange: (f) => listeners.push(f),
  };
})();
