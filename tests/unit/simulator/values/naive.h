// SPDX-License-Identifier: Apache-2.0
//
// The semantics column of insn.def as plain loops, one element at a time: what the value kernels
// must equal bit for bit. And random instructions over small memories.
#ifndef TESTS_UNIT_SIMULATOR_VALUES_NAIVE_H
#define TESTS_UNIT_SIMULATOR_VALUES_NAIVE_H

#include "isa/insn.h"
#include "simulator/exec/val.h"

enum { NAIVE_SPM = 1 << 17, NAIVE_PSUM = 1 << 16, NAIVE_DRAM = 1 << 16 };
#define NAIVE_DRAM_BASE 0x80000000

struct naive_mem {
    _Alignas(64) uint8_t spm[NAIVE_SPM];
    _Alignas(64) uint8_t psum[NAIVE_PSUM];
    _Alignas(64) uint8_t dram[NAIVE_DRAM];
};

// False: a value-dependent fault.
bool naive_exec(struct naive_mem *mem, const struct isa_insn *in);

// struct val_mem over the same arrays.
struct val_mem naive_val_mem(struct naive_mem *mem, struct val_work *work);

// Deterministic numbers.
struct naive_rng {
    uint64_t state;
};
uint32_t naive_rnd(struct naive_rng *r);
// lo..hi, both included.
int64_t naive_pick(struct naive_rng *r, int64_t lo, int64_t hi);
// Fills all memories: numbers of moderate size in the given dtypes where asked for by
// naive_fill_pat.
void naive_fill(struct naive_rng *r, struct naive_mem *mem);
// Random values of the pattern's dtype in all its elements; special: NaN, infinities, zeros among
// them.
void naive_fill_pat(struct naive_rng *r, struct naive_mem *mem, const struct isa_pat *p,
                    bool special);

// A pattern of the given sizes somewhere in `space`: contiguous, padded, permuted or reversed
// dimensions, with broadcast dimensions when allowed. base is the lowest address that it may use,
// limit one past the highest.
struct isa_pat naive_pat(struct naive_rng *r, int space, int dtype, const int64_t *size,
                         bool broadcast, int64_t base, int64_t limit);

// Runs `in` naively and on every code path of this processor; compares all memories.
void naive_check(const struct naive_mem *start, const struct isa_insn *in);

#endif
