// SPDX-License-Identifier: Apache-2.0
// The program's floating type. Here each f32, f16 or bf16 constant is rounded once and each value
// of these types takes the program's; other floating types stay.
//
//   a constant with finite elements that overflow the type: where a chain reads it, it stays f32
//   (the vector engine computes in f32
//     anyway); an addend of a chain that is below the type's lowest value is an additive mask and
//     becomes that lowest value; an operand of a kernel that overflows keeps the whole node in f32,
//     listed in the report
//   a chain's operand that is repeated over the result (bias, scale) stays f32 too
#include <float.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "toolchain/passes/chain.h"
#include "toolchain/passes/pass.h"

// A type that the program's type replaces.
static bool replaced(enum isa_dtype from, enum isa_dtype t) {
    return from != t && (from == ISA_F32 || from == ISA_F16 || from == ISA_BF16);
}

static double largest(enum isa_dtype t) {
    return t == ISA_F16 ? 65504.0 : t == ISA_BF16 ? 3.3895313892515355e38 : (double)FLT_MAX;
}

// How a constant meets the type's range.
enum range { RANGE_FITS, RANGE_MASK, RANGE_OVERFLOW };

// All three are decided on the rounded value, so that 65519.9 fits f16.
static enum range range_of(const struct graph_value *v, enum isa_dtype t, bool addend) {
    bool low = false;
    int64_t n = graph_value_elems(v);
    for (int64_t i = 0; i < n; i++) {
        float f = num_load_f32((int)v->dtype, v->data, i);
        if (isnan((double)f) || !isinf((double)num_round_to((int)t, f))) continue;
        if (addend && f < 0)
            low = true;
        else if (!isinf((double)f))
            return RANGE_OVERFLOW;
    }
    return low ? RANGE_MASK : RANGE_FITS;
}

static struct graph_value *rounded(struct pass_context *c, const struct graph_value *v,
                                   enum isa_dtype t, bool mask) {
    int64_t n = graph_value_elems(v);
    void *data = arena_alloc(c->g->arena, (size_t)(n * isa_dtype_bits((int)t) / 8 + 1));
    for (int64_t i = 0; i < n; i++) {
        float f = num_load_f32((int)v->dtype, v->data, i);
        num_store_f32((int)t, data, i, mask && (double)f < -largest(t) ? (float)-largest(t) : f);
    }
    return graph_add_const(c->g,
                           arena_printf(c->g->arena, "%s.%s", v->name, isa_dtype_name((int)t)), t,
                           v->rank, v->dims, data);
}

// The chain only adds this input.
static bool is_addend(const struct graph_node *n, int input) {
    bool added = false;
    for (int k = 0; k < 3 && n->has_chain; k++) {
        if (n->chain_in[k] != input) continue;
        int stages = chain_length(&n->chain);
        if (k == 0 && (stages == 0 || n->chain.st[0].op != ISA_VOP_ADD)) return false;
        added |= k == 0;
        for (int i = 0; i < stages; i++) {
            const struct isa_stage *st = &n->chain.st[i];
            if (st->b == ISA_SRC_IN0 + k) return false;
            if (st->a != ISA_SRC_IN0 + k) continue;
            if (st->op != ISA_VOP_ADD) return false;
            added = true;
        }
    }
    return added;
}

static bool of_chain(const struct graph_node *n, int input) {
    return n->op == GRAPH_MAP || input >= n->nown;
}

// A bias or scale: an operand of a chain that is repeated over the result. It stays f32, which is
// what the vector engine computes in; rounding it would cost accuracy and save nothing.
static bool is_parameter(const struct graph_node *n, int input) {
    return of_chain(n, input) &&
           16 * graph_value_elems(n->inputs[input]) <= graph_value_elems(n->outputs[0]);
}

// True when some constant of the kernel itself does not fit the type.
static bool keeps_f32(const struct graph_node *n, enum isa_dtype t) {
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        if (v->data && replaced(v->dtype, t) && !of_chain(n, i) &&
            range_of(v, t, false) == RANGE_OVERFLOW)
            return true;
    }
    return false;
}

// A constant is rounded once however many nodes read it.
static struct graph_value *shared(struct pass_context *c, struct graph_value **memo,
                                  struct graph_value *v, enum isa_dtype t, bool mask) {
    if (mask) return rounded(c, v, t, true);
    if (!memo[v->id]) memo[v->id] = rounded(c, v, t, false);
    return memo[v->id];
}

static npu_status convert(struct pass_context *c, struct graph_value *from, enum isa_dtype t,
                          struct graph_node *before, struct graph_value **out) {
    struct isa_chain none = {.imm = {0}};
    struct graph_value *in[] = {from};
    return graph_add_map(c->g, from->name, 1, in, &none, t, before, out);
}

static npu_status narrow_node(struct pass_context *c, struct graph_node *n,
                              struct graph_value **memo, enum isa_dtype t) {
    bool keep = keeps_f32(n, t);
    if (keep) c->log->kept_names[c->log->kept_f32++] = n->name;
    for (int i = 0; i < n->nin; i++) {
        struct graph_value *v = n->inputs[i];
        if (!v->data && keep && v->dtype == t) {
            NPU_TRY(convert(c, v, ISA_F32, n, &n->inputs[i]));
        } else if (v->data && replaced(v->dtype, t) && !keep) {
            enum range r = range_of(v, t, is_addend(n, i));
            if (r == RANGE_MASK || (r == RANGE_FITS && !is_parameter(n, i)))
                n->inputs[i] = shared(c, memo, v, t, r == RANGE_MASK);
        }
    }
    for (int i = 0; i < n->nout; i++) {
        struct graph_value *v = n->outputs[i];
        if (!replaced(v->dtype, t)) continue;
        if (!keep) {
            v->dtype = t;
        } else {
            struct graph_value *narrow;
            NPU_TRY(convert(c, v, t, n->next, &narrow));
            struct graph_node *made = narrow->producer;
            graph_replace_uses(c->g, v, narrow);
            made->inputs[0] = v;
        }
    }
    // A chain's type is said, since its operands may have others.
    if (n->has_chain || graph_attr(n, GRAPH_ATTR_DTYPE))
        graph_set_int(c->g, n, GRAPH_ATTR_DTYPE, (int64_t)n->outputs[0]->dtype);
    return NULL;
}

npu_status pass_dtype(struct pass_context *c) {
    enum isa_dtype t = c->options->dtype;
    struct graph *g = c->g;
    if (t == ISA_DTYPE_NONE) return NULL;
    int nodes = 0, values = g->nvalue;
    for (struct graph_node *n = g->first; n; n = n->next)
        nodes++;
    c->log->kept_names = ARENA_ARRAY(g->arena, const char *, (size_t)nodes + 1);
    struct graph_value **memo = ARENA_ARRAY(c->scratch, struct graph_value *, (size_t)values + 1);
    for (int i = 0; i < g->ninput; i++)
        if (replaced(g->inputs[i]->dtype, t)) g->inputs[i]->dtype = t;
    for (struct graph_node *n = g->first, *next; n; n = next) {
        next = n->next;
        NPU_TRY(narrow_node(c, n, memo, t));
    }
    return NULL;
}
