// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder: layout of known instructions, round trips of random ones over every row,
// refusal of everything that is not canonical.
#include <criterion/criterion.h>
#include <string.h>

#include "isa/insn.h"
#include "tests/unit/isa/random_insn.h"

#define BYTES (ISA_MAX_GRANULES * ISA_GRANULE_BYTES)

static int encode(const struct isa_insn *in, uint8_t *out) {
    const char *field;
    return isa_encode(in, out, &field);
}

static uint64_t word_at(const uint8_t *bytes, int w) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | bytes[8 * w + i];
    return v;
}

static const char *refusal(const uint8_t *bytes, size_t size) {
    struct isa_insn in;
    const char *why = NULL;
    cr_expect(isa_decode(bytes, size, &in, &why) == 0);
    return why ? why : "accepted";
}

Test(insn, header_layout) {
    struct isa_insn in;
    uint8_t b[BYTES];
    isa_init(&in, ISA_OP_SYNC);
    in.h.engine = ISA_ENGINE_VEC;
    in.h.wait0_sem = 3;
    in.h.wait0_value = 0xabc;
    in.h.acquire = 1;
    in.h.sig0_sem = 4;
    in.h.sig0_inc = 5;
    in.h.sig0_when = ISA_AT_DONE;
    in.h.tag = 0x12345678;
    cr_assert(encode(&in, b) == 1);
    cr_expect(word_at(b, 0) ==
              (0x01u | 0u << 8 | 6u << 12 | 3u << 16 | UINT64_C(0xabc) << 24 | UINT64_C(1) << 56));
    cr_expect(word_at(b, 1) == (4u | 5u << 8 | 2u << 12 | UINT64_C(0x12345678) << 32));
}

Test(insn, pattern_layout) {
    struct isa_insn in;
    uint8_t b[BYTES];
    isa_init(&in, ISA_OP_MM);
    in.u.MM.a = (struct isa_pat){.space = ISA_SPM,
                                 .dtype = ISA_F16,
                                 .areg = 5,
                                 .sreg = 6,
                                 .base = 0x89abcdef,
                                 .size = {1, 2, 3, 4, 65536},
                                 .stride = {-1, 0x123456, 3, 4, 5}};
    cr_assert(encode(&in, b) == 4); // header, fields, a; b and d are absent
    cr_expect(word_at(b, 4) == (1u | 2u << 3 | 5u << 8 | 6u << 12 | UINT64_C(0xffff) << 16 |
                                UINT64_C(0x89abcdef) << 32));
    cr_expect(word_at(b, 5) == (UINT64_C(0xffffff) | UINT64_C(0x123456) << 24));
    cr_expect(word_at(b, 6) == (3u | 4u << 24 | UINT64_C(1) << 48));
    cr_expect(word_at(b, 7) == (5u | UINT64_C(2) << 24 | UINT64_C(3) << 40));

    isa_init(&in, ISA_OP_FILL);
    in.h.engine = ISA_ENGINE_DMA1;
    in.u.FILL.dst = (struct isa_pat){.space = ISA_DRAM,
                                     .dtype = ISA_F32,
                                     .base = INT64_C(0xfedcba987654),
                                     .size = {1 << 24, 1, 1, 1, 7},
                                     .stride = {1, 0, 0, 0, -(INT64_C(1) << 39)}};
    cr_assert(encode(&in, b) == 5);
    cr_expect(word_at(b, 4) == (3u | 1u << 3 | UINT64_C(0xfedcba987654) << 16));
    cr_expect(word_at(b, 5) == (UINT64_C(0xffffff) | UINT64_C(1) << 24));
    cr_expect(word_at(b, 6) == 0 && word_at(b, 8) == 0);
    cr_expect(word_at(b, 9) == (6u | UINT64_C(1) << 63));
}

Test(insn, chain_layout) {
    struct isa_insn in;
    uint8_t b[BYTES];
    isa_init(&in, ISA_OP_VMAP);
    in.u.VMAP.chain.st[7] = (struct isa_stage){ISA_VOP_COS, ISA_SRC_IMM1, ISA_SRC_COL, 1};
    in.u.VMAP.chain.imm[3] = INT64_C(0xbf800000);
    cr_assert(encode(&in, b) == 4);
    cr_expect(word_at(b, 5) == (UINT64_C(51) | 7u << 6 | 11u << 10 | 1u << 14) << 48);
    cr_expect(word_at(b, 7) == UINT64_C(0xbf800000) << 32);
    in.u.VMAP.chain.imm[3] = -1; // an i32, either way of writing it
    cr_assert(encode(&in, b) == 4);
    cr_expect(word_at(b, 7) == UINT64_C(0xffffffff) << 32);
}

