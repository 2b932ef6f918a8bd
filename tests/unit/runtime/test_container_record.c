// SPDX-License-Identifier: Apache-2.0
//
// Section RECORD: written and read back, left out, damaged, and what is refused in it.

#include <criterion/criterion.h>
#include <string.h>

#include "isa/insn.h"
#include "runtime/container_internal.h"
#include "tests/unit/runtime/sample_image.h"

Test(container_record, round_trip) {
    struct arena *a = arena_new();
    struct span bytes;
    struct npu_program_image *back;
    const struct npu_program_image *m = &sample_with_record(a)->image;
    expect_ok(container_write_memory(m, a, &bytes));
    expect_ok(container_read(a, bytes, "t.npu", 0, &back));
    const struct npu_image_record *r = back->record, *w = m->record;
    cr_assert_not_null(r);
    cr_expect_str_eq(r->model, "net.onnx");
    cr_expect_eq(r->model_bytes, w->model_bytes);
    cr_expect_eq(r->model_crc, w->model_crc);
    cr_expect_eq(r->graph_hash, w->graph_hash);
    cr_assert_eq(r->noptions, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_str_eq(r->options[i].name, w->options[i].name);
        cr_expect_str_eq(r->options[i].value, w->options[i].value);
    }
    cr_assert_eq(r->nresults, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct npu_image_result *x = &r->results[i], *y = &w->results[i];
        cr_expect_str_eq(x->name, y->name);
        cr_expect_eq(x->first_tag, y->first_tag);
        cr_expect_eq(x->last_tag, y->last_tag);
        cr_expect_eq(x->space, y->space);
        cr_expect_eq(x->dtype, y->dtype);
        cr_expect_eq(x->rank, y->rank);
        cr_expect_eq(memcmp(x->dims, y->dims, sizeof x->dims), 0);
        cr_expect_eq(memcmp(x->strides, y->strides, sizeof x->strides), 0);
        cr_expect_eq(x->address, y->address);
    }
    arena_free(a);
}

Test(container_record, is_optional) {
    struct arena *a = arena_new();
    struct npu_program_image *back;
    expect_ok(container_read(a, sample_bytes(a), "t.npu", 0, &back));
    cr_expect_null(back->record);
    arena_free(a);
}

Test(container_record, every_flipped_byte) {
    struct arena *a = arena_new();
    struct span bytes;
    struct npu_program_image *back;
    expect_ok(container_write_memory(&sample_with_record(a)->image, a, &bytes));
    uint8_t *file = arena_copy(a, bytes.data, bytes.size);
    for (size_t i = 0; i < bytes.size; i++) {
        file[i] ^= 0x41;
        expect_failure(container_read(a, (struct span){file, bytes.size}, "t.npu", 0, &back),
                       NPU_BAD_INPUT, "t.npu: ");
        file[i] ^= 0x41;
    }
    arena_free(a);
}

static void refused(struct arena *a, const struct sample *s, const char *text) {
    struct span bytes;
    expect_failure(container_write_memory(&s->image, a, &bytes), NPU_BAD_INPUT, text);
}

Test(container_record, what_is_refused) {
    struct arena *a = arena_new();
    struct sample *s = sample_with_record(a);
    s->record.model = "models/net.onnx";
    refused(a, s, "the record's model 'models/net.onnx' is no file name");
    s = sample_with_record(a);
    s->record.model = NULL;
    refused(a, s, "the record's model '' is no file name");
    s = sample_with_record(a);
    s->options[1].name = "";
    refused(a, s, "option 1 of the record has no name");
    s = sample_with_record(a);
    s->results[0].space = ISA_PSUM;
    refused(a, s, "result 'h': memory 2, expected DRAM or the scratchpad");
    s = sample_with_record(a);
    s->results[0].dtype = ISA_I4;
    refused(a, s, "is unknown or below 8 bits");
    s = sample_with_record(a);
    s->results[0].dims[1] = 0;
    refused(a, s, "result 'h': a dimension or stride is out of range");
    s = sample_with_record(a);
    s->results[0].strides[1] = -1;
    refused(a, s, "result 'h': a dimension or stride is out of range");
    s = sample_with_record(a);
    s->results[0].dims[0] = s->results[0].dims[1] = INT64_C(1) << 40;
    refused(a, s, "result 'h': a dimension or stride is out of range");
    s = sample_with_record(a);
    s->results[0].strides[1] = s->results[0].strides[2] = INT64_C(1) << 47;
    refused(a, s, "result 'h': a dimension or stride is out of range");
    s = sample_with_record(a);
    s->results[0].address = UINT64_MAX;
    refused(a, s, "result 'h': address 0xffffffffffffffff of the scratchpad");
    s = sample_with_record(a);
    s->results[1].address = 20480 - 23;
    refused(a, s, "result 'y' lies outside the program's DRAM");
    s = sample_with_record(a);
    s->results[1].last_tag = 4;
    refused(a, s, "result 'y': no layers with tags 3 to 4");
    s = sample_with_record(a);
    s->results[1].first_tag = 9;
    s->results[1].last_tag = 3;
    refused(a, s, "result 'y': no layers with tags 9 to 3");
    arena_free(a);
}
