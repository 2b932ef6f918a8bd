// SPDX-License-Identifier: Apache-2.0
// The run as the views want it: layers with their numbers, an index per engine, the way from an
// instruction to its layer.
"use strict";

const model = (() => {
  // Slices of one engine in order of time, none overlapping: [from, to) of instruction id[k], and
  // the wait before each. Prefix sums give the busy and waiting cycles of any interval exactly.
  function track(engine, id, c) {
    const n = id.length;
    const t = {
      engine, n, id,
      from: new Float64Array(n), to: new Float64Array(n), busy: new Float64Array(n + 1),
      waitFrom: new Float64Array(n), wait: new Float64Array(n + 1),
    };
    let free = 0, waited = 0;
    for (let k = 0; k < n; k++) {
      const i = id[k], start = c.start[i];
      const from = Math.max(start, free);
      const to = Math.max(from + 1, start + c.issued[i]);
      t.from[k] = from;
      t.to[k] = to;
      t.busy[k + 1] = t.busy[k] + (to - from);
      const w = Math.min(from, Math.max(waited, start - c.waited[i]));
      t.waitFrom[k] = w;
      t.wait[k + 1] = t.wait[k] + (c.class[i] ? from - w : 0);
      waited = free = to;
    }
    return t;
  }

  // Last k with list[k] <= value; -1: none.
  function last(list, value, n = list.length) {
    let lo = 0, hi = n;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (list[mid] <= value) lo = mid + 1;
      else hi = mid;
    }
    return lo - 1;
  }

  function busyUpTo(t, at) {
    const k = last(t.from, at, t.n);
    return k < 0 ? 0 : t.busy[k] + Math.min(at, t.to[k]) - t.from[k];
  }

  function waitUpTo(t, at, c) {
    const k = last(t.waitFrom, at, t.n);
    if (k < 0) return 0;
    return t.wait[k] + (c.class[t.id[k]] ? Math.min(at, t.from[k]) - t.waitFrom[k] : 0);
  }

  function layersOf(d) {
    const r = d.report;
    return r.layers.map((l, index) => ({
      ...l, index,
      title: l.name || "(no layer)",
      share: r.cycles ? l.cycles / r.cycles : 0,
      dram: l.bytes.dram_read + l.bytes.dram_write,
    }));
  }

  function engines(d) {
    const count = new Uint32Array(d.tables.engines.length);
    for (let i = 0; i < d.n; i++) count[d.column.engine[i]]++;
    const ids = Array.from(count, (n) => new Uint32Array(n));
    const at = new Uint32Array(count.length);
    for (let i = 0; i < d.n; i++) {
      const e = d.column.engine[i];
      ids[e][at[e]++] = i;
    }
    const known = d.report.engines.map((e) => d.tables.engines.indexOf(e.name));
    return known.filter((e) => e >= 0).map((e) => track(e, ids[e], d.column));
  }

  // What each engine did all the time: starts and classes, without gaps.
  function states(d) {
    const out = new Map(), s = d.state;
    for (let k = 0, n = s.engine ? s.engine.length : 0; k < n;) {
      let end = k;
      while (end < n && s.engine[end] === s.engine[k]) end++;
      out.set(s.engine[k], { n: end - k, from: s.start.subarray(k, end), cls: s.class.subarray(k, end), cycles: s.cycles.subarray(k, end) });
      k = end;
    }
    return out;
  }

  async function make() {
    const d = await data.load();
    const layers = layersOf(d);
    const layerOfTag = new Int32Array(d.tables.tags.length + 1).fill(-1);
    d.tables.tags.forEach(([, layer], i) => { layerOfTag[i + 1] = layer; });
    const kernels = [...new Set(layers.map((l) => l.kernel || l.op || "other"))];
    layers.forEach((l) => { l.kernelIndex = kernels.indexOf(l.kernel || l.op || "other"); });
    return {
      d, c: d.column, report: d.report, part: Boolean(d.report.fault || d.report.stopped), tables: d.tables, cycles: d.report.cycles,
      us: (cycle) => cycle / d.report.clock_mhz,
      layers, kernels, tracks: engines(d), states: states(d), host: host.of(d.tables),
      layerOf: (i) => layerOfTag[d.column.tag[i]],
    };
  }

  return { make, last, busyUpTo, waitUpTo };
})();
