// SPDX-License-Identifier: Apache-2.0
// CRCs of what instructions write, the file, two runs side by side; and who stored a wrong element.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulator/npusim/crc.h"
#include "simulator/npusim/narrow.h"

static const uint8_t code_bytes[64], other_code[64] = {1}, longer_code[80];

static struct npu_program_image image_of(const uint8_t *code, size_t bytes) {
    return (struct npu_program_image){.name = "p", .code = {code, bytes}};
}

static void add(struct writes *w, uint64_t seq, uint32_t tag, int engine, int64_t at,
                const char *text) {
    struct exec_foot f;
    const struct exec_place place = {.seq = seq,
                                     .pc_granule = (uint32_t)seq,
                                     .tag = tag,
                                     .engine = engine};
    foot_run(&f, at, (int64_t)strlen(text));
    writes_add(w, &place, ISA_SPM, &f, (const uint8_t *)text);
}

Test(writes, crc_is_of_the_bytes_of_the_footprint) {
    struct writes w = {0};
    add(&w, 1, 1, ISA_ENGINE_VEC, 0, "123456789");
    // The check value of CRC-32 (ISO-HDLC), as catalogues of CRCs give it.
    cr_expect_eq(w.item[0].crc, 0xcbf43926);
    struct exec_foot f = {.lo = 0, .hi = 17, .run = 1, .dims = 1, .size = {9}, .stride = {2}};
    writes_add(&w, &(struct exec_place){.seq = 2}, ISA_SPM, &f,
               (const uint8_t *)"1-2-3-4-5-6-7-8-9");
    cr_expect_eq(w.item[1].crc, 0xcbf43926, "gaps between runs do not count");
    writes_deinit(&w);
}

static void expect_first(const struct npu_program_image *a, const struct writes *w,
                         const struct npu_program_image *b, const struct writes *v, size_t first,
                         size_t theirs) {
    size_t got, got_theirs;
    npu_status st = crc_first_difference(a, w, b, v, &got, &got_theirs);
    cr_assert(!st);
    cr_expect_eq(got, first);
    cr_expect_eq(got_theirs, theirs);
}

Test(crc, the_first_in_the_order_of_execution) {
    const struct npu_program_image p = image_of(code_bytes, sizeof code_bytes);
    struct writes a = {0}, b = {0};
    // Instruction 5 runs before 4: queues.
    add(&a, 3, 1, ISA_ENGINE_DMA0, 0, "same");
    add(&a, 5, 1, ISA_ENGINE_VEC, 8, "here");
    add(&a, 4, 1, ISA_ENGINE_MXU, 16, "mine");
    add(&b, 3, 1, ISA_ENGINE_DMA0, 0, "same");
    add(&b, 4, 1, ISA_ENGINE_MXU, 16, "your");
    expect_first(&p, &a, &p, &b, 1, SIZE_MAX); // 5 is only here
    add(&b, 5, 1, ISA_ENGINE_VEC, 8, "here");
    expect_first(&p, &a, &p, &b, 2, 1);
    b.item[1].crc = a.item[2].crc;
    expect_first(&p, &a, &p, &b, SIZE_MAX, SIZE_MAX);
    b.item[1].foot.lo -= 8;
    b.item[1].foot.hi -= 8;
    expect_first(&p, &a, &p, &b, 2, 1); // the same bytes elsewhere
    writes_deinit(&a);
    writes_deinit(&b);
}

Test(crc, other_code_is_matched_by_tag_and_engine) {
    const struct npu_program_image p = image_of(code_bytes, sizeof code_bytes),
                                   q = image_of(longer_code, sizeof longer_code),
                                   r = image_of(other_code, sizeof other_code);
    struct writes a = {0}, b = {0};
    add(&a, 1, 1, ISA_ENGINE_DMA0, 0, "load");
    add(&a, 2, 1, ISA_ENGINE_VEC, 8, "one");
    add(&a, 3, 1, ISA_ENGINE_VEC, 16, "two");
    add(&b, 1, 1, ISA_ENGINE_VEC, 800, "one"); // another order, another place
    add(&b, 7, 1, ISA_ENGINE_DMA0, 200, "load");
    add(&b, 9, 1, ISA_ENGINE_VEC, 801, "two");
    expect_first(&p, &a, &q, &b, SIZE_MAX, SIZE_MAX);
    expect_first(&p, &a, &r, &b, 0, 1); // code of the same length: places count
    writes_deinit(&a);
    writes_deinit(&b);
}

// ---- the file -----------------------------------------------------------------------------------

