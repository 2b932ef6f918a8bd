// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder: a walk over an instruction's fields (insn_table.c).
//
// Encode: every field is checked against its width and put into 64-bit words; trailing granules
// that are zero are cut, which with "SIZE stores size - 1" and "absent is zero" drops unused
// operands. Decode: the reverse over the stored granules, the rest taken as zero; anything that the
// encoder would not have written is refused, so bytes and instruction are one to one.
#include "isa/insn.h"

#include <string.h>

#define WORDS (ISA_MAX_GRANULES * ISA_GRANULE_BYTES / 8)

static int64_t member(const struct isa_insn *in, const struct isa_field_desc *f) {
    int64_t v;
    memcpy(&v, (const char *)in + f->offset, sizeof v);
    return v;
}

static void set_member(struct isa_insn *in, const struct isa_field_desc *f, int64_t v) {
    memcpy((char *)in + f->offset, &v, sizeof v);
}

void isa_init(struct isa_insn *in, enum isa_op op) {
    memset(in, 0, sizeof *in);
    in->h.opcode = op;
    in->h.length = 1;
    const struct isa_insn_desc *d = isa_find(op);
    if (!d) return;
    for (int i = 0; i < d->nfield; i++)
        if (d->field[i].kind == ISA_KIND_SIZE) set_member(in, &d->field[i], 1);
    for (int e = 0; e < ISA_ENGINES; e++) {
        if (isa_engine_class(e) == d->cls) {
            in->h.engine = e;
            break;
        }
    }
}

struct isa_pat *isa_pat_at(struct isa_insn *in, int k) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || k < 0 || k >= d->npat) return NULL;
    return (struct isa_pat *)(void *)((char *)in + d->pat[k].offset);
}

const struct isa_pat *isa_pat_get(const struct isa_insn *in, int k) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || k < 0 || k >= d->npat) return NULL;
    return (const struct isa_pat *)(const void *)((const char *)in + d->pat[k].offset);
}

struct isa_chain *isa_chain_at(struct isa_insn *in) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || d->chain_offset < 0) return NULL;
    return (struct isa_chain *)(void *)((char *)in + d->chain_offset);
}

const struct isa_chain *isa_chain_get(const struct isa_insn *in) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || d->chain_offset < 0) return NULL;
    return (const struct isa_chain *)(const void *)((const char *)in + d->chain_offset);
}

bool isa_chain_is_int(const struct isa_insn *in) {
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d || d->chain_offset < 0) return false;
    bool any = false;
    for (int k = 0; k < d->npat; k++) {
        const struct isa_pat *p = isa_pat_get(in, k);
        if (p->space == ISA_SPACE_NONE) continue;
        if (in->h.opcode == ISA_OP_VMAP && p == &in->u.VMAP.red_out) continue;
        if (!isa_dtype_is_int((int)p->dtype)) return false;
        any = true;
    }
    return any;
}