Test(insn, absent_operands_cost_nothing) {
    struct isa_insn in;
    uint8_t b[BYTES];
    for (int i = 0; i < isa_ninsn; i++) {
        isa_init(&in, isa_insns[i].op);
        cr_expect(encode(&in, b) == 1, "%s", isa_insns[i].name);
    }
}

Test(insn, tables) {
    cr_expect(isa_find(0) == NULL && isa_find(0xff) == NULL && isa_find(0x1030) == NULL);
    for (int i = 0; i < isa_ninsn; i++) {
        const struct isa_insn_desc *d = &isa_insns[i];
        cr_expect(isa_find((unsigned)d->op) == d);
        cr_expect(isa_find_text(d->text, strlen(d->text)) == d);
        cr_expect(d->bits >= 128 && d->bits <= 8 * BYTES);
        int pats = 0;
        for (int f = 0; f < d->nfield; f++) {
            cr_expect(d->field[f].lo + d->field[f].width <= d->bits);
            cr_expect(d->field[f].name != NULL);
            const char *dot = strchr(d->field[f].name, '.');
            if (dot && strcmp(dot, ".space") == 0) pats++;
            if (f) cr_expect(d->field[f].width > 0);
        }
        cr_expect(pats == d->npat, "%s", d->name);
    }
    cr_expect(isa_find(ISA_OP_VMAP)->chain_offset == (int)offsetof(struct isa_insn, u.VMAP.chain));
    cr_expect(isa_find(ISA_OP_MM)->chain_offset == -1 && isa_find(ISA_OP_MM)->npat == 3);
}

// No bit of an instruction belongs to two fields, and every payload bit belongs to one.
Test(insn, fields_tile_the_encoding) {
    for (int i = 0; i < isa_ninsn; i++) {
        const struct isa_insn_desc *d = &isa_insns[i];
        unsigned char used[8 * BYTES] = {0};
        for (int f = 0; f < isa_nheader_field; f++)
            for (int b = 0; b < isa_header_fields[f].width; b++)
                used[isa_header_fields[f].lo + b]++;
        for (int f = 0; f < d->nfield; f++)
            for (int b = 0; b < d->field[f].width; b++)
                used[d->field[f].lo + b]++;
        for (int b = 0; b < d->bits; b++)
            cr_assert(used[b] == 1, "%s bit %d in %d fields", d->name, b, used[b]);
    }
}

Test(insn, random_round_trips) {
    uint64_t state = 42;
    for (int i = 0; i < isa_ninsn; i++) {
        for (int n = 0; n < 2000; n++) {
            struct isa_insn in, back;
            uint8_t b[BYTES], again[BYTES];
            const char *field = "", *why = "";
            random_insn(&in, i, &state);
            const int g = isa_encode(&in, b, &field);
            cr_assert(g > 0, "%s.%s", isa_insns[i].name, field);
            in.h.length = g;
            cr_assert(isa_decode(b, sizeof b, &back, &why) == g, "%s: %s", isa_insns[i].name, why);
            cr_assert(memcmp(&in, &back, sizeof in) == 0, "%s", isa_insns[i].name);
            cr_assert(encode(&back, again) == g && memcmp(b, again, 16 * (size_t)g) == 0);
            cr_assert(strcmp(refusal(b, 16 * (size_t)g - 1), "truncated") == 0);
        }
    }
}

Test(insn, mutated_bytes_are_refused_or_canonical) {
    uint64_t state = 7;
    int accepted = 0;
    for (int n = 0; n < 300000; n++) {
        struct isa_insn in;
        uint8_t b[BYTES], again[BYTES];
        const char *why;
        random_insn(&in, (int)(random_next(&state) % (uint64_t)isa_ninsn), &state);
        const int g = encode(&in, b);
        for (int i = 16 * g; i < BYTES; i++)
            b[i] = (uint8_t)random_next(&state);
        for (uint64_t flips = random_next(&state) % 4; flips-- > 0;) {
            const uint64_t bit = random_next(&state) % (uint64_t)(128 * g);
            b[bit / 8] = (uint8_t)(b[bit / 8] ^ 1 << bit % 8);
        }
        const size_t size = random_next(&state) % (BYTES + 1);
        const int got = isa_decode(b, size, &in, &why);
        if (!got) {
            cr_assert(why != NULL);
            continue;
        }
        accepted++;
        cr_assert(encode(&in, again) == got && memcmp(b, again, 16 * (size_t)got) == 0);
    }
    cr_expect(accepted > 30000);
}

