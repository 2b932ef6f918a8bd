// SPDX-License-Identifier: Apache-2.0
//
// Strict priority over fluid demands: speed = min(1, what is left / demand).
#include "simulator/memory/banks.h"

void banks_init(struct banks *b) {
    for (int i = 0; i < BANKS_USERS; i++) {
        b->demand[i] = 0;
        b->speed[i] = BANKS_ONE;
    }
}

uint32_t banks_set(struct banks *b, int user, uint32_t demand) {
    if (b->demand[user] == demand) return 0;
    b->demand[user] = demand;
    uint32_t changed = 0;
    uint64_t left = BANKS_ONE;
    for (int i = 0; i < BANKS_USERS; i++) {
        const uint64_t want = b->demand[i];
        uint64_t speed = BANKS_ONE;
        if (want > left) {
            speed = left * BANKS_ONE / want;
            left = 0;
        } else {
            left -= want;
        }
        if (speed != b->speed[i]) {
            b->speed[i] = (uint32_t)speed;
            changed |= 1u << i;
        }
    }
    return changed;
}

uint64_t banks_cycles(uint64_t left, uint32_t speed) {
    if (!left) return 0;
    return speed ? (left + speed - 1) / speed : UINT64_MAX;
}