// Largest stored value of a width below 64.
static uint64_t mask_of(int width) {
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

// The stored bits of a value; false when it does not fit.
static bool store(const struct isa_field_desc *f, int64_t v, uint64_t *bits) {
    const uint64_t mask = mask_of(f->width);
    *bits = (uint64_t)v & mask;
    switch (f->kind) {
    case ISA_KIND_RSV: return v == 0;
    case ISA_KIND_SINT: {
        if (f->width == 64) return true;
        const int64_t half = INT64_C(1) << (f->width - 1);
        return v >= -half && v < half;
    }
    case ISA_KIND_SIZE:
        *bits = (uint64_t)(v - 1) & mask;
        return v >= 1 && (uint64_t)(v - 1) <= mask;
    case ISA_KIND_F32: // also an i32: both ways of writing its bits are taken
        return v >= INT32_MIN && v <= (int64_t)UINT32_MAX;
    case ISA_KIND_UINT:
    case ISA_KIND_REG: return f->width == 64 || (v >= 0 && (uint64_t)v <= mask);
    }
    return false;
}

bool isa_field_fits(const struct isa_field_desc *f, int64_t value) {
    uint64_t bits;
    return store(f, value, &bits);
}

static int64_t load(const struct isa_field_desc *f, uint64_t bits) {
    if (f->kind == ISA_KIND_SIZE) return (int64_t)bits + 1;
    if (f->kind == ISA_KIND_SINT && f->width < 64 && bits >> (f->width - 1))
        return (int64_t)(bits | ~mask_of(f->width));
    return (int64_t)bits;
}

// Rules that tie header fields together. NULL, or what is wrong; *field is the first to blame.
static const char *header_rule(const struct isa_header *h, const char **field) {
    if (!h->wait0_sem && (h->wait0_value || (h->acquire & 1))) {
        *field = "wait0_value";
        return "semaphore bits without semaphore";
    }
    if (!h->wait1_sem && (h->wait1_value || (h->acquire & 2))) {
        *field = "wait1_value";
        return "semaphore bits without semaphore";
    }
    const int64_t sig[2][3] = {{h->sig0_sem, h->sig0_inc, h->sig0_when},
                               {h->sig1_sem, h->sig1_inc, h->sig1_when}};
    for (int i = 0; i < 2; i++) {
        if (!sig[i][0] && (sig[i][1] || sig[i][2])) {
            *field = i ? "sig1_inc" : "sig0_inc";
            return "semaphore bits without semaphore";
        }
        if (sig[i][0] && !sig[i][1]) {
            *field = i ? "sig1_inc" : "sig0_inc";
            return "signal of 0";
        }
        if (sig[i][2] > ISA_AT_DONE) {
            *field = i ? "sig1_when" : "sig0_when";
            return "reserved bits";
        }
    }
    return NULL;
}

// An absent operand's other members must be as isa_init leaves them.
static bool absent_is_clean(const struct isa_pat *p) {
    if (p->space != ISA_SPACE_NONE) return true;
    if (p->dtype || p->areg || p->sreg || p->base) return false;
    for (int d = 0; d < ISA_DIMS; d++)
        if (p->size[d] != 1 || p->stride[d] != 0) return false;
    return true;
}

static bool engine_fits(const struct isa_insn_desc *d, int64_t engine) {
    if (engine < 0 || engine >= ISA_ENGINES) return false;
    return d->cls == ISA_CLASS_ANY || isa_engine_class((int)engine) == d->cls;
}

int isa_encode(const struct isa_insn *in, uint8_t *out, const char **field) {
    uint64_t word[WORDS] = {0}, bits;
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    *field = "opcode";
    if (!d || (int64_t)d->op != in->h.opcode) return 0;
    for (int i = 0; i < d->nfield; i++) {
        const struct isa_field_desc *f = &d->field[i];
        *field = f->name;
        if (!store(f, member(in, f), &bits)) return 0;
        word[f->lo / 64] |= bits << (f->lo % 64);
    }
    for (int k = 0; k < d->npat; k++) {
        *field = d->pat[k].name;
        if (!absent_is_clean(isa_pat_get(in, k))) return 0;
    }
    int granules = ISA_MAX_GRANULES;
    while (granules > 1 && !word[2 * granules - 1] && !word[2 * granules - 2])
        granules--;

    struct isa_header h = in->h;
    h.length = granules;
    for (int i = 0; i < isa_nheader_field; i++) {
        const struct isa_field_desc *f = &isa_header_fields[i];
        int64_t v;
        memcpy(&v, (const char *)&h + (f->offset - offsetof(struct isa_insn, h)), sizeof v);
        *field = f->name;
        if (!store(f, v, &bits)) return 0;
        word[f->lo / 64] |= bits << (f->lo % 64);
    }
    *field = "engine";
    if (!engine_fits(d, h.engine)) return 0;
    if (header_rule(&h, field)) return 0;
    for (int i = 0; i < granules * ISA_GRANULE_BYTES; i++)
        out[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    *field = NULL;
    return granules;
}

// Bits of the stored payload that belong to no field.
static bool stray_bits(const struct isa_insn_desc *d, const uint64_t *word) {
    for (int w = d->bits / 64; w < WORDS; w++) {
        const int used = d->bits - 64 * w;
        if (used > 0 ? (word[w] & ~mask_of(used)) != 0 : word[w] != 0) return true;
    }
    return false;
}

int isa_decode(const uint8_t *code, size_t size, struct isa_insn *out, const char **why) {
    uint64_t word[WORDS] = {0};
    *why = "truncated";
    if (size < ISA_GRANULE_BYTES) return 0;
    const int granules = 1 + (code[1] & 15);
    const struct isa_insn_desc *d = isa_find(code[0]);
    if (!d) {
        *why = "unknown opcode";
        return 0;
    }
    if (size / ISA_GRANULE_BYTES < (size_t)granules) return 0;
    for (int i = 0; i < granules * ISA_GRANULE_BYTES; i++)
        word[i / 8] |= (uint64_t)code[i] << (8 * (i % 8));

    memset(out, 0, sizeof *out);
    *why = "reserved bits";
    for (int i = 0; i < isa_nheader_field; i++) {
        const struct isa_field_desc *f = &isa_header_fields[i];
        const int64_t v = load(f, (word[f->lo / 64] >> (f->lo % 64)) & mask_of(f->width));
        if (f->kind == ISA_KIND_RSV && v) return 0;
        set_member(out, f, v);
    }
    for (int i = 0; i < d->nfield; i++) {
        const struct isa_field_desc *f = &d->field[i];
        const int64_t v = load(f, (word[f->lo / 64] >> (f->lo % 64)) & mask_of(f->width));
        if (f->kind == ISA_KIND_RSV && v) return 0;
        set_member(out, f, v);
    }
    if (stray_bits(d, word)) return 0;
    const char *field;
    *why = header_rule(&out->h, &field);
    if (*why) return 0;
    *why = "bits of an absent operand";
    for (int k = 0; k < d->npat; k++)
        if (!absent_is_clean(isa_pat_get(out, k))) return 0;
    *why = "length not canonical";
    if (granules > 1 && !word[2 * granules - 1] && !word[2 * granules - 2]) return 0;
    *why = "engine of another class";
    if (!engine_fits(d, out->h.engine)) return 0;
    *why = NULL;
    return granules;
}
