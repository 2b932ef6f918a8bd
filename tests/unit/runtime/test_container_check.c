// SPDX-License-Identifier: Apache-2.0
//
// Each rule of container_check, broken one at a time: the message names what is wrong.

#include <criterion/criterion.h>

#include "isa/insn.h"
#include "tests/unit/runtime/sample_image.h"

struct broken {
    const char *expected; // part of the message
    void (*change)(struct sample *s);
};

#define CHANGE(name, ...)                \
    static void name(struct sample *s) { \
        __VA_ARGS__;                     \
    }

CHANGE(code_not_granules, s->image.code.size = 60; s->segments[0].bytes = 60)
CHANGE(code_empty, s->image.code.size = 0)
CHANGE(entry_beyond, s->entries[0].code_offset = 64)
CHANGE(entry_unaligned, s->entries[0].code_offset = 8)
CHANGE(entry_tensor, s->entry_tensors[1] = 5)
CHANGE(launch_beyond, s->launches[1].code_offset = 1 << 20)
CHANGE(launch_first, s->launches[0].code_offset = 32)
CHANGE(launch_views, s->launches[1].views = CONTAINER_MAX_VIEWS + 1)
CHANGE(entry_views, s->entries[1].views = UINT32_MAX)
CHANGE(entry_views_alone, s->entries[0].views = 1)
CHANGE(entry_twice, s->entries[1].name = "main")
CHANGE(no_hw, s->image.hw_yaml = "")
CHANGE(null_hw, s->image.hw_yaml = NULL)
CHANGE(weights_overlap, s->weights[1].offset = 63)
CHANGE(weights_far, s->weights[2].offset = UINT64_MAX - 10)
CHANGE(segment_kind, s->segments[2].kind = (enum container_segment_kind)77)
CHANGE(segment_alignment, s->segments[2].alignment = 48)
CHANGE(segment_alignment_zero, s->segments[2].alignment = 0)
CHANGE(segment_unaligned, s->segments[2].dram_offset += 8)
CHANGE(segment_empty, s->segments[4].bytes = 0)
CHANGE(segment_outside, s->segments[4].bytes = UINT64_MAX)
CHANGE(segment_overlap, s->segments[2].bytes = 8192)
CHANGE(segment_order, s->segments[4].dram_offset = 64; s->segments[4].bytes = 8)
CHANGE(segment_code_short, s->segments[0].bytes = 48)
CHANGE(segment_code_twice, s->segments[4].kind = CONTAINER_SEGMENT_CODE)
CHANGE(segment_code_none, s->segments[0].kind = CONTAINER_SEGMENT_SCRATCH)
CHANGE(segment_code_alignment, s->segments[0].alignment = 8)
CHANGE(segment_weights_beyond, s->segments[1].section_offset = 65)
CHANGE(segment_source, s->segments[2].section_offset = 1)
CHANGE(segment_initial_of_io, s->segments[2].initial_bytes = 8)
CHANGE(segment_initial_too_long, s->segments[3].initial_bytes = 17)
CHANGE(segment_initial_beyond, s->segments[3].initial_bytes = 8;
       s->segments[3].section_offset = SAMPLE_WEIGHTS_BYTES - 7)
CHANGE(dram_huge, s->image.dram_bytes = (UINT64_C(1) << 48) + 1)
CHANGE(tensor_role, s->tensors[0].role = (enum container_role)9)
CHANGE(tensor_rank, s->tensors[0].rank = 9)
CHANGE(tensor_dtype, s->tensors[0].dtype = 7)
CHANGE(tensor_model_dtype, s->tensors[0].model_dtype = 0)
CHANGE(tensor_negative, s->tensors[0].dims[0] = -2)
CHANGE(tensor_overflow, s->tensors[0].dims[0] = INT64_C(1) << 47; s->tensors[0].dims[1] = 4)
CHANGE(tensor_bytes_wrong, s->tensors[0].bytes = 13)
CHANGE(tensor_outside, s->tensors[0].dram_offset = SAMPLE_IO_DRAM + 250)
CHANGE(tensor_in_weights, s->tensors[0].dram_offset = SAMPLE_WEIGHTS_DRAM)
CHANGE(state_in_io, s->tensors[4].dram_offset = SAMPLE_IO_DRAM + 192)
CHANGE(tensor_limit, s->tensors[0].index_limit = 5)
CHANGE(tensor_limit_negative, s->tensors[1].index_limit = -1)
CHANGE(inputs_overlap, s->tensors[1].dram_offset = SAMPLE_IO_DRAM + 8)
CHANGE(name_twice, s->tensors[1].name = "x")
CHANGE(stat_twice, s->stats[1].name = "estimated_cycles")
CHANGE(tag_zero, s->tags[0].tag = 0)
CHANGE(tag_twice, s->tags[1].tag = 3)
CHANGE(span_twice, s->spans[1].id = 0)
CHANGE(buffer_outside, s->buffers[0].dram_offset = 20470)
CHANGE(buffer_rank, s->buffers[0].rank = 100)

