// SPDX-License-Identifier: Apache-2.0
// Matrix engine: passes of a product for the four dataflows, preload serial or overlapped
// (formulas: timing.h).
#include "isa/timing.h"

static int64_t cdiv(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// x moving rows in cycles, rounded up.
static int64_t rows_cycles(int64_t x, int64_t half) {
    return cdiv(isa_sat_mul(x, half), 2);
}

int64_t isa_time_row_half_cycles(const struct hw *hw, int dtype) {
    switch (dtype) {
    case ISA_F16:
    case ISA_BF16: return hw->mxu_half_cycles_16;
    case ISA_I8:
    case ISA_U8: return hw->mxu_half_cycles_i8;
    case ISA_F8E4M3:
    case ISA_F8E5M2:
    case ISA_I4:
    case ISA_U4: return hw->mxu_half_cycles_8;
    default: return hw->mxu_half_cycles_f32;
    }
}

// How a product is cut for a dataflow.
struct cut {
    int64_t k_blocks;               // passes that follow each other on the same result
    int64_t blocks;                 // result blocks: passes that are independent
    int64_t moving;                 // moving rows of a pass
    int64_t load, drain, fill, gap; // cycles
};

static struct cut cut_product(const struct hw *hw, const struct isa_mm_shape *s, int64_t half) {
    const int64_t rows = hw->mxu_rows, cols = hw->mxu_cols;
    struct cut c = {
        .k_blocks = cdiv(s->k, rows),
        .blocks = cdiv(s->n, cols),
        .moving = s->m,
        .load = rows_cycles(cdiv(rows, hw->mxu_load_rows), half),
        .fill = rows + cols - 2,
        .gap = max64(rows, rows_cycles(rows, half)) + hw->mxu_pipeline,
    };
    const int64_t narrow = hw->mxu_dataflow == HW_IS ? s->m : s->n;
    if (hw->mxu_load_narrow && narrow < cols)
        c.load = rows_cycles(min64(cdiv(rows, hw->mxu_load_rows), narrow), half);
    if (hw->mxu_dataflow == HW_IS) {
        c.blocks = cdiv(s->m, cols);
        c.moving = s->n;
    } else if (hw->mxu_dataflow == HW_OS) {
        c.k_blocks = 1;
        c.blocks = isa_sat_mul(cdiv(s->m, rows), cdiv(s->n, cols));
        c.moving = s->k;
        c.load = 0;
        c.drain = hw->mxu_drain_rows ? cdiv(rows, hw->mxu_drain_rows) : 0;
        c.gap = 0;
    } else if (hw->mxu_dataflow == HW_DOT) {
        c.fill = 0;
        c.gap = hw->mxu_pipeline;
    }
    return c;
}

struct isa_cost isa_time_mm(const struct hw *hw, const struct isa_mm_shape *s) {
    const int64_t half =
        max64(isa_time_row_half_cycles(hw, s->dtype_a), isa_time_row_half_cycles(hw, s->dtype_b));
    const struct cut c = cut_product(hw, s, half);
    int64_t compute = max64(rows_cycles(c.moving, half), rows_cycles(hw->mxu_min_ii, half));
    int64_t first = c.load;
    if (s->transposed_a) {
        const int64_t block = cdiv(hw->mxu_rows, hw->mxu_transpose_rows);
        compute = max64(compute, isa_sat_mul(cdiv(c.moving, hw->mxu_rows), block));
        first = max64(first, block);
    }

    struct isa_cost cost = {.load_cycles = first};
    cost.macs = isa_sat_mul(isa_sat_mul(s->m, s->n), s->k);
    if (hw->mxu_overlap) {
        const int64_t ii = max64(compute, max64(c.load, c.drain));
        const int64_t last = isa_sat_mul(c.k_blocks - 1, max64(isa_sat_mul(c.blocks, ii), c.gap));
        cost.issue_cycles = last + isa_sat_mul(c.blocks, ii);
        cost.done_cycles = first + cost.issue_cycles - 1 + c.fill + c.drain + hw->mxu_pipeline;
        cost.read_cycles = min64(first + cost.issue_cycles, cost.done_cycles);
        cost.accumulate_cycles = max64(cost.issue_cycles, last + c.gap);
    } else {
        const int64_t ii = max64(first + compute + c.fill + c.drain, c.k_blocks > 1 ? c.gap : 0);
        const int64_t all = isa_sat_mul(isa_sat_mul(c.k_blocks, c.blocks), ii);
        cost.done_cycles = all - 1 + hw->mxu_pipeline;
        cost.issue_cycles = max64(1, min64(all, cost.done_cycles));
        cost.read_cycles = min64(all - c.fill - c.drain, cost.done_cycles);
        cost.accumulate_cycles = max64(cost.issue_cycles, all - ii + c.gap);
    }
    return cost;
}

struct isa_cost isa_time_conv(const struct hw *hw, const struct isa_conv_shape *s) {
    const struct isa_mm_shape mm = {
        .m = isa_sat_mul(s->p, s->q),
        .n = s->cout,
        .k = isa_sat_mul(isa_sat_mul(s->kh, s->kw), s->cin),
        .dtype_a = s->dtype_a,
        .dtype_b = s->dtype_b,
    };
    return isa_time_mm(hw, &mm);
}
