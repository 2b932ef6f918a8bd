// SPDX-License-Identifier: Apache-2.0
// The program's floating type. Here each f32, f16 or bf16 constant is rounded once and each value
// of these types takes the program's; other floating types stay.
//
//   a constant with finite elements that overflow the type: where a chain reads it, it stays f32
//   (the vector engine computes in f32
//     anyway); an addend of a chain that is below the type's lowest value is an additive mask and
//     becomes that lowest value; an operand of a kernel that overflows keeps the whole node in f32,
//     listed in the report; a number that a chain selects last becomes the lowest or largest value
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

// Elements looked at at a time.
#define CHUNK 4096

// Largest magnitude of elements that are no NaN, by their bits.
static float largest_of(const float *x, size_t n) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = num_bits(x[i]) & 0x7fffffffu;
        u = u > NUM_INF_F32 ? 0 : u;
        most = u > most ? u : most;
    }
    return num_float(most);
}

// All three are decided on the rounded value, so that 65519.9 fits f16. Rounding keeps the order,
// so that a chunk fits when its largest magnitude does.
static enum range range_of(const struct graph_value *v, enum isa_dtype t, bool addend) {
    float x[CHUNK];
    bool low = false;
    int64_t n = graph_value_elems(v);
    for (int64_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
        num_read_f32((int)graph_data_dtype(v), v->data, at, 1, x, part);
        if (!isinf((double)num_round_to((int)t, largest_of(x, part)))) continue;
        for (size_t i = 0; i < part; i++) {
            if (isnan((double)x[i]) || !isinf((double)num_round_to((int)t, x[i]))) continue;
            if (addend && x[i] < 0)
                low = true;
            else if (!isinf((double)x[i]))
                return RANGE_OVERFLOW;
        }
    }
    return low ? RANGE_MASK : RANGE_FITS;
}

// Elements of an additive mask, those below the lowest value raised to it.
static void *raised(struct pass_context *c, const struct graph_value *v, enum isa_dtype t) {
    int64_t n = graph_value_elems(v);
    void *data = arena_alloc(c->g->arena, (size_t)(n * isa_dtype_bits((int)t) / 8 + 1));
    for (int64_t i = 0; i < n; i++) {
        float f = num_load_f32((int)graph_data_dtype(v), v->data, i);
        num_store_f32((int)t, data, i, (double)f < -largest(t) ? (float)-largest(t) : f);
    }
    return data;
}

// Weights of a kernel, which nobody looks into before they are written into the program: their
// elements stay as they are until then.
static bool is_weight(const struct graph_node *n, int input, const struct graph_value *v) {
    bool op = n->op == GRAPH_MATMUL || n->op == GRAPH_CONV || n->op == GRAPH_CONVT ||
              n->op == GRAPH_GATHER || n->op == GRAPH_GLU || n->op == GRAPH_GLU_MLP;
    return op && input < n->nown && graph_value_bytes(v) > GRAPH_ALIGNED_BYTES;
}

static struct graph_value *rounded(struct pass_context *c, const struct graph_value *v,
                                   enum isa_dtype t, bool mask, bool weight) {
    struct graph *g = c->g;
    const char *name = arena_printf(g->arena, "%s.%s", v->name, isa_dtype_name((int)t));
    struct graph_value made = *v;
    made.dtype = t;
    made.data_dtype = graph_data_dtype(v);
    const void *data = mask ? raised(c, v, t) : weight ? v->data : graph_constant(&made, g->arena);
    struct graph_value *out = graph_add_const(g, name, t, v->rank, v->dims, data);
    if (!mask && weight) out->data_dtype = made.data_dtype;
    return out;
}

