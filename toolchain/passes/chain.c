// SPDX-License-Identifier: Apache-2.0
// Joining elementwise chains.
//
// join(first, second, k): second must start from first's result. If it starts from another operand,
// its first stage is mirrored. Where second reads first's result again later, first's last stage
// saves it as TMP. Operands and immediates are shared. Chains are expected as chain_normalise()
// leaves them.
#include "toolchain/passes/chain.h"

#include <string.h>

struct chain chain_of(const struct graph_node *n) {
    struct chain out = {.c = n->chain};
    if (!n->has_chain) memset(&out.c, 0, sizeof out.c);
    for (int k = 0; k < 3; k++)
        if (n->has_chain && n->chain_in[k] >= 0) out.in[k] = n->inputs[n->chain_in[k]];
    return out;
}

int chain_length(const struct isa_chain *c) {
    int n = 0;
    while (n < ISA_STAGES && c->st[n].op != ISA_VOP_NOP)
        n++;
    return n;
}

// Puts stage `st` behind the n stages of *to; returns how many there are then.
static int keep_stage(struct isa_chain *to, int n, const struct isa_stage *st) {
    int operands = isa_vop_operands((int)st->op);
    if (st->op == ISA_VOP_NOP && !st->save) return n;
    if (st->op == ISA_VOP_NOP && n > 0) {
        to->st[n - 1].save = 1;
        return n;
    }
    to->st[n] = *st;
    if (operands < 2) to->st[n].b = 0;
    if (operands < 1) to->st[n].a = 0;
    if (st->op == ISA_VOP_NOP) to->st[n] = (struct isa_stage){ISA_VOP_MOV, ISA_SRC_ACC, 0, 1};
    return n + 1;
}

void chain_normalise(struct graph_node *n) {
    if (!n->has_chain) return;
    struct isa_chain c = {.imm = {0}};
    int stages = 0;
    for (int i = 0; i < ISA_STAGES; i++)
        stages = keep_stage(&c, stages, &n->chain.st[i]);
    bool read = false; // TMP is read by a later stage
    for (int i = stages - 1; i >= 0; i--) {
        if (c.st[i].save) {
            c.st[i].save = read;
            read = false;
        }
        read |= c.st[i].a == ISA_SRC_TMP || c.st[i].b == ISA_SRC_TMP;
    }
    for (int k = 0; k < ISA_IMMS; k++)
        if (chain_reads(&c, (enum isa_src)(ISA_SRC_IMM0 + k)))
            c.imm[k] = (int64_t)(uint32_t)n->chain.imm[k];
    n->chain = c;
}

bool chain_has_sf(const struct isa_chain *c) {
    for (int i = 0; i < chain_length(c); i++)
        if (isa_vop_is_sf((int)c->st[i].op)) return true;
    return false;
}

bool chain_reads(const struct isa_chain *c, enum isa_src src) {
    for (int i = 0; i < chain_length(c); i++)
        if (c->st[i].a == (int64_t)src || c->st[i].b == (int64_t)src) return true;
    return false;
}

bool chain_is_float(const struct graph_node *n) {
    if (isa_dtype_is_float((int)n->outputs[0]->dtype)) return true;
    for (int i = 0; i < n->nin; i++)
        if (isa_dtype_is_float((int)n->inputs[i]->dtype)) return true;
    return false;
}

// Immediates that some stage reads.
static int imms_used(const struct isa_chain *c, bool used[ISA_IMMS]) {
    int n = 0;
    for (int k = 0; k < ISA_IMMS; k++) {
        used[k] = chain_reads(c, (enum isa_src)(ISA_SRC_IMM0 + k));
        n += used[k];
    }
    return n;
}

int chain_add_imm(struct isa_chain *c, int64_t bits) {
    bool used[ISA_IMMS];
    imms_used(c, used);
    for (int k = 0; k < ISA_IMMS; k++)
        if (used[k] && c->imm[k] == bits) return k;
    for (int k = 0; k < ISA_IMMS; k++)
        if (!used[k]) {
            c->imm[k] = bits;
            return k;
        }
    return -1;
}

