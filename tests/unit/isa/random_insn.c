// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/isa/random_insn.h"

#include <string.h>

uint64_t random_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static int64_t random_value(const struct isa_field_desc *f, uint64_t *state) {
    const uint64_t r = random_next(state);
    int width = f->width;
    if (random_next(state) % 2) width = (int)(r >> 58) % f->width + 1;
    uint64_t bits = random_next(state) >> (64 - width);
    if (f->kind == ISA_KIND_SIZE) return (int64_t)bits + 1;
    if (f->kind == ISA_KIND_SINT && f->width < 64)
        return (int64_t)(bits << (64 - f->width)) >> (64 - f->width);
    return (int64_t)bits;
}

static void clear_pattern(struct isa_pat *p) {
    memset(p, 0, sizeof *p);
    for (int d = 0; d < ISA_DIMS; d++)
        p->size[d] = 1;
}

void random_insn(struct isa_insn *in, int index, uint64_t *state) {
    const struct isa_insn_desc *d = &isa_insns[index];
    isa_init(in, d->op);
    for (int i = 0; i < d->nfield; i++) {
        const struct isa_field_desc *f = &d->field[i];
        if (f->kind == ISA_KIND_RSV || random_next(state) % 4 == 0) continue;
        const int64_t v = random_value(f, state);
        memcpy((char *)in + f->offset, &v, sizeof v);
    }
    for (int k = 0; k < d->npat; k++) {
        struct isa_pat *p = isa_pat_at(in, k);
        if (p->space == ISA_SPACE_NONE || random_next(state) % 4 == 0) clear_pattern(p);
    }
    struct isa_header *h = &in->h;
    const uint64_t r = random_next(state);
    do {
        h->engine = (int64_t)(random_next(state) % ISA_ENGINES);
    } while (d->cls != ISA_CLASS_ANY && isa_engine_class((int)h->engine) != d->cls);
    if (r & 1) {
        h->wait0_sem = 1 + (int64_t)(random_next(state) % 255);
        h->wait0_value = (int64_t)(random_next(state) % 4096);
        h->acquire |= (int64_t)(r >> 1 & 1);
    }
    if (r & 4) {
        h->wait1_sem = 1 + (int64_t)(random_next(state) % 255);
        h->wait1_value = (int64_t)(random_next(state) % 4096);
        h->acquire |= (int64_t)(r >> 2 & 2);
    }
    if (r & 16) {
        h->sig0_sem = 1 + (int64_t)(random_next(state) % 255);
        h->sig0_inc = 1 + (int64_t)(random_next(state) % 15);
        h->sig0_when = (int64_t)(random_next(state) % 3);
    }
    if (r & 32) {
        h->sig1_sem = 1 + (int64_t)(random_next(state) % 255);
        h->sig1_inc = 1 + (int64_t)(random_next(state) % 15);
        h->sig1_when = (int64_t)(random_next(state) % 3);
    }
    if (r & 64) h->tag = (int64_t)(random_next(state) >> 32);
    if (r & 128) h->pred = (int64_t)(r >> 60);
    h->irq = (int64_t)(r >> 8 & 1);
    h->crc = (int64_t)(r >> 9 & 1);
    h->trace = (int64_t)(r >> 10 & 1);
}
