// SPDX-License-Identifier: Apache-2.0
//
// Attention and RotaryEmbedding of opset 23, expanded:
//
//   S = Q K' * scale, softcap, causal mask, mask;  Y = softmax(S) V

#include <math.h>
#include <string.h>

#include "toolchain/frontend/onnx/import.h"

// [B, S, heads * D] to [B, heads, S, D]; rank 4 stays.
static npu_status split_heads(struct onnx_node *n, struct graph_value *x, int64_t heads,
                              struct graph_value **out) {
    *out = x;
    if (x->rank == 4) return NULL;
    if (x->rank != 3 || heads < 1 || x->dims[2] % heads)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 4, or 3 with a number of heads",
                        x->name, x->rank);
    NPU_TRY(
        onnx_reshape(n, x, 4, (int64_t[]){x->dims[0], x->dims[1], heads, x->dims[2] / heads}, &x));
    return onnx_transpose(n, x, (int64_t[]){0, 2, 1, 3}, out);
}

static npu_status join_heads(struct onnx_node *n, struct graph_value *x, struct graph_value **out) {
    NPU_TRY(onnx_transpose(n, x, (int64_t[]){0, 2, 1, 3}, &x));
    return onnx_reshape(n, x, 3, (int64_t[]){x->dims[0], x->dims[1], x->dims[2] * x->dims[3]}, out);
}

// Every head of x `times` times.
static npu_status repeat_heads(struct onnx_node *n, struct graph_value *x, int64_t times,
                               struct graph_value **out) {
    const int64_t *d = x->dims;
    *out = x;
    if (times == 1) return NULL;
    int64_t b = d[0], h = d[1], s = d[2], e = d[3];
    NPU_TRY(onnx_reshape(n, x, 5, (int64_t[]){b, h, 1, s, e}, &x));
    NPU_TRY(onnx_expand(n, x, 5, (int64_t[]){b, h, times, s, e}, &x));
    return onnx_reshape(n, x, 4, (int64_t[]){b, h * times, s, e}, out);
}

// Row i sees columns up to i + offset.
static npu_status causal(struct onnx_node *n, struct graph_value *s, int64_t offset,
                         struct graph_value **out) {
    int64_t rows = s->dims[2], cols = s->dims[3], dims[2] = {rows, cols};
    if (rows && cols > ((int64_t)1 << 28) / rows)
        return npu_fail(UNSUPPORTED, "a mask of %lld x %lld", (long long)rows, (long long)cols);
    uint8_t *see = arena_alloc(n->m->arena, (size_t)(rows * cols) + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            see[i * cols + j] = j <= i + offset;
    double lowest = -HUGE_VAL;
    struct graph_value *mask = graph_add_const(n->m->g, n->label, ISA_BOOL, 2, dims, see);
    return onnx_map(n, s->dtype, "sel in1 $0", &lowest, 2, (struct graph_value *[]){mask, s}, out);
}

struct attention {
    struct graph_value *q, *k, *v; // [B, heads, S, D]
    int64_t past;
    bool joined; // the inputs were of rank 3
};

static npu_status read_attention(struct onnx_node *n, struct attention *a) {
    NPU_TRY(onnx_need(n, 3, 6));
    a->joined = n->in[0]->rank == 3;
    NPU_TRY(split_heads(n, n->in[0], onnx_int(n, "q_num_heads", 0), &a->q));
    NPU_TRY(split_heads(n, n->in[1], onnx_int(n, "kv_num_heads", 0), &a->k));
    NPU_TRY(split_heads(n, n->in[2], onnx_int(n, "kv_num_heads", 0), &a->v));
    struct graph_value **parts[2] = {&a->k, &a->v};
    for (int i = 0; i < 2; i++) {
        if (!onnx_given(n, 4 + i)) continue;
        struct graph_value *both[2] = {n->in[4 + i], *parts[i]};
        if (both[0]->rank != 4)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 4", both[0]->name,
                            both[0]->rank);
        a->past = both[0]->dims[2];
        NPU_TRY(onnx_concat(n, 2, both, 2, parts[i]));
        NPU_TRY(onnx_bind(n, 1 + i, *parts[i]));
    }
    int64_t heads = a->q->dims[1], kv = a->k->dims[1];
    if (kv < 1 || heads % kv || a->v->dims[1] != kv)
        return npu_fail(BAD_INPUT, "%lld heads of Q, %lld of K, %lld of V", (long long)heads,
                        (long long)kv, (long long)a->v->dims[1]);
    NPU_TRY(repeat_heads(n, a->k, heads / kv, &a->k));
    return repeat_heads(n, a->v, heads / kv, &a->v);
}

static npu_status masked_scores(struct onnx_node *n, const struct attention *a,
                                struct graph_value **out) {
    struct graph_value *s;
    double softcap = onnx_float(n, "softcap", 0), lowest = -HUGE_VAL;
    double scale = onnx_float(n, "scale", 0);
    if (!onnx_has(n, "scale") || scale == 0) scale = 1 / sqrt((double)a->q->dims[3]);
    NPU_TRY(onnx_matmul(n, a->q, a->k, false, true, &s));
    NPU_TRY(onnx_map(n, s->dtype, "mul $0", &scale, 1, &s, &s));
    if (softcap > 0) NPU_TRY(onnx_map(n, s->dtype, "div $0; tanh; mul $0", &softcap, 1, &s, &s));
    if (onnx_int(n, "is_causal", 0)) NPU_TRY(causal(n, s, a->past, &s));
    *out = s;
    if (!onnx_given(n, 3)) return NULL;
    struct graph_value *mask = n->in[3];
    if (mask->dtype == ISA_BOOL)
        return onnx_map(n, s->dtype, "sel in1 $0", &lowest, 2, (struct graph_value *[]){mask, s},
                        out);
    return onnx_map(n, s->dtype, "add in1", NULL, 2, (struct graph_value *[]){s, mask}, out);
}

