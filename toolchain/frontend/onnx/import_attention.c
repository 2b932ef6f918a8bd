// SPDX-License-Identifier: Apache-2.0
//
// Attention, from opset 23 on, is the core op of that name: grouped heads as they are, the causal
// mask and sliding windows as its window, caches joined before it. RotaryEmbedding is slices, maps
// and a concat.

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

struct attention {
    struct graph_value *q, *k, *v; // [B, heads, rows, depth]
    struct graph_value *keep;      // 0 hides the key, or NULL; broadcasts to the scores
    struct graph_value *add;       // added to the scores, or NULL
    int64_t window[3];             // as the attribute of the core op
    bool windowed;
    double scale, softcap;
    bool joined; // the inputs were of rank 3
};

// ---- operands --------------------------------------------------------------------------------

static npu_status check_operands(const struct attention *a) {
    const struct graph_value *q = a->q, *k = a->k, *v = a->v;
    int64_t heads = q->dims[1], kv = k->dims[1];
    if (kv < 1 || heads % kv || v->dims[1] != kv)
        return npu_fail(BAD_INPUT, "%lld heads of Q, %lld of K, %lld of V", (long long)heads,
                        (long long)kv, (long long)v->dims[1]);
    return NULL;
}

// K and V behind what the caches hold; *past: how many keys these are.
static npu_status read_operands(struct onnx_node *n, struct attention *a, int64_t *past) {
    a->joined = n->in[0]->rank == 3;
    NPU_TRY(split_heads(n, n->in[0], onnx_int(n, "q_num_heads", 0), &a->q));
    NPU_TRY(split_heads(n, n->in[1], onnx_int(n, "kv_num_heads", 0), &a->k));
    NPU_TRY(split_heads(n, n->in[2], onnx_int(n, "kv_num_heads", 0), &a->v));
    struct graph_value **parts[2] = {&a->k, &a->v};
    *past = 0;
    for (int i = 0; i < 2; i++) {
        if (onnx_given(n, 4 + i)) {
            struct graph_value *both[2] = {n->in[4 + i], *parts[i]};
            if (both[0]->rank != 4)
                return npu_fail(BAD_INPUT, "'%s' has rank %d, expected 4", both[0]->name,
                                both[0]->rank);
            *past = both[0]->dims[2];
            NPU_TRY(onnx_concat(n, 2, both, 2, parts[i]));
        }
        if (onnx_used(n, 1 + i)) NPU_TRY(onnx_bind(n, 1 + i, *parts[i]));
    }
    return check_operands(a);
}

// ---- masks -----------------------------------------------------------------------------------

// A key is seen where both say so.
static npu_status also(struct onnx_node *n, struct attention *a, struct graph_value *keep) {
    if (!a->keep) {
        a->keep = keep;
        return NULL;
    }
    return onnx_map(n, ISA_BOOL, "and in1", NULL, 2, (struct graph_value *[]){a->keep, keep},
                    &a->keep);
}

// attn_mask: truth values or addends; the keys that a short one does not reach are hidden.
static npu_status read_mask(struct onnx_node *n, struct attention *a) {
    struct graph_value *mask = n->in[3];
    bool truth = mask->dtype == ISA_BOOL;
    int64_t keys = a->k->dims[2];
    if (mask->rank < 1 || mask->rank > 4)
        return npu_fail(BAD_INPUT, "the mask '%s' has rank %d, expected 1 to 4", mask->name,
                        mask->rank);
    int64_t has = mask->dims[mask->rank - 1];
    if (has != keys && has != 1) {
        int64_t before[4] = {0}, after[4] = {0};
        after[mask->rank - 1] = keys - has;
        if (has > keys)
            return npu_fail(BAD_INPUT, "the mask '%s' is for %lld keys, there are %lld", mask->name,
                            (long long)has, (long long)keys);
        NPU_TRY(onnx_pad(n, mask, before, after, "constant", truth ? 0 : -HUGE_VAL, &mask));
    }
    if (truth) return also(n, a, mask);
    if (!isa_dtype_is_float(mask->dtype))
        return npu_fail(BAD_INPUT, "the mask '%s' is %s, expected bool or a floating type",
                        mask->name, isa_dtype_name(mask->dtype));
    a->add = mask;
    return NULL;
}

