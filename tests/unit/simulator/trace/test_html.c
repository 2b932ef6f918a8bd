// SPDX-License-Identifier: Apache-2.0
//
// The HTML report as a file: its columns say what the log says, and no name leaves its element.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/base/alloc.h"
#include "runtime/base/file.h"
#include "simulator/trace/pack.h"
#include "simulator/trace/trace.h"

#define NASTY "a</script><img src=x onerror=alert(1)>&amp;\"'\n"

static bool lookup(void *ctx, uint32_t tag, struct trace_name *out) {
    (void)ctx;
    *out = (struct trace_name){.layer = (int)tag, .name = NASTY, .op = "op", .node = NASTY};
    return tag < 3;
}

static const char *temporary(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "/tmp/npu_test_%d_%s", (int)getpid(), name);
    return path;
}

static int digit(char c) {
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(all, c);
    return at ? (int)(at - all) : 0;
}

// What stands in the element of this id, unpacked; its size in *size.
static uint8_t *column(const char *page, const char *id, size_t *size) {
    char start[64];
    snprintf(start, sizeof start, "id=\"c-%s\">", id);
    const char *at = strstr(page, start);
    cr_assert_not_null(at, "no column %s", id);
    at += strlen(start);
    const size_t n = strcspn(at, "<");
    cr_assert_eq(n % 4, 0);
    uint8_t *packed = base_alloc(n + 4);
    size_t npacked = 0;
    for (size_t i = 0; i < n; i += 4) {
        const int v =
            digit(at[i]) << 18 | digit(at[i + 1]) << 12 | digit(at[i + 2]) << 6 | digit(at[i + 3]);
        packed[npacked++] = (uint8_t)(v >> 16);
        if (at[i + 2] != '=') packed[npacked++] = (uint8_t)(v >> 8);
        if (at[i + 3] != '=') packed[npacked++] = (uint8_t)v;
    }
    uLongf room = 1 << 22;
    uint8_t *raw = base_alloc(room);
    cr_assert_eq(uncompress(raw, &room, packed, npacked), Z_OK, "column %s", id);
    base_free(packed);
    *size = room;
    return raw;
}

static uint64_t number(const uint8_t **at) {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        v |= (uint64_t)(**at & 127) << shift;
        if (*(*at)++ < 128) return v;
    }
}

static int64_t zigzag(uint64_t u) {
    return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

Test(html, numbers_of_every_size_come_back) {
    struct trace_out *out;
    struct trace_pack *p;
    const char *path = temporary("pack.html");
    cr_assert_null(trace_out_open(path, &out));
    str_puts(trace_out_text(out), "<x id=\"c-x\">");
    cr_assert_null(trace_pack_open(out, &p));
    for (int bits = 0; bits < 64; bits++) {
        trace_pack_number(p, (UINT64_C(1) << bits) - 1);
        trace_pack_number(p, UINT64_C(1) << bits);
    }
    for (uint64_t i = 0; i < 50000; i++)
        trace_pack_signed(p, (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15)) >> (i % 60));
    trace_pack_signed(p, INT64_MIN);
    trace_pack_signed(p, INT64_MAX);
    trace_pack_close(p);
    str_puts(trace_out_text(out), "</x>");
    cr_assert_null(trace_out_close(out));
    struct span s;
    cr_assert_null(file_map(path, &s));
    char *page = base_alloc(s.size + 1);
    memcpy(page, s.data, s.size);
    size_t size;
    uint8_t *raw = column(page, "x", &size);
    const uint8_t *at = raw;
    for (int bits = 0; bits < 64; bits++) {
        cr_expect_eq(number(&at), (UINT64_C(1) << bits) - 1);
        cr_expect_eq(number(&at), UINT64_C(1) << bits);
    }
    for (uint64_t i = 0; i < 50000; i++)
        cr_assert_eq(zigzag(number(&at)), (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15)) >> (i % 60));
    cr_expect_eq(zigzag(number(&at)), INT64_MIN);
    cr_expect_eq(zigzag(number(&at)), INT64_MAX);
    cr_expect_eq((size_t)(at - raw), size);
    base_free(raw);
    base_free(page);
    file_unmap(s);
    (void)remove(path);
}

struct fixture {
    struct hw hw;
    struct trace_engine engine[2];
    struct trace_tag tag[3];
    struct trace_run run;
    struct trace_log log;
};

