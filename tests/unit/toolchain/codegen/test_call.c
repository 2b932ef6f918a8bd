// SPDX-License-Identifier: Apache-2.0
// Calls keep the dynamic sequence of instructions, their effective addresses and tags; repeats are
// found; fetching is counted.
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/str.h"
#include "tests/unit/toolchain/codegen/expand.h"
#include "toolchain/asm/asm.h"
#include "toolchain/codegen/repeat.h"

static uint64_t seed;
static uint32_t draw(uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 11) % n;
}

#define MOST 6000

struct program {
    struct isa_insn in[MOST];
    int n;
};

static void add(struct program *p, struct isa_insn in, int64_t tag) {
    cr_assert_lt(p->n, MOST);
    in.h.tag = tag;
    p->in[p->n++] = in;
}

// A layer of `length` different instructions: weights lie `weights` bytes on from layer to layer,
// scratch `scratch` bytes. Some of it loops.
static void layer(struct program *p, int number, int length, int64_t weights, int64_t scratch,
                  int loops) {
    for (int i = 0; i < length; i++) {
        struct isa_insn in = copy_insn(100000 + 4096 * i + number * weights,
                                       64 * i + number * scratch, ISA_ENGINE_DMA0 + i % 3);
        in.u.COPY.src.size[0] = 1 + i;
        add(p, in, 1 + 5 * number + i / 10);
        for (int k = 1; k < 12 && loops && i % loops == 0; k++) {
            in.u.COPY.src.base += 128;
            in.u.COPY.dst.base += 8192;
            add(p, in, 1 + 5 * number + i / 10);
        }
    }
}

static int64_t code_bytes(const struct codegen_stream *s) {
    struct arena *a = arena_new();
    int64_t n = (int64_t)codegen_encode(a, s).size;
    arena_free(a);
    return n;
}

static int count(const struct codegen_stream *s, enum isa_op op) {
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->insn[i].h.opcode == op;
    return n;
}

// Rolls and calls; what comes out runs as what went in, through the text of the code too. Returns
// the calls.
static int check(struct program *p, int64_t *bytes, int64_t *plain_bytes) {
    struct arena *a = arena_new();
    struct hw hw;
    hw_defaults(&hw);
    isa_init(&p->in[p->n], ISA_OP_HALT);
    struct codegen_stream s = {.insn = p->in, .n = p->n + 1};
    codegen_roll(a, &s);
    *plain_bytes = code_bytes(&s);
    codegen_call(a, &hw, 0, &s);
    *bytes = code_bytes(&s);
    struct isa_insn *out = ARENA_ARRAY(a, struct isa_insn, (size_t)p->n + 1);
    cr_assert_eq(expand(&s, out, p->n + 1), p->n + 1);
    for (int i = 0; i <= p->n; i++)
        same_insn(&p->in[i], &out[i]);
    struct span code = codegen_encode(a, &s), again;
    struct str text = {0};
    cr_assert_null(asm_print_code(code, &text));
    npu_status st =
        asm_parse_code(a, (struct span){(const uint8_t *)text.data, text.len}, "code", &again);
    cr_assert_null(st, "%s", npu_status_message(st));
    cr_assert_eq(code.size, again.size);
    cr_expect_eq(memcmp(code.data, again.data, code.size), 0);
    str_free(&text);
    int calls = count(&s, ISA_OP_CALL);
    arena_free(a);
    return calls;
}

Test(call, equal_layers_are_stored_once) {
    static struct program p;
    int64_t bytes, plain;
    for (int k = 0; k < 20; k++)
        layer(&p, k, 40, 1 << 20, 0, 0);
    cr_expect_eq(check(&p, &bytes, &plain), 20);
    cr_expect_lt(bytes, plain / 8);
}

Test(call, loops_of_a_body_start_where_the_layer_is) {
    static struct program p;
    int64_t bytes, plain;
    for (int k = 0; k < 12; k++)
        layer(&p, k, 30, 1 << 20, k % 2 ? 4096 : 0, 4);
    cr_expect_geq(check(&p, &bytes, &plain), 10);
    cr_expect_lt(bytes, plain / 4);
}

// Work of the layer before and loads of the next one, interleaved: the stretch begins anywhere.
Test(call, rotated_layers) {
    static struct program p;
    int64_t bytes, plain;
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 30; i++) {
            struct isa_insn in = copy_insn(4096 * i + (k + (i > 17)) * 65536, 64 * i, i % 3);
            in.h.engine = ISA_ENGINE_DMA0 + i % 3;
            in.u.COPY.src.size[0] = 1 + i;
            add(&p, in, 3 + 4 * (k + (i > 17)));
        }
    cr_expect_geq(check(&p, &bytes, &plain), 15);
    cr_expect_lt(bytes, plain / 6);
}

