// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/runtime/sample_image.h"

#include <criterion/criterion.h>
#include <string.h>

#include "isa/insn.h"
#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"

static void fill_tensors(struct sample *s) {
    s->tensors[0] = (struct npu_image_tensor){.name = "x",
                                              .dtype = ISA_F16,
                                              .model_dtype = ISA_F32,
                                              .rank = 2,
                                              .dims = {2, 3},
                                              .role = CONTAINER_ROLE_INPUT,
                                              .dram_offset = SAMPLE_IO_DRAM,
                                              .bytes = 12};
    s->tensors[1] = (struct npu_image_tensor){.name = "ids",
                                              .dtype = ISA_I64,
                                              .model_dtype = ISA_I64,
                                              .rank = 1,
                                              .dims = {4},
                                              .role = CONTAINER_ROLE_INPUT,
                                              .dram_offset = SAMPLE_IO_DRAM + 64,
                                              .bytes = 32,
                                              .index_limit = 100};
    s->tensors[2] = (struct npu_image_tensor){.name = "y",
                                              .dtype = ISA_F32,
                                              .model_dtype = ISA_F32,
                                              .rank = 2,
                                              .dims = {2, 3},
                                              .role = CONTAINER_ROLE_OUTPUT,
                                              .dram_offset = SAMPLE_IO_DRAM + 128,
                                              .bytes = 24};
    s->tensors[3] = (struct npu_image_tensor){.name = "z",
                                              .dtype = ISA_F16,
                                              .model_dtype = ISA_F16,
                                              .rank = 1,
                                              .dims = {0},
                                              .role = CONTAINER_ROLE_OUTPUT};
    s->tensors[4] = (struct npu_image_tensor){.name = "cache",
                                              .dtype = ISA_F16,
                                              .model_dtype = ISA_F16,
                                              .rank = 1,
                                              .dims = {8},
                                              .role = CONTAINER_ROLE_STATE,
                                              .dram_offset = 12288,
                                              .bytes = 16};
}

static void fill_segments(struct sample *s) {
    s->segments[0] =
        (struct npu_image_segment){CONTAINER_SEGMENT_CODE, 0, SAMPLE_CODE_BYTES, 64, 0, 0};
    s->segments[1] = (struct npu_image_segment){
        CONTAINER_SEGMENT_WEIGHTS, SAMPLE_WEIGHTS_DRAM, SAMPLE_WEIGHTS_BYTES - 64, 4096, 64, 0};
    s->segments[2] =
        (struct npu_image_segment){CONTAINER_SEGMENT_IO, SAMPLE_IO_DRAM, 256, 64, 0, 0};
    s->segments[3] = (struct npu_image_segment){CONTAINER_SEGMENT_STATE, 12288, 16, 64, 0, 0};
    s->segments[4] = (struct npu_image_segment){CONTAINER_SEGMENT_SCRATCH, 16384, 1000, 64, 0, 0};
}

static void fill_debug(struct sample *s) {
    s->nodes[0] = "/layers.0/MatMul";
    s->nodes[1] = "/layers.0/Add";
    s->tags[0] = (struct npu_image_tag){.tag = 3,
                                        .layer = "layers.0",
                                        .op = "linear",
                                        .kernel = "gemm_bias",
                                        .text = "%y = linear %x, W=const[3,3]",
                                        .nodes = s->nodes,
                                        .nnodes = 2,
                                        .group = 1,
                                        .macs = 18,
                                        .vector_elems = 6,
                                        .weight_bytes = 18,
                                        .input_bytes = 12,
                                        .output_bytes = 24};
    s->tags[1] =
        (struct npu_image_tag){.tag = 9, .layer = "layers.1", .op = "add", .kernel = "map"};
    s->spans[0] = (struct npu_image_span){0, "prologue"};
    s->spans[1] = (struct npu_image_span){1, "body"};
    s->buffers[0] = (struct npu_image_buffer){.name = "W",
                                              .dtype = ISA_F16,
                                              .rank = 2,
                                              .dims = {3, 3},
                                              .dram_offset = SAMPLE_WEIGHTS_DRAM,
                                              .bytes = 18,
                                              .tag = 0};
    s->stats[0] = (struct npu_image_stat){"estimated_cycles", 12345};
    s->stats[1] = (struct npu_image_stat){"spills", -1};
}