// Two engines that take turns: the matrix engine waits for the DMA engine before it.
static void fixture_init(struct fixture *f, uint64_t n) {
    memset(f, 0, sizeof *f);
    hw_defaults(&f->hw);
    f->engine[0].engine = ISA_ENGINE_DMA0;
    f->engine[1].engine = ISA_ENGINE_MXU;
    f->engine[0].cycles[TRACE_BUSY] = f->engine[1].cycles[TRACE_BUSY] = n * 10;
    for (uint32_t t = 0; t < 3; t++)
        f->tag[t] = (struct trace_tag){
            .tag = t, .first = t, .last = n * 10, .end = n * 10, .instructions = n};
    f->run = (struct trace_run){.program = NASTY,
                                .target = NASTY,
                                .hw = &f->hw,
                                .cycles = n * 10,
                                .instructions = n,
                                .engine = f->engine,
                                .nengine = 2,
                                .tag = f->tag,
                                .ntag = 3,
                                .lookup = lookup};
    for (uint64_t i = 0; i < n; i++) {
        const bool mxu = i % 2;
        trace_log_add(&f->log,
                      &(struct trace_event){.engine = mxu ? ISA_ENGINE_MXU : ISA_ENGINE_DMA0,
                                            .opcode = mxu ? ISA_OP_MM : ISA_OP_COPY,
                                            .tag = (uint32_t)(i * 7 / 3 % 3),
                                            .pc = (uint32_t)(i % 5),
                                            .seq = i,
                                            .dispatched = i * 10,
                                            .ready = i * 10 + i % 3,
                                            .start = i * 10 + 5,
                                            .read = i * 10 + 6,
                                            .issued = i * 10 + 9,
                                            .done = i * 10 + 9 + i * i,
                                            .wait_class = mxu ? TRACE_WAIT_DMA : TRACE_BUSY,
                                            .wait_engine = mxu ? ISA_ENGINE_DMA0 : -1,
                                            .cause_seq = mxu ? i - 1 : TRACE_NO_SEQ,
                                            .cause_cycle = i * 10 + 2,
                                            .work = i << 33});
    }
    cr_assert_null(trace_log_finish(&f->log));
}

static char *page_of(struct fixture *f) {
    const char *path = temporary("page.html");
    cr_assert_null(trace_write(&f->run, &f->log, path));
    struct span s;
    cr_assert_null(file_map(path, &s));
    char *page = base_alloc(s.size + 1);
    memcpy(page, s.data, s.size);
    file_unmap(s);
    (void)remove(path);
    return page;
}

Test(html, columns_say_what_the_log_says) {
    struct fixture f;
    const uint64_t n = 3000;
    fixture_init(&f, n);
    char *page = page_of(&f);
    size_t size;
    uint8_t *start = column(page, "insn-start", &size), *done = column(page, "insn-done", &size),
            *cause = column(page, "insn-cause", &size), *tag = column(page, "insn-tag", &size),
            *work = column(page, "insn-work", &size), *seq = column(page, "insn-seq", &size);
    const uint8_t *a = start, *b = done, *c = cause, *d = tag, *e = work, *g = seq;
    uint64_t cycle = 0;
    int64_t t = 0, order = 0;
    for (uint64_t i = 0; i < n; i++) {
        cycle += number(&a);
        cr_assert_eq(cycle, i * 10 + 5);
        cr_assert_eq(number(&b), 4 + i * i);
        cr_assert_eq(number(&c), i % 2, "instruction %" PRIu64, i);
        t += zigzag(number(&d));
        cr_assert_eq(t, (int64_t)(i * 7 / 3 % 3) + 1);
        cr_assert_eq(number(&e), i << 33);
        order += zigzag(number(&g));
        cr_assert_eq(order, (int64_t)i);
    }
    base_free(start);
    base_free(done);
    base_free(cause);
    base_free(tag);
    base_free(work);
    base_free(seq);
    base_free(page);
    trace_log_free(&f.log);
}

Test(html, names_stay_in_their_elements) {
    struct fixture f;
    fixture_init(&f, 10);
    char *page = page_of(&f);
    cr_expect_null(strstr(page, "<img"));
    cr_expect_null(strstr(page, "onerror=alert(1)>"));
    cr_expect_not_null(strstr(page, "a\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)\\u003e"
                                    "\\u0026amp;"));
    base_free(page);
    trace_log_free(&f.log);
}
