// SPDX-License-Identifier: Apache-2.0
//
// One block through a chain, as a template over the kind of chain. The includer defines
//   T             float or int64_t
//   K(x)          x with the kind's suffix
//   IMM(bits)     an immediate as T
// Stages run over the whole block in turn, from one of two buffers into the other.

// b->predicate[0..n) of a run in one row whose first element has the value `at`: along a row the
// predicate changes at most once.
static void K(fill_predicate)(T *out, int64_t at, int64_t step, size_t n) {
    size_t turn = n; // elements before the change
    if (step > 0 && at < 0 && (-at + step - 1) / step < (int64_t)n)
        turn = (size_t)((-at + step - 1) / step);
    if (step < 0 && at >= 0 && at / -step + 1 < (int64_t)n) turn = (size_t)(at / -step + 1);
    for (size_t i = 0; i < turn; i++)
        out[i] = at >= 0;
    for (size_t i = turn; i < n; i++)
        out[i] = at < 0;
}

// Splats, positions and predicates that stages may name.
static void K(fill_sources)(struct val_chain *c, struct K(buffers) * b, int64_t pos, size_t n) {
    for (int i = 0; i < ISA_IMMS; i++) {
        if (!c->used[ISA_SRC_IMM0 + i]) continue;
        T v = IMM(c->chain->imm[i]);
        for (size_t j = c->splat; j < n; j++)
            b->imm[i][j] = v;
    }
    if (c->splat < n) c->splat = n;
    bool rows = c->used[ISA_SRC_ROW], cols = c->used[ISA_SRC_COL];
    if (!rows && !cols && !c->predicate) return;
    int64_t col = pos % c->cols, row = pos / c->cols % c->rows;
    for (size_t j = 0; j < n;) { // a run within one row at a time
        size_t run = (int64_t)(n - j) < c->cols - col ? n - j : (size_t)(c->cols - col);
        for (size_t i = 0; i < run && rows; i++)
            b->row[j + i] = (T)row;
        for (size_t i = 0; i < run && cols; i++)
            b->col[j + i] = (T)(col + (int64_t)i);
        if (c->predicate) K(fill_predicate)
        (b->predicate + j, row * c->pred_row + col * c->pred_col + c->pred_base, c->pred_col, run);
        j += run;
        col = 0;
        if (++row == c->rows) row = 0;
    }
}

static const T *K(source)(const struct K(buffers) * b, int64_t src, const T *acc, const T *in0) {
    switch ((enum isa_src)src) {
    case ISA_SRC_ACC: return acc;
    case ISA_SRC_IN0: return in0;
    case ISA_SRC_IN1: return b->in[1];
    case ISA_SRC_IN2: return b->in[2];
    case ISA_SRC_TMP: return b->tmp;
    case ISA_SRC_IMM0:
    case ISA_SRC_IMM1:
    case ISA_SRC_IMM2:
    case ISA_SRC_IMM3: return b->imm[src - ISA_SRC_IMM0];
    case ISA_SRC_ROW: return b->row;
    case ISA_SRC_COL: return b->col;
    case ISA_SRC_NONE:
    case ISA_SRCS: break;
    }
    return acc; // not named by an operation that has the operand: checked before
}

// The chain's result for the block.
static const T *K(run_stages)(const struct val_chain *c, struct K(buffers) * b, const T *in0,
                              size_t n) {
    const struct val_ops *ops = val_ops();
    const T *acc = in0;
    int turn = 0;
    for (int s = 0; s < ISA_STAGES; s++) {
        const struct isa_stage *st = &c->chain->st[s];
        if (st->op != ISA_VOP_NOP) {
            const T *x = K(source)(b, st->a, acc, in0), *y = K(source)(b, st->b, acc, in0);
            if (st->op == ISA_VOP_APRED) y = b->predicate;
            ops->K(vops)((int)st->op, b->turn[turn], acc, x, y, n);
            acc = b->turn[turn];
            turn ^= 1;
        }
        if (st->save) memcpy(b->tmp, acc, n * sizeof *acc);
    }
    return acc;
}

static void K(finish_span)(struct val_chain *c) {
    int64_t at = val_cursor_next(&c->red_out);
    int dtype = c->red_out.dtype;
    void *base = c->red_out.base;
    if (c->red == ISA_RED_ARGMAX) {
        int64_t index = K(num_reduce_end_index)(&c->reduce);
        num_store_i64(dtype, base, at, index);
    } else {
        T v = K(num_reduce_end)(&c->reduce);
        if (c->red_acc) v = K(num_combine)(c->red, K(num_load)(dtype, base, at), v);
        K(num_store)(dtype, base, at, v);
    }
    num_reduce_begin(&c->reduce, c->red);
}

static void K(reduce_block)(struct val_chain *c, const T *x, size_t n) {
    while (n > 0) {
        int64_t left = c->span - (int64_t)c->reduce.count;
        size_t part = left < (int64_t)n ? (size_t)left : n;
        K(num_reduce_add)(&c->reduce, x, part);
        x += part;
        n -= part;
        if ((int64_t)c->reduce.count == c->span) K(finish_span)(c);
    }
}

static void K(run_block)(struct val_chain *c, const T *acc0, int64_t pos, size_t n) {
    struct K(buffers) *b = c->mem->work->blocks;
    const T *in0 = acc0;
    for (int i = acc0 ? 1 : 0; i < 3; i++)
        if (c->has[i]) K(val_cursor_read)(&c->in[i], b->in[i], n);
    if (!in0) {
        if (!c->has[0])
            for (size_t j = 0; j < n; j++)
                b->in[0][j] = 0;
        in0 = b->in[0];
    }
    K(fill_sources)(c, b, pos, n);
    const T *acc = K(run_stages)(c, b, in0, n);
    if (c->writes) K(val_cursor_write)(&c->out, acc, n);
    if (c->red != ISA_RED_NONE) K(reduce_block)(c, acc, n);
}
