// SPDX-License-Identifier: Apache-2.0
//
// Row-major walk over a strided pattern, a run of the innermost (merged) dimension at a time.

#include "simulator/exec/val_int.h"

uint8_t *val_at(const struct val_mem *mem, const struct isa_pat *pat) {
    return (pat->space == ISA_PSUM ? mem->psum : mem->spm) + pat->base;
}

void val_cursor_init(struct val_cursor *c, const struct val_mem *mem, const struct isa_pat *pat) {
    c->base = val_at(mem, pat);
    c->dtype = (int)pat->dtype;
    c->dims = 0;
    c->row = 0;
    for (int d = 0; d < ISA_DIMS; d++) {
        c->size[d] = 1;
        c->stride[d] = 0;
        c->index[d] = 0;
    }
    for (int d = 0; d < ISA_DIMS; d++) {
        if (pat->size[d] == 1) continue;
        int last = c->dims - 1;
        if (last >= 0 && pat->stride[d] == c->stride[last] * c->size[last]) {
            c->size[last] *= pat->size[d];
        } else {
            c->size[c->dims] = pat->size[d];
            c->stride[c->dims++] = pat->stride[d];
        }
    }
    if (c->dims == 0) c->dims = 1;
}

// Moves `run` elements on, which end at the innermost dimension's end at most.
static void advance(struct val_cursor *c, int64_t run) {
    c->index[0] += run;
    if (c->index[0] < c->size[0]) return;
    c->index[0] = 0;
    for (int d = 1; d < c->dims; d++) {
        c->row += c->stride[d];
        if (++c->index[d] < c->size[d]) return;
        c->row -= c->stride[d] * c->size[d];
        c->index[d] = 0;
    }
}

static int64_t run_length(const struct val_cursor *c, size_t n) {
    int64_t left = c->size[0] - c->index[0];
    return left < (int64_t)n ? left : (int64_t)n;
}

int64_t val_cursor_next(struct val_cursor *c) {
    int64_t at = c->row + c->index[0] * c->stride[0];
    advance(c, 1);
    return at;
}

void val_cursor_read_f32(struct val_cursor *c, float *out, size_t n) {
    const struct val_ops *ops = val_ops();
    while (n > 0) {
        int64_t run = run_length(c, n), first = c->row + c->index[0] * c->stride[0];
        if (c->stride[0] == 0) {
            ops->read_f32(c->dtype, c->base, first, 1, out, 1);
            for (int64_t i = 1; i < run; i++)
                out[i] = out[0];
        } else {
            ops->read_f32(c->dtype, c->base, first, c->stride[0], out, (size_t)run);
        }
        advance(c, run);
        out += run;
        n -= (size_t)run;
    }
}

void val_cursor_read_i64(struct val_cursor *c, int64_t *out, size_t n) {
    const struct val_ops *ops = val_ops();
    while (n > 0) {
        int64_t run = run_length(c, n), first = c->row + c->index[0] * c->stride[0];
        ops->read_i64(c->dtype, c->base, first, c->stride[0], out, (size_t)run);
        advance(c, run);
        out += run;
        n -= (size_t)run;
    }
}

void val_cursor_write_f32(struct val_cursor *c, const float *in, size_t n) {
    const struct val_ops *ops = val_ops();
    while (n > 0) {
        int64_t run = run_length(c, n), first = c->row + c->index[0] * c->stride[0];
        ops->write_f32(c->dtype, c->base, first, c->stride[0], in, (size_t)run);
        advance(c, run);
        in += run;
        n -= (size_t)run;
    }
}

void val_cursor_write_i64(struct val_cursor *c, const int64_t *in, size_t n) {
    const struct val_ops *ops = val_ops();
    while (n > 0) {
        int64_t run = run_length(c, n), first = c->row + c->index[0] * c->stride[0];
        ops->write_i64(c->dtype, c->base, first, c->stride[0], in, (size_t)run);
        advance(c, run);
        in += run;
        n -= (size_t)run;
    }
}