struct sample *sample_new(struct arena *a) {
    struct sample *s = ARENA_NEW(a, struct sample);
    for (int i = 0; i < SAMPLE_CODE_BYTES; i++)
        s->code[i] = (uint8_t)(i * 7);
    for (int i = 0; i < SAMPLE_WEIGHTS_BYTES; i++)
        s->constants[i] = (uint8_t)(i * 31 + 5);
    fill_tensors(s);
    fill_segments(s);
    fill_debug(s);
    s->launches[0] = (struct npu_image_launch){16, 3, 2, "linear", "matmul"};
    s->launches[1] = (struct npu_image_launch){32, 9, 0, "", ""};
    s->entry_tensors[0] = 0;
    s->entry_tensors[1] = 2;
    s->entries[0] = (struct npu_image_entry){.name = "main", .code_offset = 0};
    s->entries[1] = (struct npu_image_entry){.name = "eager",
                                             .code_offset = 16,
                                             .tensors = s->entry_tensors,
                                             .ntensors = 2,
                                             .launches = s->launches,
                                             .nlaunches = 2,
                                             .views = 5};
    s->weights[0] = (struct npu_image_weights){.offset = 0, .bytes = {s->constants, 64}};
    s->weights[1] = (struct npu_image_weights){.offset = 64, .bytes = {s->constants + 64, 36}};
    s->weights[2] = (struct npu_image_weights){.offset = 150, .bytes = {s->constants + 150, 50}};
    s->image = (struct npu_program_image){.name = "sample",
                                          .producer = "test 1",
                                          .target = "server",
                                          .dtype_mode = "f16",
                                          .tensors = s->tensors,
                                          .ntensors = 5,
                                          .segments = s->segments,
                                          .nsegments = 5,
                                          .entries = s->entries,
                                          .nentries = 2,
                                          .dram_bytes = 20480,
                                          .spm_peak_bytes = 512,
                                          .psum_peak_bytes = 256,
                                          .hw_yaml = "mxu:\n  rows: 128\n",
                                          .hw_program_hash = UINT64_C(0x0123456789abcdef),
                                          .hw_timing_hash = UINT64_C(0xfedcba9876543210),
                                          .code = {s->code, SAMPLE_CODE_BYTES},
                                          .tags = s->tags,
                                          .ntags = 2,
                                          .spans = s->spans,
                                          .nspans = 2,
                                          .buffers = s->buffers,
                                          .nbuffers = 1,
                                          .stats = s->stats,
                                          .nstats = 2,
                                          .weights = s->weights,
                                          .nweights = 3};
    return s;
}

struct sample *sample_with_record(struct arena *a) {
    struct sample *s = sample_new(a);
    s->options[0] = (struct npu_image_option){"dtype", "f16"};
    s->options[1] = (struct npu_image_option){"skip", "cse"};
    s->options[2] = (struct npu_image_option){"skip", "fuse_map"};
    s->results[0] = (struct npu_image_result){.name = "h",
                                              .first_tag = 3,
                                              .last_tag = 3,
                                              .space = ISA_SPM,
                                              .dtype = ISA_F16,
                                              .rank = 3,
                                              .dims = {1, 2, 3},
                                              .strides = {0, 1, 2},
                                              .address = 64};
    s->results[1] = (struct npu_image_result){.name = "y",
                                              .first_tag = 3,
                                              .last_tag = 9,
                                              .space = ISA_DRAM,
                                              .dtype = ISA_F32,
                                              .rank = 2,
                                              .dims = {2, 3},
                                              .strides = {3, 1},
                                              .address = SAMPLE_IO_DRAM + 128};
    s->record = (struct npu_image_record){.model = "net.onnx",
                                          .model_bytes = 1234567,
                                          .model_crc = 0xdeadbeef,
                                          .graph_hash = UINT64_C(0xfedcba9876543210),
                                          .options = s->options,
                                          .noptions = 3,
                                          .results = s->results,
                                          .nresults = 2};
    s->image.record = &s->record;
    return s;
}

struct span sample_bytes(struct arena *a) {
    struct span out;
    expect_ok(container_write_memory(&sample_new(a)->image, a, &out));
    return out;
}

struct span sample_for_machine(struct arena *a, const char *set) {
    struct sample *s = sample_new(a);
    struct hw hw;
    struct str yaml = {0};
    struct span out;
    hw_defaults(&hw);
    if (set) expect_ok(hw_set_text(&hw, set, HW_SET_ALL));
    hw_print_yaml(&hw, &yaml);
    s->image.hw_yaml = arena_strdup(a, str_text(&yaml));
    s->image.hw_program_hash = hw_hash(&hw, HW_PROGRAM);
    s->image.hw_timing_hash = hw_hash(&hw, HW_TIMING);
    str_free(&yaml);
    expect_ok(container_write_memory(&s->image, a, &out));
    return out;
}

void expect_failure(npu_status status, enum npu_code code, const char *text) {
    struct str s = {0};
    npu_status_print(status, NULL, &s);
    cr_expect(npu_status_code(status) == code, "code %d, expected %d: %s",
              (int)npu_status_code(status), (int)code, str_text(&s));
    cr_expect(strstr(str_text(&s), text) != NULL, "no '%s' in: %s", text, str_text(&s));
    str_free(&s);
    npu_status_free(status);
}

void expect_ok(npu_status status) {
    struct str s = {0};
    npu_status_print(status, NULL, &s);
    cr_expect(status == NULL, "%s", str_text(&s));
    str_free(&s);
    npu_status_free(status);
}