// j - i for query i, key j: [1, 1, rows, keys].
static npu_status distances(struct onnx_node *n, const struct attention *a,
                            struct graph_value **out) {
    int64_t rows = a->q->dims[2], keys = a->k->dims[2], dims[4] = {1, 1, rows, keys};
    if (rows && keys > ((int64_t)1 << 28) / rows)
        return npu_fail(UNSUPPORTED, "a mask of %lld x %lld", (long long)rows, (long long)keys);
    int32_t *data = ARENA_ARRAY(n->m->arena, int32_t, (size_t)(rows * keys) + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            data[i * keys + j] = (int32_t)(j - i);
    *out = graph_add_const(n->m->g, n->label, ISA_I32, 4, dims, data);
    return NULL;
}

// nonpad_kv_seqlen: the first so many keys of each batch are filled. The window's queries are the
// last of them, so that its offset is known at run time only: it becomes a part of the mask.
static npu_status read_lengths(struct onnx_node *n, struct attention *a, bool left, bool right) {
    struct graph_value *length = n->in[6], *d, *keep, *index;
    int64_t keys = a->k->dims[2], dims[4] = {1, 1, 1, keys};
    double rows = (double)a->q->dims[2];
    NPU_TRY(onnx_reshape(n, length, 4, (int64_t[]){graph_value_elems(length), 1, 1, 1}, &length));
    int32_t *data = ARENA_ARRAY(n->m->arena, int32_t, (size_t)keys + 1);
    for (int64_t j = 0; j < keys; j++)
        data[j] = (int32_t)j;
    index = graph_add_const(n->m->g, n->label, ISA_I32, 4, dims, data);
    NPU_TRY(
        onnx_map(n, ISA_BOOL, "lt in1", NULL, 2, (struct graph_value *[]){index, length}, &keep));
    NPU_TRY(also(n, a, keep));
    if (!left && !right) return NULL;
    NPU_TRY(distances(n, a, &d));
    double bound[2] = {(double)a->window[1] - rows, (double)-a->window[0] - rows};
    for (int side = 0; side < 2; side++) {
        if (!(side ? left : right)) continue;
        NPU_TRY(onnx_map(n, ISA_BOOL, side ? "sub in1; ge $0" : "sub in1; le $0", &bound[side], 2,
                         (struct graph_value *[]){d, length}, &keep));
        NPU_TRY(also(n, a, keep));
    }
    return NULL;
}

static npu_status read_masks(struct onnx_node *n, struct attention *a, int64_t past) {
    int64_t left = onnx_int(n, "left_window_size", -1),
            right = onnx_int(n, "right_window_size", -1);
    if (left < -1 || right < -1)
        return npu_fail(BAD_INPUT, "a window of %lld and %lld keys", (long long)left,
                        (long long)right);
    if (onnx_int(n, "is_causal", 0)) right = 0;
    a->windowed = left >= 0 || right >= 0;
    a->window[0] = left;
    a->window[1] = right;
    a->window[2] = past;
    if (onnx_given(n, 6)) {
        if (past) return npu_fail(BAD_INPUT, "nonpad_kv_seqlen beside past_key");
        a->windowed = false;
        NPU_TRY(read_lengths(n, a, left >= 0, right >= 0));
    }
    return onnx_given(n, 3) ? read_mask(n, a) : NULL;
}

// ---- the node --------------------------------------------------------------------------------

// The core op has one mask: what hides becomes an addend where there are addends.
static npu_status one_mask(struct onnx_node *n, struct attention *a, struct graph_value **out) {
    double lowest = -HUGE_VAL;
    *out = a->add ? a->add : a->keep;
    if (!a->add || !a->keep) return NULL;
    return onnx_map(n, a->add->dtype, "sel in1 $0", &lowest, 2,
                    (struct graph_value *[]){a->keep, a->add}, out);
}

static npu_status attend(struct onnx_node *n, struct attention *a, struct graph_value **out) {
    struct graph *g = n->m->g;
    struct graph_value *in[4] = {a->q, a->k, a->v, NULL};
    NPU_TRY(one_mask(n, a, &in[3]));
    struct graph_node *node = onnx_core(n, GRAPH_ATTENTION, in[3] ? 4 : 3, in);
    graph_set_float(g, node, GRAPH_ATTR_SCALE, a->scale);
    if (a->softcap > 0) graph_set_float(g, node, GRAPH_ATTR_SOFTCAP, a->softcap);
    if (a->windowed) graph_set_ints(g, node, GRAPH_ATTR_WINDOW, 3, a->window);
    // A query that sees no key gives 0 (the op's errata, its reference implementation and ONNX
    // Runtime). Without a mask there is none where each query sees its own place.
    bool sees =
        !a->windowed || (a->window[2] >= 0 && a->window[2] + a->q->dims[2] <= a->k->dims[2]);
    if (in[3] || !sees) graph_set_int(g, node, GRAPH_ATTR_ZERO_ROWS, 1);
    return onnx_emit(n, node, out);
}

// The scores on their way, for those who ask for them. mode 0: products, 1: with the softcap, 2:
// and the masks, 3: the weights.
static npu_status scores(struct onnx_node *n, struct attention *a, int64_t mode,
                         struct graph_value **out) {
    double lowest = -HUGE_VAL;
    struct graph_value *k, *s, *d;
    NPU_TRY(repeat_heads(n, a->k, a->q->dims[1] / a->k->dims[1], &k));
    NPU_TRY(onnx_matmul(n, a->q, k, false, true, &s));
    NPU_TRY(onnx_map(n, s->dtype, "mul $0", &a->scale, 1, &s, out));
    if (mode > 0 && a->softcap > 0)
        NPU_TRY(onnx_map(n, s->dtype, "div $0; tanh; mul $0", &a->softcap, 1, out, out));
    if (mode < 2) return NULL;
    if (a->add) NPU_TRY(onnx_map2(n, "add in1", *out, a->add, out));
    if (a->keep)
        NPU_TRY(onnx_map(n, s->dtype, "sel in1 $0", &lowest, 2,
                         (struct graph_value *[]){a->keep, *out}, out));
    for (int side = 0; side < 2 && a->windowed; side++) {
        if (a->window[side] < 0) continue;
        double bound = (double)(a->window[2] + (side ? a->window[1] : -a->window[0]));
        NPU_TRY(distances(n, a, &d));
        NPU_TRY(onnx_map(n, ISA_BOOL, side ? "le $0" : "ge $0", &bound, 1, &d, &d));
        NPU_TRY(onnx_map(n, s->dtype, "sel in1 $0", &lowest, 2, (struct graph_value *[]){d, *out},
                         out));
    }
    if (mode < 3) return NULL;
    NPU_TRY(onnx_softmax(n, *out, 3, false, &s));
    NPU_TRY(onnx_map(n, ISA_BOOL, "ne in0", NULL, 1, &s, &d));
    return onnx_map(n, s->dtype, "sel 0 in1", NULL, 2, (struct graph_value *[]){d, s}, out);
}

// Q, K, V, [mask, past K, past V, filled length] -> Y, [K, V, scores]
npu_status import_attention(struct onnx_node *n) {
    struct attention a = {.scale = onnx_float(n, "scale", 0)};
    int64_t past, mode = onnx_int(n, "qk_matmul_output_mode", 0);
    NPU_TRY(onnx_need(n, 3, 7));
    if (onnx_given(n, 4) != onnx_given(n, 5))
        return npu_fail(BAD_INPUT, "past_key and past_value are given together");
    NPU_TRY(read_operands(n, &a, &past));
    if (!onnx_has(n, "scale") || !(fabs(a.scale) > 0)) a.scale = 1 / sqrt((double)a.q->dims[3]);
    a.softcap = onnx_float(n, "softcap", 0);
    NPU_TRY(read_masks(n, &a, past));
    struct graph_value *y, *s;
    NPU_TRY(attend(n, &a, &y));
    if (a.joined) NPU_TRY(join_heads(n, y, &y));
    NPU_TRY(onnx_bind(n, 0, y));
    if (!onnx_used(n, 3)) return NULL;
    if (mode < 0 || mode > 3)
        return npu_fail(BAD_INPUT, "attribute qk_matmul_output_mode is %lld, expected 0 to 3",
                        (long long)mode);
    NPU_TRY(scores(n, &a, mode, &s));
    return onnx_bind(n, 3, s);
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