// The chain only adds this input.
static bool is_addend(const struct graph_node *n, int input) {
    bool added = n->op == GRAPH_ATTENTION && input == 3; // its mask
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

// Read by the vector engine only.
static bool of_chain(const struct graph_node *n, int input) {
    bool norm = n->op == GRAPH_LAYERNORM || n->op == GRAPH_RMSNORM || n->op == GRAPH_GROUPNORM,
         gate = n->op == GRAPH_GLU || n->op == GRAPH_GLU_MLP;
    return n->op == GRAPH_MAP || input >= n->nown || (n->op == GRAPH_ATTENTION && input == 3) ||
           (norm && input > 0) || (gate && input > 0 && n->inputs[input]->rank == 1);
}

// A bias or scale: an operand of a chain that is repeated over the result. It stays f32, which is
// what the vector engine computes in; rounding it would cost accuracy and save nothing.
static bool is_parameter(const struct graph_node *n, int input) {
    return of_chain(n, input) &&
           16 * graph_value_elems(n->inputs[input]) <= graph_value_elems(n->outputs[0]);
}

// What is known about a constant: its rounded form, one as weights and one for everything else, and
// whether it overflows; each is found out once however many nodes read it.
struct known {
    struct graph_value *rounded[2];
    enum range range[2]; // as an addend or not
    bool ranged[2];
};

struct narrowing {
    struct pass_context *c;
    enum isa_dtype to;
    struct known *known; // by value id
};

static struct graph_value *shared(const struct narrowing *r, struct graph_value *v, bool mask,
                                  bool weight) {
    if (mask) return rounded(r->c, v, r->to, true, false);
    struct graph_value **made = &r->known[v->id].rounded[weight];
    if (!*made) *made = rounded(r->c, v, r->to, false, weight);
    return *made;
}

static enum range known_range(const struct narrowing *r, const struct graph_value *v, bool addend) {
    struct known *k = &r->known[v->id];
    if (!k->ranged[addend]) k->range[addend] = range_of(v, r->to, addend);
    k->ranged[addend] = true;
    return k->range[addend];
}

// True when some constant of the kernel itself does not fit the type.
static bool keeps_f32(const struct narrowing *r, const struct graph_node *n) {
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        if (v->data && replaced(v->dtype, r->to) && !of_chain(n, i) &&
            known_range(r, v, false) == RANGE_OVERFLOW)
            return true;
    }
    return false;
}

static npu_status convert(struct pass_context *c, struct graph_value *from, enum isa_dtype t,
                          struct graph_node *before, struct graph_value **out) {
    struct isa_chain none = {.imm = {0}};
    struct graph_value *in[] = {from};
    return graph_add_map(c->g, from->name, 1, in, &none, t, before, out);
}

// A number that a chain selects last, as a filled mask does, is the result: one that overflows the
// type becomes the lowest or largest value.
static void keep_selected(struct graph_node *n, enum isa_dtype t) {
    int stages = n->has_chain ? chain_length(&n->chain) : 0;
    if (!stages || n->chain.st[stages - 1].op != ISA_VOP_SEL) return;
    const struct isa_stage *last = &n->chain.st[stages - 1];
    for (int k = 0; k < ISA_IMMS; k++) {
        bool elsewhere = false;
        for (int i = 0; i < stages - 1; i++)
            elsewhere |=
                n->chain.st[i].a == ISA_SRC_IMM0 + k || n->chain.st[i].b == ISA_SRC_IMM0 + k;
        if (elsewhere || (last->a != ISA_SRC_IMM0 + k && last->b != ISA_SRC_IMM0 + k)) continue;
        float v = num_float((uint32_t)n->chain.imm[k]);
        if (isfinite(v) && isinf((double)num_round_to((int)t, v)))
            n->chain.imm[k] = (int64_t)num_bits((float)(v < 0 ? -largest(t) : largest(t)));
    }
}

static npu_status narrow_node(const struct narrowing *r, struct graph_node *n) {
    struct pass_context *c = r->c;
    enum isa_dtype t = r->to;
    bool keep = keeps_f32(r, n);
    if (keep) c->log->kept_names[c->log->kept_f32++] = n->name;
    for (int i = 0; i < n->nin; i++) {
        struct graph_value *v = n->inputs[i];
        if (!v->data && keep && v->dtype == t) {
            NPU_TRY(convert(c, v, ISA_F32, n, &n->inputs[i]));
        } else if (v->data && replaced(v->dtype, t) && !keep) {
            enum range range = known_range(r, v, is_addend(n, i));
            if (range == RANGE_MASK || (range == RANGE_FITS && !is_parameter(n, i)))
                n->inputs[i] = shared(r, v, range == RANGE_MASK, is_weight(n, i, v));
        }
    }
    for (int i = 0; i < n->nout; i++) {
        struct graph_value *v = n->outputs[i];
        if (!replaced(v->dtype, t)) continue;
        if (!keep) {
            v->dtype = t;
            keep_selected(n, t);
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
    struct narrowing r = {c, t, ARENA_ARRAY(c->scratch, struct known, (size_t)values + 1)};
    for (int i = 0; i < g->ninput; i++)
        if (replaced(g->inputs[i]->dtype, t)) g->inputs[i]->dtype = t;
    for (struct graph_node *n = g->first, *next; n; n = next) {
        next = n->next;
        NPU_TRY(narrow_node(&r, n));
    }
    return NULL;
}
