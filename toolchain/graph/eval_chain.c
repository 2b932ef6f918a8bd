// SPDX-License-Identifier: Apache-2.0
//
// Elementwise chains. The output is walked in runs along its innermost dimension (neighbouring
// dimensions that all operands step through alike are merged first), each run in pieces of PIECE
// elements: operands are widened, every stage runs over the whole piece, the result is narrowed
// once.

#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

enum { PIECE = 512, OPERANDS = 3 };

// An operand: where element 0 lies and how far apart its elements are for each merged dimension.
struct operand {
    bool present;
    int dtype;
    const void *base;
    int64_t stride[GRAPH_MAX_RANK];
};

struct walk {
    int rank;
    int64_t dims[GRAPH_MAX_RANK];
    struct operand op[OPERANDS];
    const struct isa_chain *chain;
};

// Strides of a row-major value seen through the output's shape: 0 where it broadcasts.
static void set_strides(struct operand *o, const struct graph_value *v,
                        const struct graph_value *out) {
    int64_t step = 1;
    for (int d = out->rank - 1, s = v->rank - 1; d >= 0; d--, s--) {
        o->stride[d] = s >= 0 && v->dims[s] != 1 ? step : 0;
        if (s >= 0) step *= v->dims[s];
    }
}

static bool mergeable(const struct walk *w, int outer, int inner) {
    for (int k = 0; k < OPERANDS; k++)
        if (w->op[k].present && w->op[k].stride[outer] != w->op[k].stride[inner] * w->dims[inner])
            return false;
    return true;
}

// Merges dimensions d and d + 1 wherever that changes nothing; drops those of size 1.
static void merge(struct walk *w) {
    int kept = 0;
    for (int d = 0; d < w->rank; d++) {
        if (w->dims[d] == 1) continue;
        w->dims[kept] = w->dims[d];
        for (int k = 0; k < OPERANDS; k++)
            w->op[k].stride[kept] = w->op[k].stride[d];
        kept++;
    }
    w->rank = kept;
    for (int d = w->rank - 2; d >= 0; d--) {
        if (!mergeable(w, d, d + 1)) continue;
        w->dims[d] *= w->dims[d + 1];
        for (int k = 0; k < OPERANDS; k++)
            w->op[k].stride[d] = w->op[k].stride[d + 1];
        w->rank--;
        for (int s = d + 1; s < w->rank; s++) {
            w->dims[s] = w->dims[s + 1];
            for (int k = 0; k < OPERANDS; k++)
                w->op[k].stride[s] = w->op[k].stride[s + 1];
        }
    }
    if (!w->rank) {
        w->rank = 1;
        w->dims[0] = 1;
    }
}