static const struct broken cases[] = {
    {"60 bytes of code", code_not_granules},
    {"0 bytes of code", code_empty},
    {"entry point 'main': code offset 64", entry_beyond},
    {"entry point 'main': code offset 8", entry_unaligned},
    {"entry point 'eager': tensor number 5", entry_tensor},
    {"entry point 'eager': launch 1", launch_beyond},
    {"first launch", launch_first},
    {"launch 1: 1048577 calls before it", launch_views},
    {"4294967295 calls at the end", entry_views},
    {"entry point 'main': calls that launch nothing, but no launches", entry_views_alone},
    {"two entry points are named 'main'", entry_twice},
    {"no hardware description", no_hw},
    {"no hardware description", null_hw},
    {"weights chunk 1 at offset 63", weights_overlap},
    {"weights chunk 2", weights_far},
    {"segment 2: unknown kind 77", segment_kind},
    {"alignment 48", segment_alignment},
    {"alignment 0", segment_alignment_zero},
    {"DRAM offset 8200 is no multiple of 64", segment_unaligned},
    {"segment 4 (scratch): empty", segment_empty},
    {"outside the program's 20480", segment_outside},
    {"before the end of the segment before it", segment_overlap},
    {"before the end of the segment before it", segment_order},
    {"48 bytes from offset 0 of section CODE", segment_code_short},
    {"2 code segments", segment_code_twice},
    {"0 code segments", segment_code_none},
    {"alignment 8, at least 16", segment_code_alignment},
    {"136 bytes from offset 65 of section WEIGHTS, which has 200", segment_weights_beyond},
    {"segment 2 (io): an offset into a section", segment_source},
    {"segment 2 (io): first values, only states have them", segment_initial_of_io},
    {"segment 3 (state): its first 17 of 16 bytes", segment_initial_too_long},
    {"segment 3 (state): its first 8 of 16 bytes from offset", segment_initial_beyond},
    {"at most 2^48", dram_huge},
    {"tensor 'x': unknown role 9", tensor_role},
    {"input 'x': rank 9", tensor_rank},
    {"input 'x': type 7 is unknown", tensor_dtype},
    {"input 'x': the model's type 0", tensor_model_dtype},
    {"input 'x': type 2 is unknown, or its shape too large", tensor_negative},
    {"shape too large", tensor_overflow},
    {"input 'x': 13 bytes, its shape and type make 12", tensor_bytes_wrong},
    {"input 'x': 12 bytes at DRAM offset 8442 lie in no io segment", tensor_outside},
    {"lie in no io segment", tensor_in_weights},
    {"state 'cache': 16 bytes at DRAM offset 8384 lie in no state segment", state_in_io},
    {"input 'x': index limit 5, only integer tensors", tensor_limit},
    {"index limit -1", tensor_limit_negative},
    {"input tensors 'x' and 'ids' overlap", inputs_overlap},
    {"two input tensors are named 'x'", name_twice},
    {"two statistics are named 'estimated_cycles'", stat_twice},
    {"tag 0 (row 0)", tag_zero},
    {"tag 3 (row 1)", tag_twice},
    {"span 0 (row 1)", span_twice},
    {"buffer 'W'", buffer_outside},
    {"buffer 'W'", buffer_rank},
};

Test(container_check, refuses) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena *a = arena_new();
        struct sample *s = sample_new(a);
        cases[i].change(s);
        expect_failure(container_check(&s->image, "t.npu"), NPU_BAD_INPUT, cases[i].expected);
        arena_free(a);
    }
}

Test(container_check, accepts_the_sample_and_allowed_sharing) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    expect_ok(container_check(&s->image, "t.npu"));
    s->tensors[2].dram_offset = SAMPLE_IO_DRAM; // an output over an input
    expect_ok(container_check(&s->image, "t.npu"));
    s->tensors[3] = s->tensors[2]; // two outputs over the same bytes
    s->tensors[3].name = "y again";
    expect_ok(container_check(&s->image, "t.npu"));
    s->tensors[3].dram_offset += 4; // partly
    expect_failure(container_check(&s->image, "t.npu"), NPU_BAD_INPUT, "overlap");
    arena_free(a);
}

Test(container_check, gathers_faults_and_stops_at_twenty) {
    struct arena *a = arena_new();
    struct sample *s = sample_new(a);
    struct npu_image_tag tags[100] = {{0}};
    s->image.tags = tags;
    s->image.ntags = 100;
    s->image.dram_bytes = 0;
    npu_status st = container_check(&s->image, "t.npu");
    expect_failure(st, NPU_BAD_INPUT, "outside the program's 0");
    arena_free(a);
}