static enum npu_code compare_with(const char *text, const struct writes *w) {
    char path[] = "/tmp/test_crc_XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    FILE *f = fdopen(fd, "w");
    cr_assert(f);
    fputs(text, f);
    fclose(f);
    struct npu_program_image p = image_of(code_bytes, sizeof code_bytes);
    struct npu_program program = {.image = &p};
    const struct npusim_options o = {.quiet = true};
    struct npusim s = {.o = &o, .a = arena_new(), .program = &program};
    const struct trace_log log = {0};
    npu_status st = crc_compare(&s, w, &log, path);
    const enum npu_code code = npu_status_code(st);
    npu_status_free(st);
    arena_free(s.a);
    remove(path);
    return code;
}

static char *written(const struct writes *w) {
    char path[] = "/tmp/test_crc_XXXXXX";
    close(mkstemp(path));
    const struct npu_program_image p = image_of(code_bytes, sizeof code_bytes);
    npu_status st = crc_write(&p, w, path);
    cr_assert(!st);
    struct span bytes;
    st = file_map(path, &bytes);
    cr_assert(!st);
    char *text = malloc(bytes.size + 1);
    memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = '\0';
    file_unmap(bytes);
    remove(path);
    return text;
}

Test(crc, a_file_is_read_back) {
    struct writes w = {0};
    add(&w, 3, 1, ISA_ENGINE_DMA0, 0, "same");
    add(&w, 5, 1, ISA_ENGINE_VEC, 8, "here");
    char *text = written(&w);
    cr_expect_eq(compare_with(text, &w), NPU_OK);
    w.item[1].crc++;
    cr_expect_eq(compare_with(text, &w), NPU_DIFFER);
    w.n = 1;
    cr_expect_eq(compare_with(text, &w), NPU_DIFFER, "one is only there");
    writes_deinit(&w);
    free(text);
}

Test(crc, any_bytes_are_refused_or_read) {
    struct writes w = {0};
    add(&w, 3, 1, ISA_ENGINE_DMA0, 0, "same");
    char *text = written(&w);
    const size_t n = strlen(text);
    cr_expect_eq(compare_with("", &w), NPU_BAD_INPUT);
    cr_expect_eq(compare_with("seq,pc\n1,2\n", &w), NPU_BAD_INPUT);
    for (size_t cut = 0; cut < n; cut++) {
        char *part = strndup(text, cut);
        const enum npu_code code = compare_with(part, &w);
        cr_expect(code == NPU_BAD_INPUT || code == NPU_DIFFER, "cut at %zu: %d", cut, (int)code);
        free(part);
    }
    for (size_t i = 0; i < n; i++) {
        const char before = text[i];
        text[i] = before == 'x' ? ',' : 'x';
        const enum npu_code code = compare_with(text, &w);
        cr_expect(code != NPU_NO_MEMORY && code != NPU_IO, "byte %zu: %d", i, (int)code);
        text[i] = before;
    }
    writes_deinit(&w);
    free(text);
}

// ---- who stored a wrong element -----------------------------------------------------------------

Test(narrow, the_last_to_write_an_element_owns_it) {
    // [2,3] of two bytes, transposed in memory: (i, j) at 100 + 2 (i + 2 j).
    const struct npu_image_result result = {.name = "r",
                                            .first_tag = 3,
                                            .last_tag = 4,
                                            .space = ISA_SPM,
                                            .dtype = ISA_F16,
                                            .rank = 2,
                                            .dims = {2, 3},
                                            .strides = {1, 2},
                                            .address = 100};
    const struct snapshot stored = {.result = &result, .lo = 100, .hi = 112};
    struct writes w = {0};
    add(&w, 10, 3, ISA_ENGINE_VEC, 100, "aabbccddeeff"); // all of it
    add(&w, 11, 4, ISA_ENGINE_VEC, 104, "ccdd");         // column 1 again
    add(&w, 12, 5, ISA_ENGINE_VEC, 100, "xxxxxxxxxxxx"); // a later layer
    const double want[] = {1, 2, 3, 4, 5, 6};
    double got[] = {1, 2, 3, 4, 5, 6};
    struct narrow_result r = {
        .stored = &stored, .got = got, .want = want, .n = 6, .atol = 0.5, .worst = 4};
    struct narrow_found f;
    got[4] = 50; // (1, 1)
    npu_status st = narrow_find(&w, &r, &f);
    cr_assert(!st);
    cr_expect_eq(f.write, 1);
    cr_expect_eq(f.stored, 2);
    cr_expect_eq(f.wrong, 1);
    cr_expect_eq(f.first, 4);
    cr_expect_eq(f.writers, 2);
    cr_expect_eq(f.wrong_writers, 1);
    got[2] = 3.4; // within the bound
    got[5] = 0;   // (1, 2), of the first
    st = narrow_find(&w, &r, &f);
    cr_assert(!st);
    cr_expect_eq(f.write, 0);
    cr_expect_eq(f.wrong, 1);
    cr_expect_eq(f.stored, 4);
    cr_expect_eq(f.worst, 5);
    writes_deinit(&w);
}
