// SPDX-License-Identifier: Apache-2.0
//
// What a fuzz target defines: it reads `size` bytes as its format and returns 0, whatever they are.
// Any crash, sanitizer report, leak or endless loop is a finding. It must not change the bytes, nor
// keep anything from one call to the next.
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