// Generates the run over one kind of wide element.
// NOLINTBEGIN(bugprone-macro-parentheses): TYPE is a type
#define CHAIN_RUN(SUFFIX, TYPE, READ, WRITE, VOPS, IMM)                                          \
    struct lanes_##SUFFIX {                                                                      \
        TYPE in[OPERANDS][PIECE], imm[ISA_IMMS][PIECE], acc[2][PIECE], tmp[PIECE];               \
    };                                                                                           \
    static const TYPE *source_##SUFFIX(const struct lanes_##SUFFIX *l, int64_t src,              \
                                       const TYPE *acc) {                                        \
        if (src == ISA_SRC_TMP) return l->tmp;                                                   \
        if (src >= ISA_SRC_IN0 && src <= ISA_SRC_IN2) return l->in[src - ISA_SRC_IN0];           \
        if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3) return l->imm[src - ISA_SRC_IMM0];       \
        return acc;                                                                              \
    }                                                                                            \
    static const TYPE *stages_##SUFFIX(const struct isa_chain *c, struct lanes_##SUFFIX *l,      \
                                       size_t n) {                                               \
        const TYPE *acc = l->in[0];                                                              \
        int next = 0;                                                                            \
        for (int s = 0; s < ISA_STAGES; s++) {                                                   \
            const struct isa_stage *st = &c->st[s];                                              \
            if (st->op != ISA_VOP_NOP) {                                                         \
                TYPE *out = l->acc[next];                                                        \
                next ^= 1;                                                                       \
                VOPS((int)st->op, out, acc, source_##SUFFIX(l, st->a, acc),                      \
                     source_##SUFFIX(l, st->b, acc), n);                                         \
                acc = out;                                                                       \
            }                                                                                    \
            if (st->save) memcpy(l->tmp, acc, n * sizeof *acc);                                  \
        }                                                                                        \
        return acc;                                                                              \
    }                                                                                            \
    static void run_##SUFFIX(struct graph_eval *e, struct walk *w) {                             \
        struct lanes_##SUFFIX *l = ARENA_NEW(e->scratch, struct lanes_##SUFFIX);                 \
        for (int k = 0; k < ISA_IMMS; k++)                                                       \
            for (int u = 0; u < PIECE; u++)                                                      \
                l->imm[k][u] = IMM(w->chain->imm[k]);                                            \
        int64_t at[GRAPH_MAX_RANK] = {0}, first[OPERANDS] = {0}, done = 0,                       \
                inner = w->dims[w->rank - 1];                                                    \
        for (;;) {                                                                               \
            for (int64_t x = 0; x < inner; x += PIECE) {                                         \
                size_t n = (size_t)(inner - x < PIECE ? inner - x : PIECE);                      \
                for (int k = 0; k < OPERANDS; k++) {                                             \
                    const struct operand *o = &w->op[k];                                         \
                    int64_t step = o->stride[w->rank - 1];                                       \
                    if (o->present)                                                              \
                        READ(o->dtype, o->base, first[k] + x * step, step, l->in[k], n);         \
                }                                                                                \
                WRITE(e->n->outputs[0]->dtype, e->out, done, 1, stages_##SUFFIX(w->chain, l, n), \
                      n);                                                                        \
                done += (int64_t)n;                                                              \
            }                                                                                    \
            int d = w->rank - 2;                                                                 \
            for (; d >= 0; d--) {                                                                \
                for (int k = 0; k < OPERANDS; k++)                                               \
                    first[k] += w->op[k].stride[d];                                              \
                if (++at[d] < w->dims[d]) break;                                                 \
                for (int k = 0; k < OPERANDS; k++)                                               \
                    first[k] -= w->op[k].stride[d] * w->dims[d];                                 \
                at[d] = 0;                                                                       \
            }                                                                                    \
            if (d < 0) break;                                                                    \
        }                                                                                        \
    }

// NOLINTEND(bugprone-macro-parentheses)

#define IMM_F32(bits) num_float((uint32_t)(bits))
#define IMM_I64(bits) ((int64_t)(int32_t)(uint32_t)(bits))
CHAIN_RUN(f32, float, num_read_f32, num_write_f32, num_vops_f32, IMM_F32)
CHAIN_RUN(i64, int64_t, num_read_i64, num_write_i64, num_vops_i64, IMM_I64)

void eval_chain(struct graph_eval *e) {
    const struct graph_node *n = e->n;
    const struct graph_value *out = n->outputs[0];
    struct walk w = {.rank = out->rank, .chain = &n->chain};
    memcpy(w.dims, out->dims, sizeof w.dims);
    for (int k = 0; k < OPERANDS; k++) {
        struct operand *o = &w.op[k];
        if (k == 0 && n->op != GRAPH_MAP) {
            *o = (struct operand){true,
                                  e->own_int ? ISA_I64 : ISA_F32,
                                  e->own_int ? (void *)e->i : (void *)e->f,
                                  {0}};
            set_strides(o, out, out);
        } else if (n->chain_in[k] >= 0) {
            const struct graph_value *v = n->inputs[n->chain_in[k]];
            *o = (struct operand){true, v->dtype, e->in[n->chain_in[k]], {0}};
            set_strides(o, v, out);
        }
    }
    merge(&w);
    if (graph_chain_is_int(n))
        run_i64(e, &w);
    else
        run_f32(e, &w);
}
