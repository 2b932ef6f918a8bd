// SPDX-License-Identifier: Apache-2.0
//
// The table of activation functions, in the form that the pass `activation` writes.

#include "toolchain/graph/act.h"

#include <string.h>

#define IMM0 ISA_SRC_IMM0
#define IMM1 ISA_SRC_IMM1
#define IMM2 ISA_SRC_IMM2
#define IN0 ISA_SRC_IN0

const struct graph_act graph_acts[] = {
    {"identity", "bilinear", 0, {{0}}, {0}},
    {"relu", "reglu", 1, {{ISA_VOP_MAX, IMM0, 0, 0}}, {0}},
    {"sigmoid", "glu", 1, {{ISA_VOP_SIGMOID, 0, 0, 0}}, {0}},
    {"tanh", "gtu", 1, {{ISA_VOP_TANH, 0, 0, 0}}, {0}},
    {"gelu", "geglu", 1, {{ISA_VOP_GELU, 0, 0, 0}}, {0}},
    {"gelu_tanh",
     "geglu",
     5,
     {{ISA_VOP_MUL, ISA_SRC_ACC, 0, 0},
      {ISA_VOP_FMA, IMM0, IMM1, 0},
      {ISA_VOP_MUL, IN0, 0, 0},
      {ISA_VOP_SIGMOID, 0, 0, 0},
      {ISA_VOP_MUL, IN0, 0, 0}},
     {1.5957691216057308 * 0.044715, 1.5957691216057308}},
    {"gelu_quick",
     "geglu",
     3,
     {{ISA_VOP_MUL, IMM0, 0, 0}, {ISA_VOP_SILU, 0, 0, 0}, {ISA_VOP_MUL, IMM1, 0, 0}},
     {1.702, 1 / 1.702}},
    {"silu", "swiglu", 1, {{ISA_VOP_SILU, 0, 0, 0}}, {0}},
    {"hardswish",
     "hswiglu",
     5,
     {{ISA_VOP_ADD, IMM0, 0, 0},
      {ISA_VOP_MAX, IMM1, 0, 0},
      {ISA_VOP_MIN, IMM2, 0, 0},
      {ISA_VOP_MUL, IN0, 0, 0},
      {ISA_VOP_DIV, IMM2, 0, 0}},
     {3, 0, 6}},
};
const int graph_act_count = (int)(sizeof graph_acts / sizeof *graph_acts);

int graph_act_parse(const char *text) {
    for (int i = 0; i < graph_act_count; i++)
        if (!strcmp(graph_acts[i].text, text)) return i;
    return -1;
}

static int64_t bits_of(double x) {
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

struct isa_chain graph_act_chain(int act) {
    struct isa_chain c;
    memset(&c, 0, sizeof c);
    memcpy(c.st, graph_acts[act].st, (size_t)graph_acts[act].stages * sizeof *c.st);
    for (int k = 0; k < ISA_IMMS; k++)
        c.imm[k] = bits_of(graph_acts[act].imm[k]);
    return c;
}

// Both operands name the same: immediates by their value. The first stage's acc is IN0.
static bool same_operand(const struct isa_chain *a, int64_t x, const struct isa_chain *b, int64_t y,
                         bool first) {
    bool imm = x >= IMM0 && x <= ISA_SRC_IMM3 && y >= IMM0 && y <= ISA_SRC_IMM3;
    if (imm) return a->imm[x - IMM0] == b->imm[y - IMM0];
    if (first && x == ISA_SRC_ACC) x = IN0;
    if (first && y == ISA_SRC_ACC) y = IN0;
    return x == y;
}

static bool same(const struct isa_chain *a, const struct isa_chain *b) {
    for (int i = 0; i < ISA_STAGES; i++) {
        const struct isa_stage *s = &a->st[i], *t = &b->st[i];
        int operands = isa_vop_operands((int)s->op);
        if (s->op != t->op || s->save != t->save) return false;
        if (operands > 0 && !same_operand(a, s->a, b, t->a, i == 0)) return false;
        if (operands > 1 && !same_operand(a, s->b, b, t->b, i == 0)) return false;
    }
    return true;
}

int graph_act_find(const struct isa_chain *c) {
    for (int i = 0; i < graph_act_count; i++) {
        struct isa_chain known = graph_act_chain(i);
        if (same(c, &known)) return i;
    }
    return -1;
}
