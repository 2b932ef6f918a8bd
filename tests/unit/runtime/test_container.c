// SPDX-License-Identifier: Apache-2.0
//
// A .npu written and read back: every field, the bytes' determinism, streaming to a file.

#define _XOPEN_SOURCE 700

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "tests/unit/runtime/sample_image.h"

static struct npu_program_image *round_trip(struct arena *a,
                                            const struct npu_program_image *image) {
    struct span bytes;
    struct npu_program_image *back = NULL;
    expect_ok(container_write_memory(image, a, &bytes));
    expect_ok(container_read(a, bytes, "t.npu", 0, &back));
    cr_assert_not_null(back);
    return back;
}

static void expect_same_tensor(const struct npu_image_tensor *a, const struct npu_image_tensor *b) {
    cr_expect_str_eq(a->name, b->name);
    cr_expect_eq(a->dtype, b->dtype);
    cr_expect_eq(a->model_dtype, b->model_dtype);
    cr_expect_eq(a->rank, b->rank);
    cr_expect_eq(memcmp(a->dims, b->dims, sizeof a->dims), 0);
    cr_expect_eq(a->role, b->role);
    cr_expect_eq(a->dram_offset, b->dram_offset);
    cr_expect_eq(a->bytes, b->bytes);
    cr_expect_eq(a->index_limit, b->index_limit);
}

Test(container, round_trip_of_metadata) {
    struct arena *a = arena_new();
    const struct npu_program_image *m = &sample_new(a)->image, *b = round_trip(a, m);
    cr_expect_str_eq(b->name, "sample");
    cr_expect_str_eq(b->producer, "test 1");
    cr_expect_str_eq(b->target, "server");
    cr_expect_str_eq(b->dtype_mode, "f16");
    cr_expect_eq(b->dram_bytes, 20480);
    cr_expect_eq(b->spm_peak_bytes, 512);
    cr_expect_eq(b->psum_peak_bytes, 256);
    cr_expect_str_eq(b->hw_yaml, m->hw_yaml);
    cr_expect_eq(b->hw_program_hash, m->hw_program_hash);
    cr_expect_eq(b->hw_timing_hash, m->hw_timing_hash);
    cr_assert_eq(b->ntensors, m->ntensors);
    for (size_t i = 0; i < m->ntensors; i++)
        expect_same_tensor(&b->tensors[i], &m->tensors[i]);
    cr_assert_eq(b->nsegments, m->nsegments);
    for (size_t i = 0; i < m->nsegments; i++) {
        cr_expect_eq(b->segments[i].kind, m->segments[i].kind);
        cr_expect_eq(b->segments[i].dram_offset, m->segments[i].dram_offset);
        cr_expect_eq(b->segments[i].bytes, m->segments[i].bytes);
        cr_expect_eq(b->segments[i].alignment, m->segments[i].alignment);
        cr_expect_eq(b->segments[i].section_offset, m->segments[i].section_offset);
        cr_expect_eq(b->segments[i].initial_bytes, m->segments[i].initial_bytes);
    }
    arena_free(a);
}

Test(container, round_trip_of_entries) {
    struct arena *a = arena_new();
    const struct npu_program_image *m = &sample_new(a)->image, *b = round_trip(a, m);
    cr_assert_eq(b->nentries, 2);
    cr_expect_str_eq(b->entries[0].name, "main");
    cr_expect_eq(b->entries[0].nlaunches, 0);
    cr_expect_eq(b->entries[0].ntensors, 0);
    cr_expect_str_eq(b->entries[1].name, "eager");
    cr_expect_eq(b->entries[1].code_offset, 16);
    cr_assert_eq(b->entries[1].ntensors, 2);
    cr_expect_eq(b->entries[1].tensors[0], 0);
    cr_expect_eq(b->entries[1].tensors[1], 2);
    cr_assert_eq(b->entries[1].nlaunches, 2);
    cr_expect_eq(b->entries[1].launches[0].code_offset, 16);
    cr_expect_eq(b->entries[1].launches[0].tag, 3);
    cr_expect_eq(b->entries[1].launches[0].views, 2);
    cr_expect_str_eq(b->entries[1].launches[0].op, "linear");
    cr_expect_str_eq(b->entries[1].launches[0].graph_op, "matmul");
    cr_expect_eq(b->entries[1].launches[1].code_offset, 32);
    cr_expect_str_eq(b->entries[1].launches[1].op, "");
    cr_expect_eq(b->entries[1].views, 5);
    arena_free(a);
}