// Layers that differ in more ways than there are registers are cut into parts, or stay.
Test(call, many_ways_to_differ) {
    static struct program p;
    int64_t bytes, plain;
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < 60; i++) {
            struct isa_insn in = copy_insn(1 << 20, 0, ISA_ENGINE_DMA0);
            in.u.COPY.src.base += 64 * i * i * k + 128 * k * k * (i + 1);
            in.u.COPY.src.size[0] = 1 + i;
            add(&p, in, 1 + k);
        }
    check(&p, &bytes, &plain);
    cr_expect_leq(bytes, plain);
}

Test(call, what_does_not_repeat_stays) {
    static struct program p;
    int64_t bytes, plain;
    layer(&p, 0, 50, 0, 0, 0);
    cr_expect_eq(check(&p, &bytes, &plain), 0);
    cr_expect_eq(bytes, plain);
}

// Tags that do not move together are no call: TAGBASE is one number.
Test(call, tags_that_differ_otherwise) {
    static struct program p;
    int64_t bytes, plain;
    for (int k = 0; k < 8; k++) {
        int from = p.n;
        layer(&p, k, 40, 1 << 20, 0, 0);
        for (int i = from; i < p.n; i++)
            p.in[i].h.tag = 1 + (i - from) * (k + 1);
    }
    cr_expect_eq(check(&p, &bytes, &plain), 0);
}

Test(call, random_programs_expand_to_themselves) {
    for (int round = 0; round < 60; round++) {
        static struct program p;
        int64_t bytes, plain;
        seed = 7919u * (uint64_t)(round + 1);
        p.n = 0;
        int kinds = 1 + (int)draw(3);
        for (int k = 0; k < 14; k++) {
            int kind = (int)draw((uint32_t)kinds);
            layer(&p, k, 10 + 9 * kind, 65536 * (1 + draw(2)), 64 * draw(3), (int)draw(3) * 5);
            for (uint32_t i = draw(4); i > 0; i--) // what is in between
                add(&p, copy_insn(64 * draw(1000), 64 * draw(100), ISA_ENGINE_DMA0 + draw(4)), k);
        }
        check(&p, &bytes, &plain);
        cr_expect_leq(bytes, plain);
    }
}

// ---- repeats and fetching
// -------------------------------------------------------------------------

// Longest stretch that stands at both places.
static int shared(const int *symbol, int n, int a, int b) {
    int k = 0;
    while (a + k < n && b + k < n && symbol[a + k] == symbol[b + k])
        k++;
    return k;
}

Test(repeat, finds_every_pair) {
    for (int round = 0; round < 100; round++) {
        struct arena *a = arena_new();
        enum { N = 60 };
        int symbol[N], best[N] = {0}, found[N] = {0};
        seed = 104729u * (uint64_t)(round + 1);
        for (int i = 0; i < N; i++)
            symbol[i] = (int)draw(1 + (uint32_t)round % 5);
        struct repeats r = repeats_find(a, symbol, N, 2);
        for (int k = 0; k < r.n; k++)
            for (int i = 0; i < r.at[k].count; i++) {
                int at = r.sa[r.at[k].first + i];
                if (r.at[k].length > found[at]) found[at] = r.at[k].length;
                cr_assert_geq(shared(symbol, N, at, r.sa[r.at[k].first]), r.at[k].length);
            }
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++)
                if (i != j && shared(symbol, N, i, j) > best[i]) best[i] = shared(symbol, N, i, j);
            cr_expect_eq(found[i], best[i] < 2 ? 0 : best[i], "place %d of round %d", i, round);
        }
        arena_free(a);
    }
}

Test(fetch, straight_code_comes_once_and_loops_that_fit_too) {
    struct arena *a = arena_new();
    struct hw hw;
    hw_defaults(&hw);
    static struct program p;
    layer(&p, 0, 60, 0, 0, 0);
    isa_init(&p.in[p.n++], ISA_OP_HALT);
    struct codegen_stream s = {p.in, p.n};
    struct codegen_fetch f = codegen_fetched(a, &hw, &s);
    cr_expect_eq(f.bytes, code_bytes(&s));
    cr_expect_eq(f.misses, 1);
    // The same 60 in a loop: once where they fit, every time where they do not.
    struct isa_insn *in = ARENA_ARRAY(a, struct isa_insn, (size_t)p.n + 2);
    isa_init(&in[0], ISA_OP_LOOP);
    in[0].u.LOOP.count = 10;
    memcpy(in + 1, p.in, 60 * sizeof *in);
    isa_init(&in[61], ISA_OP_ENDL);
    isa_init(&in[62], ISA_OP_HALT);
    struct codegen_stream loop = {in, 63};
    f = codegen_fetched(a, &hw, &loop);
    cr_expect_eq(f.bytes, code_bytes(&loop));
    hw.cp_imem_bytes = 2048;
    f = codegen_fetched(a, &hw, &loop);
    cr_expect_gt(f.bytes, 9 * code_bytes(&loop));
    cr_expect_geq(f.misses, 10);
    arena_free(a);
}
