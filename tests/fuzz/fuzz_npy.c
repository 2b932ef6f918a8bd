// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a .npy file: parsed or refused, and what was parsed can be read to its end.
//
// links: npu_base

#include "runtime/base/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new();
    struct tensor_data t;
    npu_status st = npy_parse(a, (struct span){data, size}, &t);
    volatile uint8_t sum = 0;
    for (size_t i = 0; !st && i < t.size_bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)t.data)[i]);
    npu_status_free(st);
    arena_free(a);
    return 0;
}
