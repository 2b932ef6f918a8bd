// SPDX-License-Identifier: Apache-2.0
// Vector engine: the longest of chain, special functions, SPM ports, PSUM port and reduction
// (formulas: timing.h), and the rate at which SPM's banks serve a strided pattern.
#include "isa/timing.h"

#define NO_LIMIT (INT64_C(1) << 30)
#define PARTIALS 64 // partial results of a reduction: the numerics contract
#define TREE_CYCLES 7

static int64_t cdiv(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Cycles of one operand over a port of `lanes` elements.
static int64_t port_cycles(const struct isa_vec_port *p, int64_t lanes) {
    return p->elems ? cdiv(p->elems, max64(1, min64(lanes, p->per_cycle))) : 0;
}

struct isa_cost isa_time_vec(const struct hw *hw, const struct isa_vec_shape *s) {
    const int64_t lanes = hw->vec_lanes;
    const int64_t beats = cdiv(s->elems, lanes);
    const int64_t turns = max64(cdiv(s->stages, hw->vec_chain_depth), max64(s->steps, 1));
    int64_t longest = isa_sat_mul(beats, turns * (s->wide ? 4 : 1));
    if (s->special) longest = max64(longest, cdiv(s->elems, hw->vec_sf_lanes));

    int64_t in = 0, out = 0;
    for (int i = 0; i < 4; i++)
        in += port_cycles(&s->in[i], lanes);
    for (int i = 0; i < 2; i++)
        out += port_cycles(&s->out[i], lanes);
    longest = max64(longest, max64(in, out));
    longest = max64(longest, cdiv(s->psum_elems, hw->psum_read_elems));
    if (s->rows) {
        const int64_t w = min64(PARTIALS, lanes);
        longest = max64(longest, cdiv(isa_sat_mul(s->rows, cdiv(s->row, w)), lanes / w));
    }

    struct isa_cost cost = {
        .issue_cycles = max64(hw->vec_min_ii, longest),
        .read_cycles = hw->vec_start + longest,
        .elems = s->elems,
    };
    cost.done_cycles = cost.read_cycles + hw->vec_latency + (s->special ? hw->vec_sf_latency : 0) +
                       (s->rows ? TREE_CYCLES : 0);
    return cost;
}

int64_t isa_time_touched_elems(const struct isa_pat *p) {
    int64_t n = 1;
    for (int d = 0; d < ISA_DIMS; d++)
        if (p->stride[d] != 0) n = isa_sat_mul(n, p->size[d]);
    return n;
}

int64_t isa_time_bank_rate(const struct hw *hw, const struct isa_pat *p) {
    const int64_t bits = max64(isa_dtype_bits((int)p->dtype), 4);
    const int64_t word = hw->spm_bank_bytes, banks = hw->spm_banks;
    // The innermost dimension that moves, and the next one.
    int64_t size = 1, step = 0, outer = 0;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (p->size[d] == 1 || p->stride[d] == 0) continue;
        const int64_t stride = p->stride[d] < 0 ? -p->stride[d] : p->stride[d];
        const int64_t bytes = cdiv(isa_sat_mul(stride, bits), 8);
        if (step) {
            outer = bytes;
            break;
        }
        size = p->size[d];
        step = bytes;
    }
    if (!step) return NO_LIMIT;
    if (step > word) return banks / gcd(cdiv(step, word), banks);

    int64_t rate = banks * (word / step);
    // Short rows: a beat takes many of them, which start in banks / gcd different banks.
    if (outer) {
        const int64_t row_words = cdiv(size * step, word);
        const int64_t spread = gcd(cdiv(outer, word), banks);
        if (outer > word) rate = min64(rate, size * max64(1, banks / max64(row_words, spread)));
    }
    return min64(max64(rate, 1), NO_LIMIT);
}
