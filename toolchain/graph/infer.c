// SPDX-License-Identifier: Apache-2.0
//
// graph_infer(): input counts, the op's shape rule, then the chain (operands broadcast to the
// result, output type), then sizes; and what the shape rules share.

#include "toolchain/graph/shape.h"

#include <string.h>

// ---- shared by the rules ---------------------------------------------------------------------

const char *shape_text(struct arena *a, int rank, const int64_t *dims) {
    char *text = arena_strdup(a, "[");
    for (int d = 0; d < rank; d++)
        text = arena_printf(a, "%s%s%lld", text, d ? "," : "", (long long)dims[d]);
    return arena_printf(a, "%s]", text);
}

void shape_set(struct graph_value *v, enum isa_dtype dtype, int rank, const int64_t *dims) {
    int64_t copy[GRAPH_MAX_RANK] = {0};
    if (rank) memcpy(copy, dims, (size_t)rank * sizeof *dims);
    v->dtype = dtype;
    v->rank = rank;
    memcpy(v->dims, copy, sizeof copy);
}

npu_status shape_rank(const struct graph_node *n, int k, int lo, int hi) {
    const struct graph_value *v = n->inputs[k];
    if (v->rank >= lo && v->rank <= hi) return NULL;
    if (lo == hi)
        return npu_fail(BAD_INPUT, "input %d ('%s') has rank %d, expected %d", k, v->name, v->rank,
                        lo);
    return npu_fail(BAD_INPUT, "input %d ('%s') has rank %d, expected %d to %d", k, v->name,
                    v->rank, lo, hi);
}

npu_status shape_ints(const struct graph_node *n, enum graph_attr_key key, int count, int64_t lo,
                      int64_t hi, bool needed) {
    const struct graph_attr *a = graph_attr(n, key);
    const char *name = graph_attrs[key].text;
    if (!a)
        return needed ? npu_fail(BAD_INPUT, "attribute %s is missing, expected %d integers", name,
                                 count)
                      : NULL;
    if (a->n != count)
        return npu_fail(BAD_INPUT, "attribute %s has %d items, expected %d", name, a->n, count);
    for (int k = 0; k < count; k++)
        if (a->ints[k] < lo || a->ints[k] > hi)
            return npu_fail(BAD_INPUT, "attribute %s[%d] is %lld, expected %lld to %lld", name, k,
                            (long long)a->ints[k], (long long)lo, (long long)hi);
    return NULL;
}

npu_status shape_word(const struct graph_node *n, enum graph_attr_key key, const char *words,
                      const char *otherwise, int *which) {
    const char *word = graph_word(n, key, otherwise);
    if (!word)
        return npu_fail(BAD_INPUT, "attribute %s is missing, expected %s", graph_attrs[key].text,
                        words);
    int position = 0;
    for (const char *p = words; *p; position++) {
        size_t len = strcspn(p, "|");
        if (strlen(word) == len && !memcmp(p, word, len)) {
            *which = position;
            return NULL;
        }
        p += len;
        if (*p) p++;
    }
    return npu_fail(BAD_INPUT, "attribute %s is '%s', expected %s", graph_attrs[key].text, word,
                    words);
}

npu_status shape_axis(const struct graph_node *n, int rank, int *axis) {
    const struct graph_attr *a = graph_attr(n, GRAPH_ATTR_AXIS);
    if (!a) return npu_fail(BAD_INPUT, "attribute axis is missing");
    if (a->i < 0 || a->i >= rank)
        return npu_fail(BAD_INPUT, "attribute axis is %lld, expected 0 to %d", (long long)a->i,
                        rank - 1);
    *axis = (int)a->i;
    return NULL;
}

bool shape_broadcast(int *rank, int64_t dims[GRAPH_MAX_RANK], const struct graph_value *v) {
    int64_t out[GRAPH_MAX_RANK];
    int r = *rank > v->rank ? *rank : v->rank;
    for (int d = 0; d < r; d++) { // from the innermost
        int64_t a = d < *rank ? dims[*rank - 1 - d] : 1;
        int64_t b = d < v->rank ? v->dims[v->rank - 1 - d] : 1;
        if (a != b && a != 1 && b != 1) return false;
        out[r - 1 - d] = a == 1 ? b : a;
    }
    memcpy(dims, out, (size_t)r * sizeof *dims);
    *rank = r;
    return true;
}

