// SPDX-License-Identifier: Apache-2.0
// One bit per byte of a memory: "somebody wrote it". Pages that nobody touched cost nothing (the
// host's zero pages).
#ifndef NPU_SIMULATOR_EXEC_BITS_H
#define NPU_SIMULATOR_EXEC_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct exec_bits {
    uint64_t *word; // owned; NULL: no bytes
    int64_t bytes;  // of the memory described
};

// All clear. false when out of memory. Release with bits_deinit.
bool bits_init(struct exec_bits *b, int64_t bytes);
void bits_deinit(struct exec_bits *b);
void bits_set(struct exec_bits *b, int64_t lo, int64_t hi);
void bits_clear(struct exec_bits *b, int64_t lo, int64_t hi);

// First clear byte of [lo, hi), or -1.
int64_t bits_first_clear(const struct exec_bits *b, int64_t lo, int64_t hi);

// Zeroed pages of the host, taken only when touched; NULL when refused. `bytes` is at least 1.
void *pages_new(int64_t bytes);
void pages_free(void *pages, int64_t bytes);
// Makes [lo, hi) of such pages zero again, giving whole pages back.
void pages_zero(void *pages, int64_t lo, int64_t hi);

#endif
