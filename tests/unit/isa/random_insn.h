// SPDX-License-Identifier: Apache-2.0
// Random instructions that encode: for round-trip tests.
#ifndef TESTS_UNIT_ISA_RANDOM_INSN_H
#define TESTS_UNIT_ISA_RANDOM_INSN_H

#include <stdint.h>

#include "isa/insn.h"

/// Next value of a xorshift generator; *state must not be 0.
uint64_t random_next(uint64_t *state);

/// Fills every field of an instruction of row `index` at random: operands absent now and then,
/// small and full-width values, all header words.
void random_insn(struct isa_insn *in, int index, uint64_t *state);

#endif