Test(container, round_trip_of_debug_tables) {
    struct arena *a = arena_new();
    const struct npu_program_image *m = &sample_new(a)->image, *b = round_trip(a, m);
    cr_assert_eq(b->ntags, 2);
    const struct npu_image_tag *t = &b->tags[0];
    cr_expect_eq(t->tag, 3);
    cr_expect_str_eq(t->layer, "layers.0");
    cr_expect_str_eq(t->op, "linear");
    cr_expect_str_eq(t->kernel, "gemm_bias");
    cr_expect_str_eq(t->text, m->tags[0].text);
    cr_assert_eq(t->nnodes, 2);
    cr_expect_str_eq(t->nodes[1], "/layers.0/Add");
    cr_expect_eq(t->group, 1);
    cr_expect_eq(t->macs, 18);
    cr_expect_eq(t->vector_elems, 6);
    cr_expect_eq(t->weight_bytes, 18);
    cr_expect_eq(t->input_bytes, 12);
    cr_expect_eq(t->output_bytes, 24);
    cr_expect_str_eq(b->tags[1].text, ""); // NULL when written
    cr_assert_eq(b->nspans, 2);
    cr_expect_str_eq(b->spans[1].name, "body");
    cr_assert_eq(b->nbuffers, 1);
    cr_expect_str_eq(b->buffers[0].name, "W");
    cr_expect_eq(b->buffers[0].dims[1], 3);
    cr_assert_eq(b->nstats, 2);
    cr_expect_str_eq(b->stats[1].name, "spills");
    cr_expect_eq(b->stats[1].value, -1);
    arena_free(a);
}

Test(container, round_trip_of_code_and_constants) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    const struct npu_program_image *b = round_trip(a, &s->image);
    cr_assert_eq(b->code.size, SAMPLE_CODE_BYTES);
    cr_expect_eq(memcmp(b->code.data, s->code, SAMPLE_CODE_BYTES), 0);
    cr_assert_eq(b->nweights, 1);
    cr_assert_eq(b->weights[0].bytes.size, SAMPLE_WEIGHTS_BYTES);
    memset(s->constants + 100, 0, 50); // the gap reads as zero
    cr_expect_eq(memcmp(b->weights[0].bytes.data, s->constants, SAMPLE_WEIGHTS_BYTES), 0);
    struct span bytes = container_segment_bytes(b, &b->segments[1]);
    cr_assert_eq(bytes.size, SAMPLE_WEIGHTS_BYTES - 64);
    cr_expect_eq(memcmp(bytes.data, s->constants + 64, bytes.size), 0);
    cr_expect_eq(container_segment_bytes(b, &b->segments[0]).size, SAMPLE_CODE_BYTES);
    cr_expect_eq(container_segment_bytes(b, &b->segments[2]).size, 0);
    arena_free(a);
}

static void make_twos(const void *of, uint8_t *to) {
    memset(to, *(const uint8_t *)of, 64);
}

static void same_file(const char *path, struct span want) {
    struct span file;
    cr_assert_null(file_map(path, &file));
    cr_assert_eq(file.size, want.size);
    cr_expect_eq(memcmp(file.data, want.data, want.size), 0);
    file_unmap(file);
}

// Chunks that are made while they are written give the bytes of chunks that are there, also where
// the head cannot be written again.
Test(container, constants_that_are_made) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    struct span lent, made;
    const uint8_t two = 2;
    memset(s->constants, two, 64);
    cr_assert_null(container_write_memory(&s->image, a, &lent));
    s->weights[0] = (struct npu_image_weights){.bytes = {NULL, 64}, .make = make_twos, .of = &two};
    cr_assert_null(container_write_memory(&s->image, a, &made));
    cr_assert_eq(lent.size, made.size);
    cr_expect_eq(memcmp(lent.data, made.data, made.size), 0);
    cr_expect_eq(memcmp(container_chunk(&s->weights[0], a).data, s->constants, 64), 0);
    cr_expect_eq(container_chunk(&s->weights[1], a).data, s->constants + 64);
    cr_assert_null(container_write(&s->image, "made.npu"));
    same_file("made.npu", lent);
    remove("made.npu");
    cr_assert_eq(mkfifo("made.fifo", 0600), 0);
    FILE *copy = popen("cat made.fifo > made.npu", "w");
    cr_assert(copy != NULL);
    cr_assert_null(container_write(&s->image, "made.fifo"));
    cr_assert_eq(pclose(copy), 0);
    same_file("made.npu", lent);
    remove("made.npu");
    remove("made.fifo");
    arena_free(a);
}

Test(container, minimal_image) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    struct npu_program_image m = {.hw_yaml = "x",
                                  .code = s->image.code,
                                  .segments = s->segments,
                                  .nsegments = 1,
                                  .entries = s->entries,
                                  .nentries = 1,
                                  .dram_bytes = SAMPLE_CODE_BYTES};
    const struct npu_program_image *b = round_trip(a, &m);
    cr_expect_eq(b->ntensors, 0);
    cr_expect_eq(b->ntags, 0);
    cr_expect_eq(b->nweights, 0);
    cr_expect_str_eq(b->name, "");
    struct span bytes;
    expect_ok(container_write_memory(&m, a, &bytes));
    struct container_section_info sections[CONTAINER_MAX_SECTIONS];
    size_t count;
    expect_ok(container_sections(bytes, "t", sections, &count));
    cr_expect_eq(count, 3); // no DEBUG, no WEIGHTS
    arena_free(a);
}

