// SPDX-License-Identifier: Apache-2.0
// zlib streams (RFC 1950, 1951) for browsers without DecompressionStream.
"use strict";

const inflate = (() => {
  const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83,
    99, 115, 131, 163, 195, 227, 258];
  const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5,
    5, 5, 0];
  const DISTANCE_BASE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
  const DISTANCE_EXTRA = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11,
    11, 12, 12, 13, 13];
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

  // Canonical code: how many words of each length, and the symbols in order of their words.
  function code(lengths) {
    const count = new Uint16Array(16), offset = new Uint16Array(16);
    for (const n of lengths) count[n]++;
    count[0] = 0;
    for (let n = 1; n < 15; n++) offset[n + 1] = offset[n] + count[n];
    const symbol = new Uint16Array(lengths.length);
    lengths.forEach((n, i) => { if (n) symbol[offset[n]++] = i; });
    return { count, symbol };
  }

  const fixedLengths = () => {
    const lengths = new Array(288).fill(8);
    return [code(lengths.fill(9, 144, 256).fill(7, 256, 280)), code(new Array(30).fill(5))];
  };

  class Reader {
    constructor(bytes) {
      this.bytes = bytes;
      this.at = 2; // behind the zlib header
      this.hold = 0;
      this.held = 0;
      this.out = new Uint8Array(Math.max(1024, bytes.length * 4));
      this.size = 0;
    }
    bits(n) {
      while (this.held < n) {
        if (this.at >= this.bytes.length) throw new Error("packed data ends too early");
        this.hold |= this.bytes[this.at++] << this.held;
        this.held += 8;
      }
      const value = this.hold & ((1 << n) - 1);
      this.hold >>>= n;
      this.held -= n;
      return value;
    }
    symbol({ count, symbol }) {
      let word = 0, first = 0, index = 0;
      for (let n = 1; n < 16; n++) {
        word |= this.bits(1);
        if (word - first < count[n]) return symbol[index + word - first];
        index += count[n];
        first = (first + count[n]) << 1;
        word <<= 1;
      }
      throw new Error("packed data: no such code");
    }
    room(n) {
      if (this.size + n <= this.out.length) return;
      const grown = new Uint8Array(Math.max(this.out.length * 2, this.size + n));
      grown.set(this.out.subarray(0, this.size));
      this.out = grown;
    }
    stored() {
      this.hold = this.held = 0;
      const n = this.bytes[this.at] | this.bytes[this.at + 1] << 8;
      this.at += 4;
      this.room(n);
      this.out.set(this.bytes.subarray(this.at, this.at + n), this.size);
      this.at += n;
      this.size += n;
    }
    tables() {
      const nliteral = this.bits(5) + 257, ndistance = this.bits(5) + 1, nlength = this.bits(4) + 4;
      const small = new Array(19).fill(0);
      for (let i = 0; i < nlength; i++) small[ORDER[i]] = this.bits(3);
      const words = code(small), lengths = [];
      while (lengths.length < nliteral + ndistance) {
        const s = this.symbol(words);
        if (s < 16) { lengths.push(s); continue; }
        const value = s === 16 ? lengths[lengths.length - 1] : 0;
        let n = s === 16 ? 3 + this.bits(2) : s === 17 ? 3 + this.bits(3) : 11 + this.bits(7);
        while (n-- > 0) lengths.push(value);
      }
      return [code(lengths.slice(0, nliteral)), code(lengths.slice(nliteral))];
    }
    block([literals, distances]) {
      for (;;) {
        const s = this.symbol(literals);
        if (s === 256) return;
        if (s < 256) {
          this.room(1);
          this.out[this.size++] = s;
          continue;
        }
        const n = LENGTH_BASE[s - 257] + this.bits(LENGTH_EXTRA[s - 257]);
        const d = this.symbol(distances);
        const back = DISTANCE_BASE[d] + this.bits(DISTANCE_EXTRA[d]);
        this.room(n);
        for (let i = 0; i < n; i++, this.size++) this.out[this.size] = this.out[this.size - back];
      }
    }
  }

  return (bytes) => {
    const r = new Reader(bytes);
    let last;
    do {
      last = r.bits(1);
      const kind = r.bits(2);
      if (kind === 0) r.stored();
      else if (kind === 1) r.block(fixedLengths());
      else if (kind === 2) r.block(r.tables());
      else throw new Error("packed data: no such block");
    } while (!last);
    return r.out.subarray(0, r.size);
  };
})();
