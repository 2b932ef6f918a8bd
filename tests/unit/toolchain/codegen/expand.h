// SPDX-License-Identifier: Apache-2.0
// Runs the command processor's instructions as the manual says.
#ifndef NPU_TESTS_EXPAND_H
#define NPU_TESTS_EXPAND_H

#include "toolchain/codegen/codegen.h"

// Writes the engines' instructions in the order of their dispatch, with effective bases and tags
// and without address registers, and HALT; at most `room`. Returns their number.
int expand(const struct codegen_stream *s, struct isa_insn *out, int room);

// Fails the test unless both have the same encoding.
void same_insn(const struct isa_insn *a, const struct isa_insn *b);

struct isa_insn copy_insn(int64_t src, int64_t dst, int64_t engine);

#endif
