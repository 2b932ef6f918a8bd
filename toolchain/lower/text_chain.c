// SPDX-License-Identifier: Apache-2.0
// The elementwise chain of a node in the words that people know: bias, residual, scale, relu, clip.
#include <string.h>

#include "toolchain/lower/text.h"

static double immediate(const struct graph_node *n, int64_t src) {
    const int64_t bits = n->chain.imm[src - ISA_SRC_IMM0];
    if (graph_chain_is_int(n)) return (double)(int32_t)(uint32_t)bits;
    const uint32_t word = (uint32_t)bits;
    float f;
    memcpy(&f, &word, sizeof f);
    return (double)f;
}

static bool is_imm(int64_t src) {
    return src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3;
}

// The value that a stage reads; NULL for what the chain itself made.
static const struct graph_value *value_of(const struct graph_node *n, int64_t src) {
    if (src < ISA_SRC_IN0 || src > ISA_SRC_IN2) return NULL;
    const int k = n->chain_in[src - ISA_SRC_IN0];
    return k >= 0 ? n->inputs[k] : NULL;
}

static void add_operand(struct text_term *t, const struct graph_node *n, int64_t src) {
    const struct graph_value *v = value_of(n, src);
    if (!v && !is_imm(src)) return;
    t->operand[t->noperand].value = v;
    t->operand[t->noperand++].imm = v ? 0 : immediate(n, src);
}

// Whether v has one element for each channel of n's result (a product: its last dimension).
static bool by_channel(const struct graph_node *n, const struct graph_value *v) {
    const struct graph_value *y = n->outputs[0];
    const int channel = n->op == GRAPH_MATMUL ? y->rank - 1 : 1;
    return y->rank > channel && graph_value_elems(v) == y->dims[channel];
}

static const char *of_addition(const struct graph_node *n, const struct graph_value *v) {
    if (n->op == GRAPH_MAP || !v) return "add";
    const bool repeats = graph_value_elems(v) < graph_value_elems(n->outputs[0]);
    if (v->data) return repeats || by_channel(n, v) ? "bias" : "add";
    return repeats ? "add" : "residual";
}

static const char *of_product(const struct graph_node *n, const struct graph_value *v) {
    return n->op != GRAPH_MAP && v && v->data ? "scale" : "mul";
}

static const struct isa_stage *next_stage(const struct graph_node *n, int s) {
    for (s++; s < ISA_STAGES; s++)
        if (n->chain.st[s].op != ISA_VOP_NOP) return &n->chain.st[s];
    return NULL;
}

// max with an immediate below a min with one, both of the running value: relu, relu6, clip.
static bool bounds(const struct graph_node *n, int s, struct text_term *t, bool *took_next) {
    const struct isa_stage *st = &n->chain.st[s], *next = next_stage(n, s);
    *took_next = false;
    if (st->op != ISA_VOP_MAX || !is_imm(st->a)) return false;
    const double low = immediate(n, st->a);
    const bool zero = !(low < 0) && !(low > 0);
    if (next && !st->save && next->op == ISA_VOP_MIN && is_imm(next->a)) {
        const double high = immediate(n, next->a);
        *took_next = true;
        *t = (struct text_term){.name = "clip"};
        if (zero && !(high < 6) && !(high > 6)) {
            t->name = "relu6";
            return true;
        }
        add_operand(t, n, st->a);
        add_operand(t, n, next->a);
        return true;
    }
    *t = (struct text_term){.name = "relu"};
    return zero;
}

// An activation and a product with another value: one term, its operand the gate.
static bool gates(struct text_term *activation, const struct text_term *product) {
    static const struct {
        const char *activation, *both;
    } both[] = {{"gelu", "geglu"}, {"silu", "swiglu"}, {"relu", "reglu"}, {"sigmoid", "glu"}};
    if (strcmp(product->name, "mul") || product->noperand != 1 || !product->operand[0].value ||
        product->operand[0].value->data || activation->noperand)
        return false;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        if (strcmp(activation->name, both[i].activation)) continue;
        *activation = *product;
        activation->name = both[i].both;
        activation->gated = true;
        return true;
    }
    return false;
}

int text_chain(const struct graph_node *n, struct text_term terms[TEXT_TERMS]) {
    int count = 0;
    bool skip = false;
    for (int s = 0; n->has_chain && s < ISA_STAGES; s++) {
        const struct isa_stage *st = &n->chain.st[s];
        struct text_term *t = &terms[count];
        if (st->op == ISA_VOP_NOP) continue;
        if (skip) {
            skip = false;
            continue;
        }
        if (bounds(n, s, t, &skip)) {
            count++;
            continue;
        }
        const int operands = isa_vop_operands((int)st->op);
        *t = (struct text_term){.name = isa_vop_name((int)st->op)};
        if (operands > 0) add_operand(t, n, st->a);
        if (operands > 1) add_operand(t, n, st->b);
        if (st->op == ISA_VOP_MOV && !t->noperand) continue;
        if (st->op == ISA_VOP_ADD) t->name = of_addition(n, value_of(n, st->a));
        if (st->op == ISA_VOP_MUL)
            t->name = st->a == ISA_SRC_ACC ? "square" : of_product(n, value_of(n, st->a));
        if (st->op == ISA_VOP_SEL) t->name = "where";
        if (count && gates(t - 1, t)) continue;
        count++;
    }
    return count;
}