Test(container, file_is_what_memory_is_and_never_changes) {
    struct arena *a = arena_new();
    struct span first = sample_bytes(a), second = sample_bytes(a), file;
    cr_assert_eq(first.size, second.size);
    cr_expect_eq(memcmp(first.data, second.data, first.size), 0);
    char path[] = "/tmp/test_container_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    expect_ok(container_write(&sample_new(a)->image, path));
    expect_ok(file_map_in(a, path, &file));
    cr_assert_eq(file.size, first.size);
    cr_expect_eq(memcmp(file.data, first.data, first.size), 0);
    struct npu_program_image *b;
    expect_ok(container_open(a, path, 0, &b));
    cr_expect_eq((uintptr_t)b->weights[0].bytes.data % 64, 0); // a map, and 64-byte aligned in it
    arena_free(a);
    unlink(path);
}

Test(container, nothing_is_written_when_the_image_is_wrong) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    s->image.nentries = 0;
    expect_failure(container_write(&s->image, "/tmp/test_container_wrong.npu"), NPU_BAD_INPUT,
                   "no entry point");
    cr_expect_neq(access("/tmp/test_container_wrong.npu", F_OK), 0);
    s->image.nentries = 1;
    expect_failure(container_write(&s->image, "/nonexistent/x.npu"), NPU_IO, "/nonexistent/x.npu");
    arena_free(a);
}

Test(container, every_allocation_fails_once_when_writing) {
    struct arena *a = arena_new();
    const struct npu_program_image *m = &sample_new(a)->image;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/test_container_%ld.npu", (long)getpid());
    size_t n = 0;
    for (bool done = false; !done;) {
        base_alloc_fail_at(++n, 0);
        npu_status st = container_write(m, path);
        done = !st && base_alloc_count() < n;
        base_alloc_fail_at(0, 0);
        cr_expect(!st || npu_status_code(st) == NPU_NO_MEMORY, "n = %zu: %s", n,
                  npu_status_message(st));
        cr_expect(!st || access(path, F_OK) != 0, "n = %zu: a file was left", n);
        npu_status_free(st);
        cr_assert_lt(n, 1000);
    }
    cr_expect_gt(n, 5, "only %zu allocations", n);
    unlink(path);
    arena_free(a);
}

Test(container, sections_are_listed) {
    struct arena *a = arena_new();
    struct container_section_info s[CONTAINER_MAX_SECTIONS];
    size_t count;
    expect_ok(container_sections(sample_bytes(a), "t", s, &count));
    cr_assert_eq(count, 5);
    cr_expect_str_eq(s[0].name, "META");
    cr_expect_str_eq(s[4].name, "WEIGHTS");
    cr_expect_eq(s[4].offset % 64, 0);
    cr_expect_eq(s[4].stored_bytes, SAMPLE_WEIGHTS_BYTES);
    cr_expect_eq(s[2].raw_bytes, SAMPLE_CODE_BYTES);
    arena_free(a);
}

Test(container, lookups) {
    struct arena *a = arena_new();
    const struct npu_program_image *m = &sample_new(a)->image;
    cr_expect_eq(container_find_tag(m, 9), &m->tags[1]);
    cr_expect_null(container_find_tag(m, 0));
    cr_expect_null(container_find_tag(m, 4));
    cr_expect_null(container_find_tag(m, 10));
    cr_expect_eq(container_find_tensor(m, CONTAINER_ROLE_OUTPUT, "y"), 2);
    cr_expect_eq(container_find_tensor(m, CONTAINER_ROLE_INPUT, "y"), -1);
    cr_expect_eq(container_find_entry(m, NULL), 0);
    cr_expect_eq(container_find_entry(m, "eager"), 1);
    cr_expect_eq(container_find_entry(m, "x"), -1);
    cr_expect_eq(container_find_segment(m, 0), &m->segments[0]);
    cr_expect_eq(container_find_segment(m, SAMPLE_CODE_BYTES - 1), &m->segments[0]);
    cr_expect_null(container_find_segment(m, SAMPLE_CODE_BYTES));
    cr_expect_eq(container_find_segment(m, 16384 + 999), &m->segments[4]);
    cr_expect_null(container_find_segment(m, UINT64_MAX));
    cr_expect_str_eq(container_role_name(CONTAINER_ROLE_STATE), "state");
    cr_expect_str_eq(container_segment_name(CONTAINER_SEGMENT_IO), "io");
    arena_free(a);
}