npu_status import_attention(struct onnx_node *n) {
    struct attention a = {.past = 0};
    if (onnx_used(n, 3)) return npu_fail(UNSUPPORTED, "output 3 (the scores)");
    NPU_TRY(read_attention(n, &a));
    if (onnx_used(n, 1) && !onnx_given(n, 4)) return npu_fail(BAD_INPUT, "present without past");
    struct graph_value *s, *y;
    NPU_TRY(masked_scores(n, &a, &s));
    NPU_TRY(onnx_softmax(n, s, s->rank - 1, false, &s));
    NPU_TRY(onnx_matmul(n, s, a.v, false, false, &y));
    if (a.joined) NPU_TRY(join_heads(n, y, &y));
    return onnx_bind(n, 0, y);
}

// ---- rotary embedding ------------------------------------------------------------------------

// Half `which` of the last dimension, from `start` on: two runs, or every second element.
static npu_status half(struct onnx_node *n, struct graph_value *x, int64_t width, int which,
                       bool interleaved, struct graph_value **out) {
    int64_t starts[GRAPH_MAX_RANK] = {0}, sizes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        sizes[d] = x->dims[d];
        steps[d] = 1;
    }
    int last = x->rank - 1;
    sizes[last] = width / 2;
    steps[last] = interleaved ? 2 : 1;
    starts[last] = interleaved ? which : which * (width / 2);
    return onnx_slice(n, x, starts, sizes, steps, out);
}

// The table's rows for each position, [B, 1, S, width / 2].
static npu_status angles(struct onnx_node *n, struct graph_value *table, struct graph_value **out) {
    if (onnx_given(n, 3)) {
        if (table->rank != 2)
            return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 2", table->name, table->rank);
        NPU_TRY(onnx_gather(n, table, n->in[3], 0, &table));
    }
    if (table->rank != 3)
        return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 3", table->name, table->rank);
    return onnx_reshape(n, table, 4, (int64_t[]){table->dims[0], 1, table->dims[1], table->dims[2]},
                        out);
}

static npu_status rotate(struct onnx_node *n, struct graph_value *x, int64_t width,
                         struct graph_value **out) {
    bool interleaved = onnx_int(n, "interleaved", 0) != 0;
    struct graph_value *c, *s, *a, *b, *parts[2];
    NPU_TRY(angles(n, n->in[1], &c));
    NPU_TRY(angles(n, n->in[2], &s));
    NPU_TRY(half(n, x, width, 0, interleaved, &a));
    NPU_TRY(half(n, x, width, 1, interleaved, &b));
    NPU_TRY(onnx_map2(n, "mul in1", b, s, &parts[0]));
    NPU_TRY(onnx_map2(n, "mul in1", a, s, &parts[1]));
    NPU_TRY(onnx_map(n, x->dtype, "mul in1; sub in2", NULL, 3,
                     (struct graph_value *[]){a, c, parts[0]}, &parts[0]));
    NPU_TRY(onnx_map(n, x->dtype, "mul in1; add in2", NULL, 3,
                     (struct graph_value *[]){b, c, parts[1]}, &parts[1]));
    const int64_t *d = parts[0]->dims;
    if (!interleaved) return onnx_concat(n, 2, parts, 3, out);
    int64_t dims[4] = {d[0], d[1], d[2], width};
    for (int k = 0; k < 2; k++)
        NPU_TRY(onnx_reshape(n, parts[k], 5, (int64_t[]){dims[0], dims[1], dims[2], width / 2, 1},
                             &parts[k]));
    NPU_TRY(onnx_concat(n, 2, parts, 4, out));
    return onnx_reshape(n, *out, 4, dims, out);
}

// x, cos, sin, [position_ids]
npu_status import_rotary(struct onnx_node *n) {
    NPU_TRY(onnx_need(n, 3, 4));
    struct graph_value *x, *y, *parts[2];
    bool joined = n->in[0]->rank == 3;
    NPU_TRY(split_heads(n, n->in[0], onnx_int(n, "num_heads", 0), &x));
    int64_t size = x->dims[3], width = onnx_int(n, "rotary_embedding_dim", 0);
    if (!width) width = size;
    if (width < 2 || width % 2 || width > size)
        return npu_fail(BAD_INPUT, "rotary_embedding_dim %lld of %lld", (long long)width,
                        (long long)size);
    int64_t starts[4] = {0}, sizes[4] = {x->dims[0], x->dims[1], x->dims[2], width};
    const int64_t steps[4] = {1, 1, 1, 1};
    NPU_TRY(onnx_slice(n, x, starts, sizes, steps, &parts[0]));
    NPU_TRY(rotate(n, parts[0], width, &y));
    if (width < size) {
        starts[3] = width;
        sizes[3] = size - width;
        parts[0] = y;
        NPU_TRY(onnx_slice(n, x, starts, sizes, steps, &parts[1]));
        NPU_TRY(onnx_concat(n, 2, parts, 3, &y));
    }
    if (joined) NPU_TRY(join_heads(n, y, &y));
    return onnx_bind(n, 0, y);
}
