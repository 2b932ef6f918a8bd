// SPDX-License-Identifier: Apache-2.0
// From products q k to probabilities: which stages a tile of scores goes through, and how they are
// cut into instructions.
//
//   score = s * scale; cap * tanh(score / cap); + floating mask; integer mask 0 or outside the
//   window: fill
//   power = exp(score - row's maximum)
//
// The window's limits are affine in row and column. One is the chain's predicate stage; when both
// cross a tile, the second is computed from the row's and column's numbers.
#include "toolchain/lower/attention.h"

#include <string.h>

bool attn_even(const struct attn *a) {
    return a->all_keys || (!a->low_on && !a->high_on);
}

struct lower_range attn_keys(const struct attn *a, int64_t m0, int64_t rows) {
    struct lower_range r = {0, a->s};
    if (attn_even(a)) return r;
    if (a->low_on) r.lo = lower_max(0, m0 + a->low);
    if (a->high_on) r.hi = lower_min(a->s, m0 + rows + a->high);
    if (r.lo >= r.hi) { // nobody sees anything: one hidden key says so
        r.lo = lower_max(0, lower_min(r.lo, a->s - 1));
        r.hi = r.lo + 1;
    }
    return r;
}

int64_t attn_pairs(const struct attn *a) {
    int64_t sum = 0;
    if (attn_even(a)) return a->m * a->s;
    for (int64_t i = 0; i < a->m; i++) {
        int64_t lo = a->low_on ? lower_max(0, i + a->low) : 0,
                hi = a->high_on ? lower_min(a->s - 1, i + a->high) : a->s - 1;
        sum += lower_max(0, hi - lo + 1);
    }
    return sum;
}

struct attn_edge attn_edge_of(const struct attn *a, int64_t m0, int64_t rows,
                              struct lower_range k) {
    struct attn_edge e = {.low_base = k.lo - m0 - a->low, .high_base = m0 + a->high - k.lo};
    // The last row's first key, the first row's last one.
    e.low = a->low_on && e.low_base < rows - 1;
    e.high = a->high_on && e.high_base < k.hi - k.lo - 1;
    return e;
}

// The pass that takes that many more stages and immediates: the last one, or a new one.
static struct attn_pass *room(struct attn_scores *s, int stages, int imms, bool special,
                              bool pred) {
    struct attn_pass *p = &s->pass[s->n - 1];
    if (p->stages + stages <= ISA_STAGES && p->imms + imms <= ISA_IMMS &&
        !(special && p->special) && !(pred && p->pred))
        return p;
    NPU_ASSERT(s->n < ATTN_PASSES);
    p = &s->pass[s->n++];
    return p;
}

static enum isa_src imm(struct attn_pass *p, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < p->imms; i++)
        if (p->chain.imm[i] == bits) return (enum isa_src)(ISA_SRC_IMM0 + i);
    NPU_ASSERT(p->imms < ISA_IMMS);
    p->chain.imm[p->imms] = bits;
    return (enum isa_src)(ISA_SRC_IMM0 + p->imms++);
}

static void stage(struct attn_pass *p, enum isa_vop op, enum isa_src a, enum isa_src b) {
    NPU_ASSERT(p->stages < ISA_STAGES);
    p->chain.st[p->stages++] = (struct isa_stage){.op = op, .a = a, .b = b};
    p->special = p->special || isa_vop_is_sf((int)op);
}

// Keeps the score so far; returns where.
static enum isa_src keep_score(struct attn_pass *p) {
    if (!p->stages) return ISA_SRC_IN0;
    p->chain.st[p->stages - 1].save = 1;
    return ISA_SRC_TMP;
}

static void scale_and_mask(struct attn_scores *s, const struct attn *a) {
    bool scales = a->scale < 1 || a->scale > 1, adds = a->has_mask && !a->keep;
    struct attn_pass *p = room(s, 2, 1, false, false);
    if (scales && adds && !(a->cap > 0)) {
        stage(p, ISA_VOP_FMA, imm(p, a->scale), ISA_SRC_IN1);
        p->mask = true;
        return;
    }
    if (scales) stage(p, ISA_VOP_MUL, imm(p, a->scale), ISA_SRC_NONE);
    if (a->cap > 0) {
        p = room(s, 3, 1, true, false);
        stage(p, ISA_VOP_DIV, imm(p, a->cap), ISA_SRC_NONE);
        stage(p, ISA_VOP_TANH, ISA_SRC_NONE, ISA_SRC_NONE);
        stage(p, ISA_VOP_MUL, imm(p, a->cap), ISA_SRC_NONE);
    }
    if (!adds) return;
    p = room(s, 1, 0, false, false);
    stage(p, ISA_VOP_ADD, ISA_SRC_IN1, ISA_SRC_NONE);
    p->mask = true;
}

static void predicate(struct attn_scores *s, float fill, int64_t base, int64_t row) {
    struct attn_pass *p = room(s, 1, 1, false, true);
    stage(p, ISA_VOP_APRED, imm(p, fill), ISA_SRC_NONE);
    p->pred = true;
    p->pred_base = base;
    p->pred_row = row;
    p->pred_col = -row;
}

static void hide(struct attn_scores *s, const struct attn *a, const struct attn_edge *e) {
    if (a->has_mask && a->keep) {
        struct attn_pass *p = room(s, 2, 1, false, false);
        enum isa_src score = keep_score(p);
        stage(p, ISA_VOP_MOV, ISA_SRC_IN1, ISA_SRC_NONE);
        stage(p, ISA_VOP_SEL, score, imm(p, a->fill));
        p->mask = true;
    }
    if (e->low) predicate(s, a->fill, e->low_base, -1);
    if (e->high && !e->low) predicate(s, a->fill, e->high_base, 1);
    if (!e->high || !e->low) return;
    struct attn_pass *p = room(s, 4, 2, false, false);
    enum isa_src score = keep_score(p);
    stage(p, ISA_VOP_MOV, ISA_SRC_COL, ISA_SRC_NONE);
    stage(p, ISA_VOP_SUB, ISA_SRC_ROW, ISA_SRC_NONE);
    stage(p, ISA_VOP_LE, imm(p, (float)e->high_base), ISA_SRC_NONE);
    stage(p, ISA_VOP_SEL, score, imm(p, a->fill));
}

void attn_scores_of(const struct attn *a, const struct attn_edge *e, struct attn_scores *out) {
    memset(out, 0, sizeof *out);
    out->n = 1;
    scale_and_mask(out, a);
    hide(out, a, e);
    const struct attn_pass *last = &out->pass[0];
    out->stored = out->n > 1 || last->special || last->stages + 2 > ISA_STAGES;
    if (!out->stored) out->power = *last;
    stage(&out->power, ISA_VOP_SUB, ISA_SRC_IN2, ISA_SRC_NONE);
    stage(&out->power, ISA_VOP_EXP, ISA_SRC_NONE, ISA_SRC_NONE);
}