enum isa_dtype shape_promote(enum isa_dtype a, enum isa_dtype b) {
    if (a == b) return a;
    bool fa = isa_dtype_is_float(a), fb = isa_dtype_is_float(b);
    if (fa != fb) return fa ? a : b;
    int bits_a = isa_dtype_bits(a), bits_b = isa_dtype_bits(b);
    if (fa) return bits_a == bits_b ? ISA_F32 : bits_a > bits_b ? a : b;
    if (a == ISA_BOOL || b == ISA_BOOL) return a == ISA_BOOL ? b : a;
    if (bits_a != bits_b) return bits_a > bits_b ? a : b;
    // Equal width, signs differ: the next wider signed type.
    return bits_a == 4 ? ISA_I8 : bits_a == 8 ? ISA_I16 : bits_a == 16 ? ISA_I32 : ISA_I64;
}

// ---- the whole node --------------------------------------------------------------------------

// The chain's operands must broadcast to the op's own result; the dtype attribute is the type after
// the chain.
static npu_status infer_chain(struct graph *g, struct graph_node *n) {
    struct graph_value *out = n->outputs[0];
    if (!(graph_ops[n->op].traits & GRAPH_CHAIN))
        return npu_fail(BAD_INPUT, "a %s takes no chain", graph_ops[n->op].text);
    for (int k = n->op == GRAPH_MAP ? 3 : 1; k < 3; k++) {
        if (n->chain_in[k] < 0) continue;
        if (n->chain_in[k] < n->nown || n->chain_in[k] >= n->nin)
            return npu_fail(BAD_INPUT, "the chain's in%d is input %d, expected one of %d to %d", k,
                            n->chain_in[k], n->nown, n->nin - 1);
        const struct graph_value *v = n->inputs[n->chain_in[k]];
        int rank = out->rank;
        int64_t dims[GRAPH_MAX_RANK];
        memcpy(dims, out->dims, sizeof dims);
        if (!shape_broadcast(&rank, dims, v) || rank != out->rank ||
            memcmp(dims, out->dims, (size_t)rank * sizeof *dims) != 0)
            return npu_fail(BAD_INPUT, "the chain's operand '%s' %s does not broadcast to %s",
                            v->name, shape_text(g->arena, v->rank, v->dims),
                            shape_text(g->arena, out->rank, out->dims));
    }
    return NULL;
}

// Byte sizes must stay far from overflow: 2^46 bytes are refused.
static npu_status check_size(struct graph *g, const struct graph_value *v) {
    int64_t elems = 1;
    const int64_t most = (int64_t)1 << 43;
    for (int d = 0; d < v->rank; d++) {
        if (v->dims[d] < 0)
            return npu_fail(BAD_INPUT, "the result would have the shape %s",
                            shape_text(g->arena, v->rank, v->dims));
        if (v->dims[d] && elems > most / v->dims[d])
            return npu_fail(UNSUPPORTED, "the result %s has more than 2^43 elements",
                            shape_text(g->arena, v->rank, v->dims));
        elems *= v->dims[d] ? v->dims[d] : 1;
    }
    return NULL;
}

static npu_status infer_node(struct graph *g, struct graph_node *n) {
    const struct graph_op_desc *op = &graph_ops[n->op];
    if (n->nown < op->min_in || n->nown > op->max_in)
        return npu_fail(BAD_INPUT, "%d inputs, expected %d to %d", n->nown, op->min_in, op->max_in);
    NPU_TRY(op->shape(g, n));
    struct graph_value *out = n->outputs[0];
    int64_t dtype = graph_int(n, GRAPH_ATTR_DTYPE, ISA_DTYPE_NONE);
    if (dtype != ISA_DTYPE_NONE) {
        if (dtype < 0 || dtype > INT32_MAX || !isa_dtype_bits((int)dtype))
            return npu_fail(BAD_INPUT, "attribute dtype is the unknown code %lld",
                            (long long)dtype);
        out->dtype = (enum isa_dtype)dtype;
    }
    if (n->has_chain) {
        NPU_TRY(infer_chain(g, n));
        NPU_TRY(graph_chain_check(n));
    } else if (n->op == GRAPH_MAP) {
        return npu_fail(BAD_INPUT, "a map needs a chain");
    }
    for (int k = 0; k < n->nout; k++)
        NPU_TRY(check_size(g, n->outputs[k]));
    return NULL;
}

npu_status graph_infer(struct graph *g, struct graph_node *n, const char *output_name) {
    const struct graph_op_desc *op = &graph_ops[n->op];
    if (!n->nout) {
        n->outputs = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)op->nout);
        n->nout = op->nout;
        for (int k = 0; k < n->nout; k++) {
            n->outputs[k] =
                graph_add_value(g, output_name ? output_name : n->name, ISA_DTYPE_NONE, 0, NULL);
            n->outputs[k]->producer = n;
        }
    }
    return npu_note(infer_node(g, n), "node '%s' (%s)", n->name, op->text);
}
