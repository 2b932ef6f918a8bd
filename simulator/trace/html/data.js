// SPDX-License-Identifier: Apache-2.0
// From the page's data elements to JSON and typed arrays. What an element holds is described in
// simulator/trace/html.h and html_column.def.
"use strict";

const data = (() => {
  const json = (id) => JSON.parse($(id).textContent);

  function fromBase64(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
  }

  async function unpack(bytes) {
    if (typeof DecompressionStream === "undefined") return inflate(bytes);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function bytesOf(id) {
    const node = $("c-" + id);
    const bytes = await unpack(fromBase64(node.textContent));
    node.remove(); // the text is not needed twice
    return bytes;
  }

  // Numbers of 7 bits a byte, below 2^28; null when there is a larger one.
  function small(bytes, n) {
    if (bytes.length === n) return bytes; // a byte each
    const out = new Uint32Array(n);
    let at = 0;
    for (let i = 0; i < n; i++) {
      let byte = bytes[at++], value = byte & 127;
      for (let shift = 7; byte > 127; shift += 7) {
        if (shift > 21) return null;
        byte = bytes[at++];
        value |= (byte & 127) << shift;
      }
      out[i] = value;
    }
    if (at !== bytes.length) throw new Error("a column has another length than it says");
    return out;
  }

  // The same of any size that a double holds.
  function large(bytes, n) {
    const out = new Float64Array(n);
    let at = 0;
    for (let i = 0; i < n; i++) {
      let byte = bytes[at++], value = byte & 127;
      for (let scale = 128; byte > 127; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * scale;
      }
      out[i] = value;
    }
    if (at !== bytes.length) throw new Error("a column has another length than it says");
    return out;
  }

  function numbers(bytes, n, kind) {
    const raw = small(bytes, n) || large(bytes, n);
    if (kind === "plain") return raw;
    const out = new Float64Array(n);
    let sum = 0;
    for (let i = 0; i < n; i++) {
      const v = raw[i];
      if (kind === "sum") sum += v;
      else sum += v % 2 ? -(v + 1) / 2 : v / 2;
      out[i] = sum;
    }
    return out;
  }

  // { report, tables, n instructions, column, state, step: { name: array }, line(place) }
  async function load() {
    const report = json("report"), tables = json("tables");
    const n = tables.events, sets = { insn: {}, state: {}, step: {} };
    const packed = await Promise.all(tables.columns.map((c) => bytesOf(`${c.set}-${c.name}`)));
    tables.columns.forEach((c, i) => { sets[c.set][c.name] = numbers(packed[i], c.n, c.kind); });
    const map = tables.spm ? numbers(await bytesOf("spm"), tables.spm.rows * tables.spm.columns, "plain") : null;
    let lines = null;
    const assembly = bytesOf("assembly").then((bytes) => {
      lines = new TextDecoder().decode(bytes).split("\n");
    });
    return { report, tables, n, column: sets.insn, state: sets.state, step: sets.step, map, assembly, line: (i) => (lines && i ? lines[i - 1] : "") };
  }

  return { load };
})();