// The row that gives op(acc, a) when acc and a change places; NOP when there is none.
static enum isa_vop mirrored(int64_t op) {
    static const struct {
        enum isa_vop from, to;
    } rows[] = {
        {ISA_VOP_ADD, ISA_VOP_ADD},  {ISA_VOP_MUL, ISA_VOP_MUL},  {ISA_VOP_MAX, ISA_VOP_MAX},
        {ISA_VOP_MIN, ISA_VOP_MIN},  {ISA_VOP_EQ, ISA_VOP_EQ},    {ISA_VOP_NE, ISA_VOP_NE},
        {ISA_VOP_AND, ISA_VOP_AND},  {ISA_VOP_OR, ISA_VOP_OR},    {ISA_VOP_XOR, ISA_VOP_XOR},
        {ISA_VOP_FMA, ISA_VOP_FMA},  {ISA_VOP_SUB, ISA_VOP_RSUB}, {ISA_VOP_RSUB, ISA_VOP_SUB},
        {ISA_VOP_DIV, ISA_VOP_RDIV}, {ISA_VOP_RDIV, ISA_VOP_DIV}, {ISA_VOP_LT, ISA_VOP_GT},
        {ISA_VOP_GT, ISA_VOP_LT},    {ISA_VOP_LE, ISA_VOP_GE},    {ISA_VOP_GE, ISA_VOP_LE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((int64_t)rows[i].from == op) return rows[i].to;
    return ISA_VOP_NOP;
}

bool chain_start_from(struct chain *c, int k) {
    if (k == 0) return true;
    int64_t mine = ISA_SRC_IN0 + k;
    enum isa_vop op = mirrored(c->c.st[0].op);
    if (op == ISA_VOP_NOP || c->c.st[0].a != mine) return false;
    c->c.st[0].op = op;
    struct graph_value *v = c->in[0];
    c->in[0] = c->in[k];
    c->in[k] = v;
    // Names change places; the first stage's operand was mine and now is what IN0 was, which is
    // called mine.
    for (int i = 0; i < chain_length(&c->c); i++) {
        int64_t *src[2] = {&c->c.st[i].a, &c->c.st[i].b};
        for (int s = 0; s < 2; s++) {
            if (i == 0 && s == 0) continue;
            if (*src[s] == ISA_SRC_IN0 || (i == 0 && *src[s] == ISA_SRC_ACC))
                *src[s] = mine;
            else if (*src[s] == mine)
                *src[s] = ISA_SRC_IN0;
        }
    }
    return true;
}

static bool positional(const struct isa_chain *c) {
    for (int i = 0; i < chain_length(c); i++)
        if (c->st[i].op == ISA_VOP_APRED) return true;
    return chain_reads(c, ISA_SRC_ROW) || chain_reads(c, ISA_SRC_COL);
}

// Place of a value among the operands of `c`, added when it is not there; -1 when all are taken.
static int operand(struct chain *c, struct graph_value *v, bool epilogue) {
    for (int k = 0; k < 3; k++)
        if (c->in[k] == v) return k;
    for (int k = epilogue ? 1 : 0; k < 3; k++)
        if (!c->in[k]) {
            c->in[k] = v;
            return k;
        }
    return -1;
}

// An immediate of the joint chain; where all are taken, a one-element constant as an operand.
static int64_t immediate(struct graph *g, struct chain *out, int64_t bits, bool epilogue) {
    int at = chain_add_imm(&out->c, bits);
    if (at >= 0) return ISA_SRC_IMM0 + at;
    bool room = false;
    for (int k = epilogue ? 1 : 0; k < 3; k++)
        room |= !out->in[k];
    if (!g || !room) return -1;
    float *data = ARENA_NEW(g->arena, float);
    uint32_t u = (uint32_t)bits;
    memcpy(data, &u, sizeof u);
    at = operand(out, graph_add_const(g, "immediate", ISA_F32, 0, NULL, data), epilogue);
    return ISA_SRC_IN0 + at;
}

// Translates an operand of the second chain into the joint one; -1 when it does not fit.
static int64_t translate(struct graph *g, struct chain *out, const struct chain *second,
                         int64_t src, bool first_empty) {
    bool epilogue = !out->in[0];
    if (src == ISA_SRC_IN0) return first_empty ? ISA_SRC_IN0 : ISA_SRC_TMP;
    if (src == ISA_SRC_IN1 || src == ISA_SRC_IN2) {
        int at = operand(out, second->in[src - ISA_SRC_IN0], epilogue);
        return at < 0 ? -1 : ISA_SRC_IN0 + at;
    }
    if (src >= ISA_SRC_IMM0 && src <= ISA_SRC_IMM3)
        return immediate(g, out, second->c.imm[src - ISA_SRC_IMM0], epilogue);
    return src;
}

bool chain_join(struct graph *g, const struct chain *first, const struct chain *second, int k,
                struct chain *out) {
    struct chain s = *second;
    *out = *first;
    int n = chain_length(&first->c), more = chain_length(&s.c);
    if (n + more > ISA_STAGES || (chain_has_sf(&first->c) && chain_has_sf(&s.c))) return false;
    if (positional(&first->c) || positional(&s.c) || !chain_start_from(&s, k)) return false;
    bool again = chain_reads(&s.c, ISA_SRC_IN0);
    if (again && n > 0) {
        for (int i = 0; i < more; i++)
            if (s.c.st[i].save) return false; // there is one TMP
        out->c.st[n - 1].save = 1;
    }
    bool used[ISA_IMMS];
    imms_used(&out->c, used);
    for (int i = 0; i < ISA_IMMS; i++)
        if (!used[i]) out->c.imm[i] = 0;
    for (int i = 0; i < more; i++) {
        // Operands go in one after the other: an immediate counts as taken once a stage reads it.
        struct isa_stage *st = &out->c.st[n + i];
        *st = (struct isa_stage){.op = s.c.st[i].op, .save = s.c.st[i].save};
        int64_t a = translate(g, out, &s, s.c.st[i].a, n == 0);
        if (a < 0) return false;
        st->a = a;
        int64_t b = translate(g, out, &s, s.c.st[i].b, n == 0);
        if (b < 0) return false;
        st->b = b;
    }
    return true;
}

// Moves operands down over empty places: IN2 becomes IN1 when IN1 is free (IN0 of an epilogue stays
// free).
static void compact(struct chain *c, bool epilogue) {
    for (int k = epilogue ? 1 : 0; k < 2; k++) {
        if (c->in[k]) continue;
        for (int from = k + 1; from < 3; from++) {
            if (!c->in[from]) continue;
            c->in[k] = c->in[from];
            c->in[from] = NULL;
            for (int i = 0; i < chain_length(&c->c); i++) {
                if (c->c.st[i].a == ISA_SRC_IN0 + from) c->c.st[i].a = ISA_SRC_IN0 + k;
                if (c->c.st[i].b == ISA_SRC_IN0 + from) c->c.st[i].b = ISA_SRC_IN0 + k;
            }
            break;
        }
    }
}

bool chain_same_kind(const struct graph_node *n, const struct chain *c) {
    bool ints = isa_dtype_is_int((int)n->outputs[0]->dtype);
    if (n->op != GRAPH_MAP) ints = ints && isa_dtype_is_int((int)graph_own_dtype(n));
    for (int k = 0; k < 3; k++)
        if (c->in[k]) ints = ints && isa_dtype_is_int((int)c->in[k]->dtype);
    return ints == graph_chain_is_int(n);
}

bool chain_fills(const struct chain *c, const struct graph_value *y) {
    bool rank = false;
    for (int k = 0; k < 3; k++)
        rank |= c->in[k] && c->in[k]->rank == y->rank;
    for (int d = 0; d < y->rank && rank; d++) {
        bool filled = y->dims[d] == 1;
        for (int k = 0; k < 3; k++) {
            const struct graph_value *v = c->in[k];
            int at = v ? d - (y->rank - v->rank) : -1;
            if (at >= 0 && v->dims[at] == y->dims[d]) filled = true;
        }
        if (!filled) return false;
    }
    return rank;
}

void chain_store(struct graph *g, struct graph_node *n, const struct chain *chain) {
    struct chain c = *chain;
    bool epilogue = n->op != GRAPH_MAP;
    for (int k = 1; k < 3; k++) {
        if (!c.in[k] || chain_reads(&c.c, (enum isa_src)(ISA_SRC_IN0 + k))) continue;
        struct graph_value *unread = c.in[k];
        c.in[k] = NULL;
        if (!epilogue && !chain_fills(&c, n->outputs[0])) c.in[k] = unread;
    }
    compact(&c, epilogue);
    int own = epilogue ? n->nown : 0, nin = own;
    struct graph_value **in = ARENA_ARRAY(g->arena, struct graph_value *, (size_t)own + 3);
    for (int i = 0; i < own; i++)
        in[i] = n->inputs[i];
    for (int k = 0; k < 3; k++) {
        n->chain_in[k] = -1;
        if (!c.in[k]) continue;
        n->chain_in[k] = nin;
        in[nin++] = c.in[k];
    }
    n->inputs = in;
    n->nin = nin;
    if (!epilogue) n->nown = nin;
    n->chain = c.c;
    n->has_chain = epilogue ? chain_length(&c.c) > 0 : true;
}
