// SPDX-License-Identifier: Apache-2.0
// Gathers: which rows the indices name, and the bytes that are read and written because of them.
// Rows that follow one another count as one block, so a gather of neighbours costs as much as a
// copy.
#include <inttypes.h>

#include "runtime/base/alloc.h"
#include "simulator/exec/machine.h"

// Row numbers of a gather into x->rows, -1 where nothing is read.
static bool find_rows(struct exec *x, const struct exec_place *at, const struct isa_GATHER *g,
                      int64_t n) {
    if (n > x->rows_cap) {
        int64_t *grown = base_realloc(x->rows, (size_t)n * sizeof *grown);
        if (!grown) return exec_no_memory(x, "row numbers of a gather");
        x->rows = grown;
        x->rows_cap = n;
    }
    const struct val_mem mem = access_val_mem(x);
    val_read_i64(&mem, &g->idx, x->rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = x->rows[i], row = g->neg && index < 0 ? index + g->src.size[1] : index;
        if (row < 0 || row >= g->src.size[1]) {
            // Discovering, the indices may not be computed yet: any row will do.
            if (x->discovering)
                row = 0;
            else if (g->mode != 0)
                row = -1;
            else
                return exec_raise(x, at, EXEC_FAULT_INDEX,
                                  "index %" PRId64 " (element %" PRId64
                                  " of idx), the table has %" PRId64 " rows",
                                  index, i, g->src.size[1]);
        }
        x->rows[i] = row;
    }
    return true;
}

// Row r of the pattern's dimensions 1..4 (row-major, dimension 1 innermost) as a pattern of its
// own.
static struct isa_pat row_of(const struct isa_pat *p, int64_t r) {
    struct isa_pat row = *p;
    const int64_t bits = isa_dtype_bits((int)p->dtype);
    for (int d = 1; d < ISA_DIMS; d++) {
        row.base += r % p->size[d] * p->stride[d] * bits / 8;
        r /= p->size[d];
        row.size[d] = 1;
        row.stride[d] = 0;
    }
    return row;
}

// Room for n footprints in x->feet.
static bool grow_feet(struct exec *x, int64_t n) {
    if (n <= x->feet_cap) return true;
    struct exec_foot *grown = base_realloc(x->feet, (size_t)n * sizeof *grown);
    if (!grown) return exec_no_memory(x, "footprints of a gather");
    x->feet = grown;
    x->feet_cap = n;
    return true;
}

// Footprints of the rows of the table that are read; rows that ascend by one or repeat join.
static uint32_t table_feet(struct exec *x, const struct isa_GATHER *g, int64_t n) {
    uint32_t count = 0;
    const int64_t bits = isa_dtype_bits((int)g->src.dtype);
    for (int64_t i = 0; i < n;) {
        const int64_t first = x->rows[i];
        int64_t last = first;
        for (i++; i < n && (x->rows[i] == last || x->rows[i] == last + 1) && first >= 0; i++)
            last = x->rows[i];
        if (first < 0) continue;
        struct isa_pat block = g->src;
        block.base += first * block.stride[1] * bits / 8;
        block.size[1] = last - first + 1;
        if (foot_init(&x->feet[count], &block)) count++;
    }
    return count;
}

// Footprints of the rows of the destination that are written: all of them, but for mode 1 (skip).
static uint32_t written_feet(struct exec *x, const struct isa_GATHER *g, int64_t n) {
    uint32_t count = 0;
    if (g->mode != 1) return foot_init(&x->feet[0], &g->dst) ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        const struct isa_pat row = row_of(&g->dst, i);
        if (x->rows[i] >= 0 && foot_init(&x->feet[count], &row)) count++;
    }
    return count;
}

bool gather_access(struct exec *x, const struct exec_place *at, const struct isa_insn *in,
                   const struct check_operands *ops) {
    const struct isa_GATHER *g = &in->u.GATHER;
    const int64_t n = isa_pat_elems(&g->idx);
    const struct exec_foot *idx = &ops->op[2].foot; // operands in the order of insn.def
    if (!access_read(x, at, "idx", (int)g->idx.space, idx, 1)) return false;
    if (x->slice.on) slice_use(&x->slice, &x->race, (int)g->idx.space, idx);
    if (!find_rows(x, at, g, n) || !grow_feet(x, n)) return false;
    if (!access_read(x, at, "src", (int)g->src.space, x->feet, table_feet(x, g, n))) return false;
    return access_write(x, at, "dst", (int)g->dst.space, x->feet, written_feet(x, g, n));
}

void gather_mark(struct exec *x, const struct exec_place *at, const struct isa_GATHER *g) {
    const uint32_t count = written_feet(x, g, isa_pat_elems(&g->idx));
    for (uint32_t i = 0; i < count; i++) {
        access_mark(x, (int)g->dst.space, &x->feet[i]);
        access_show(x, at, (int)g->dst.space, &x->feet[i]);
    }
}