Test(insn, refusals_name_the_reason) {
    struct isa_insn in;
    uint8_t b[BYTES], c[BYTES];
    isa_init(&in, ISA_OP_MM);
    in.u.MM.init = 1;
    in.u.MM.a = (struct isa_pat){.space = 1, .dtype = 2, .base = 64, .size = {1, 1, 1, 1, 1}};
    cr_assert(encode(&in, b) == 3);
#define MUTATED(index, value, reason)                                                        \
    do {                                                                                     \
        memcpy(c, b, sizeof c);                                                              \
        c[index] = (uint8_t)(value);                                                         \
        cr_expect(strcmp(refusal(c, 48), reason) == 0, "%s is not " reason, refusal(c, 48)); \
    } while (0)
    memset(b + 48, 0, sizeof b - 48);
    MUTATED(0, 0xee, "unknown opcode");
    MUTATED(1, (b[1] & 0xf0) | 3, "truncated");
    MUTATED(1, (b[1] & 0x0f) | ISA_ENGINE_VEC << 4, "engine of another class");
    MUTATED(1, (b[1] & 0x0f) | 15 << 4, "engine of another class");
    MUTATED(3, 1, "semaphore bits without semaphore");
    MUTATED(9, 1, "semaphore bits without semaphore");
    MUTATED(8, 9, "signal of 0");
    MUTATED(16, 3, "reserved bits");
    MUTATED(32, 0, "bits of an absent operand");
#undef MUTATED
    cr_expect(strcmp(refusal(b, 47), "truncated") == 0);
    cr_expect(strcmp(refusal(b, 0), "truncated") == 0);
    memcpy(c, b, sizeof c);
    c[1] = (uint8_t)((c[1] & 0xf0) | 4);
    cr_expect(strcmp(refusal(c, sizeof c), "length not canonical") == 0);
    c[1] = (uint8_t)((c[1] & 0xf0) | 15); // payload beyond the operands
    c[255] = 1;
    cr_expect(strcmp(refusal(c, sizeof c), "reserved bits") == 0);
}

Test(insn, encoder_names_the_field) {
    struct isa_insn in;
    uint8_t b[BYTES];
    const char *field;
    isa_init(&in, ISA_OP_MM);
    in.u.MM.zero_a = 40000;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "zero_a") == 0);
    in.u.MM.zero_a = 0;
    in.u.MM.b.space = ISA_SPM;
    in.u.MM.b.size[2] = 65537;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "b.size2") == 0);
    in.u.MM.b.size[2] = 0;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "b.size2") == 0);
    in.u.MM.b.size[2] = 1;
    in.u.MM.d.base = 4;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "d") == 0);
    in.u.MM.d.base = 0;
    in.h.engine = ISA_ENGINE_VEC;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "engine") == 0);
    in.h.engine = ISA_ENGINE_MXU;
    in.h.sig1_inc = 1;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "sig1_inc") == 0);
    in.h.opcode = 0x140;
    cr_expect(isa_encode(&in, b, &field) == 0 && strcmp(field, "opcode") == 0);
}

Test(insn, facts) {
    cr_expect(isa_dtype_bits(ISA_I4) == 4 && isa_dtype_bits(ISA_I64) == 64);
    cr_expect(isa_dtype_bits(7) == 0 && isa_dtype_bits(-1) == 0 && isa_dtype_bits(1000) == 0);
    cr_expect(isa_dtype_parse("bf16") == ISA_BF16 && isa_dtype_parse("f15") == 0);
    cr_expect(isa_dtype_is_float(ISA_F8E5M2) && !isa_dtype_is_float(ISA_I8));
    cr_expect(isa_dtype_is_int(ISA_BOOL) && !isa_dtype_is_int(0));
    cr_expect(isa_engine_class(ISA_ENGINE_DMA3) == ISA_CLASS_DMA && isa_engine_name(99) == NULL);
    cr_expect(isa_vop_parse("rsqrt") == ISA_VOP_RSQRT && isa_vop_parse("?") == -1);
    cr_expect(isa_vop_operands(ISA_VOP_FMA) == 2 && isa_vop_is_sf(ISA_VOP_EXP));

    struct isa_pat p = {.space = ISA_SPM,
                        .dtype = ISA_F32,
                        .base = 100,
                        .size = {4, 3, 1, 1, 1},
                        .stride = {1, -10, 0, 0, 0}};
    int64_t lo, hi;
    isa_pat_extent(&p, &lo, &hi);
    cr_expect(isa_pat_elems(&p) == 12 && lo == 100 - 80 && hi == 100 + 16);
    p.dtype = ISA_I4;
    p.stride[1] = 5;
    isa_pat_extent(&p, &lo, &hi);
    cr_expect(lo == 100 && hi == 107); // elements 0..13: 7 bytes
    for (int d = 0; d < ISA_DIMS; d++) {
        p.size[d] = 1 << 24;
        p.stride[d] = -(INT64_C(1) << 39);
    }
    isa_pat_extent(&p, &lo, &hi); // no overflow
    cr_expect(lo < -(INT64_C(1) << 57));
    cr_expect(isa_pat_elems(&p) == INT64_C(1) << 60);
}
