// SPDX-License-Identifier: Apache-2.0
//
// Reference kernel of ATTENTION, one query row at a time: scores q K^T by the matrix engine's steps
// over the transposed keys, scale, softcap, mask; exp(score - max) and its sum; the weighted values
// by the matrix engine's steps over the keys; one division by the sum. All in f32. Without a
// fill, keys outside the window are not even read.

#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/graph/eval.h"

struct attention {
    int64_t heads, key_heads, m, s, d, dv;
    float scale, fill, cap;
    bool zero_rows, skips; // skips: hidden keys take no part
    int64_t left, right, shift;
    const float *add;                            // floating mask, or NULL
    const int64_t *keep;                         // integer mask, or NULL
    int64_t mask_step[GRAPH_MAX_RANK], key_step; // elements between neighbours of the mask
    float *score, *power, *turned;
};

static struct attention attention_of(struct graph_eval *e) {
    const struct graph_node *n = e->n;
    const struct graph_value *q = n->inputs[0], *k = n->inputs[1], *v = n->inputs[2];
    int r = q->rank;
    struct attention a = {.heads = q->dims[r - 3], .key_heads = k->dims[r - 3]};
    a.m = q->dims[r - 2];
    a.s = k->dims[r - 2];
    a.d = q->dims[r - 1];
    a.dv = v->dims[r - 1];
    a.scale = (float)graph_float(n, GRAPH_ATTR_SCALE, 1);
    a.fill = (float)graph_float(n, GRAPH_ATTR_FILL, -HUGE_VAL);
    a.cap = (float)graph_float(n, GRAPH_ATTR_SOFTCAP, 0);
    a.zero_rows = graph_int(n, GRAPH_ATTR_ZERO_ROWS, 0) != 0;
    a.skips = isinf((double)a.fill) && a.fill < 0;
    a.left = graph_ints_at(n, GRAPH_ATTR_WINDOW, 0, -1);
    a.right = graph_ints_at(n, GRAPH_ATTR_WINDOW, 1, -1);
    a.shift = graph_ints_at(n, GRAPH_ATTR_WINDOW, 2, 0);
    a.score = ARENA_ARRAY(e->scratch, float, (size_t)a.s);
    a.power = ARENA_ARRAY(e->scratch, float, (size_t)a.s);
    a.turned = ARENA_ARRAY(e->scratch, float, (size_t)(a.s * a.d));
    if (n->nown < 4) return a;
    const struct graph_value *mask = n->inputs[3];
    if (isa_dtype_is_int(mask->dtype))
        a.keep = eval_ints(e, 3);
    else
        a.add = eval_floats(e, 3);
    int64_t step = 1;
    for (int i = mask->rank - 1; i >= 0; i--) {
        a.mask_step[i + r - mask->rank] = mask->dims[i] == 1 ? 0 : step;
        step *= mask->dims[i];
    }
    a.key_step = a.mask_step[r - 1];
    return a;
}

// Where the mask of one query row begins. `head` counts batches and heads.
static int64_t mask_row(const struct attention *a, const struct graph_value *q, int64_t head,
                        int64_t row) {
    int64_t at = row * a->mask_step[q->rank - 2];
    for (int d = q->rank - 3; d >= 0; d--) {
        at += head % q->dims[d] * a->mask_step[d];
        head /= q->dims[d];
    }
    return at;
}

static float cut(float cap, float score) {
    return cap > 0 ? cap * num_tanh(score / cap) : score;
}

// The scores of keys first .. last - 1 of one row, masked; true when some key is seen.
static bool score_row(const struct attention *a, const float *q, int64_t mask, int64_t first,
                      int64_t last, int64_t low, int64_t high) {
    bool seen = false;
    memset(a->score + first, 0, (size_t)(last - first) * sizeof(float));
    eval_fma_rows(a->score + first, q, 1, a->turned + first, (size_t)a->s, (size_t)a->d,
                  (size_t)(last - first));
    for (int64_t j = first; j < last; j++) {
        float x = cut(a->cap, a->score[j] * a->scale);
        if (a->add) x += a->add[mask + j * a->key_step];
        bool hidden = j < low || j > high || (a->keep && !a->keep[mask + j * a->key_step]);
        a->score[j] = hidden ? a->fill : x;
        seen |= !hidden && !(isinf((double)x) && x < 0);
    }
    return seen;
}

// One row of the result.
static void attend(const struct attention *a, const float *q, const float *v, int64_t mask,
                   int64_t row, float *out) {
    int64_t at = row + a->shift, low = a->left < 0 ? 0 : at - a->left,
            high = a->right < 0 ? a->s - 1 : at + a->right;
    int64_t first = 0, last = a->s;
    if (low < 0) low = 0;
    if (high > a->s - 1) high = a->s - 1;
    if (a->skips && low <= high) first = low, last = high + 1;
    bool seen = score_row(a, q, mask, first, last, low, high);
    size_t count = (size_t)(last - first);
    memset(out, 0, (size_t)a->dv * sizeof *out);
    if (!seen && a->zero_rows) return;
    struct num_reduce r;
    num_reduce_begin(&r, ISA_RED_MAX);
    num_reduce_add_f32(&r, a->score + first, count);
    float top = num_reduce_end_f32(&r);
    for (int64_t j = first; j < last; j++)
        a->score[j] -= top;
    num_vops_f32(ISA_VOP_EXP, a->power + first, a->score + first, NULL, NULL, count);
    num_reduce_begin(&r, ISA_RED_SUM);
    num_reduce_add_f32(&r, a->power + first, count);
    float sum = num_reduce_end_f32(&r);
    eval_fma_rows(out, a->power + first, 1, v + first * a->dv, (size_t)a->dv, count, (size_t)a->dv);
    for (int64_t j = 0; j < a->dv; j++)
        out[j] /= sum;
}

npu_status eval_attention(struct graph_eval *e) {
    const struct graph_value *q = e->n->inputs[0];
    struct attention a = attention_of(e);
    const float *fq = eval_floats(e, 0), *fk = eval_floats(e, 1), *fv = eval_floats(e, 2);
    int64_t all = graph_value_elems(e->n->outputs[0]) / (a.m * a.dv), share = a.heads / a.key_heads;
    int64_t turned = -1;
    for (int64_t h = 0; h < all; h++) {
        int64_t key = h / a.heads * a.key_heads + h % a.heads / share;
        for (int64_t j = 0; j < a.s && key != turned; j++)
            for (int64_t d = 0; d < a.d; d++)
                a.turned[d * a.s + j] = fk[(key * a.s + j) * a.d + d];
        turned = key;
        for (int64_t i = 0; i < a.m; i++)
            attend(&a, fq + (h * a.m + i) * a.d, fv + key * a.s * a.dv, mask_row(&a, q, h, i), i,
                   e->f + (h * a.m + i) * a.dv);
    }
    return NULL;
}
