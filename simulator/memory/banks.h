// SPDX-License-Identifier: Apache-2.0
//
// Sharing of banked on-chip memory (SPM, PSUM) between engines, as bandwidth: nothing happens per
// access. A user's demand is the part of all banks' cycles that it wants while it works at full
// speed, strides included (a stride that meets only 1/g of the banks counts g times). Users are
// served in order of their number - DMA before MXU before VEC - so each gets what those before it
// leave, and works that much slower. Demands change only when an instruction starts or ends.
#ifndef SIMULATOR_MEMORY_BANKS_H
#define SIMULATOR_MEMORY_BANKS_H

#include <stdint.h>

#define BANKS_USERS 8
#define BANKS_ONE 65536 // 1.0 of demands and speeds

struct banks {
    uint32_t demand[BANKS_USERS]; ///< of BANKS_ONE; may exceed it
    uint32_t speed[BANKS_USERS];  ///< BANKS_ONE: undisturbed
};

/// Nobody wants anything.
void banks_init(struct banks *b);

/// Sets a user's demand (0: none) and shares anew. Returns the users whose speed changed, a bit
/// each.
uint32_t banks_set(struct banks *b, int user, uint32_t demand);

/// Cycles that `left` cycles of work (in 1/BANKS_ONE) take at a speed; UINT64_MAX at speed 0.
uint64_t banks_cycles(uint64_t left, uint32_t speed);

#endif
