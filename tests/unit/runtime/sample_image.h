// SPDX-License-Identifier: Apache-2.0
//
// A small image that uses every table: two inputs, two outputs, a state, five segments, two entry
// points (one of two launches), constants in three chunks with a gap.
#ifndef TESTS_UNIT_RUNTIME_SAMPLE_IMAGE_H
#define TESTS_UNIT_RUNTIME_SAMPLE_IMAGE_H

#include "runtime/container.h"

enum {
    SAMPLE_CODE_BYTES = 64,
    SAMPLE_WEIGHTS_BYTES = 200, // chunks at 0, 64 and 150
    SAMPLE_WEIGHTS_DRAM = 4096,
    SAMPLE_IO_DRAM = 8192,
};

/// An image in the arena whose tables may be changed by the test.
struct sample {
    struct npu_program_image image;
    struct npu_image_tensor
        tensors[5]; // x f16[2,3], ids i64[4], y f32[2,3], z f16[0], cache f16[8]
    struct npu_image_segment segments[5];
    struct npu_image_entry entries[2];
    struct npu_image_launch launches[2];
    uint32_t entry_tensors[2];
    struct npu_image_weights weights[3];
    struct npu_image_tag tags[2];
    const char *nodes[2];
    struct npu_image_span spans[2];
    struct npu_image_buffer buffers[1];
    struct npu_image_stat stats[2];
    struct npu_image_option options[3];
    struct npu_image_result results[2];
    struct npu_image_record record;
    uint8_t code[SAMPLE_CODE_BYTES];
    uint8_t constants[SAMPLE_WEIGHTS_BYTES];
};

struct sample *sample_new(struct arena *a);

/// The same with a record of a model: three options, two results (one in the scratchpad).
struct sample *sample_with_record(struct arena *a);

/// The sample as a file in memory.
struct span sample_bytes(struct arena *a);

/// The sample compiled for the machine of hw.def's defaults, with one parameter changed; NULL:
/// none. As a file in memory.
struct span sample_for_machine(struct arena *a, const char *set);

/// Fails the test unless `status` has this code and its text contains `text`; frees it.
void expect_failure(npu_status status, enum npu_code code, const char *text);

/// Fails the test when `status` is not NULL, showing it.
void expect_ok(npu_status status);

#endif
