// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, and the layout of keys: key = seed; counter = event (56 bits), source (8), run.
#include "simulator/noise/philox.h"

#include "runtime/base/status.h"

// Multipliers and Weyl constants of the paper.
#define MULTIPLIER_0 UINT32_C(0xD2511F53)
#define MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9)
#define WEYL_1 UINT32_C(0xBB67AE85)
#define ROUNDS 10

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t p0 = (uint64_t)MULTIPLIER_0 * a, p1 = (uint64_t)MULTIPLIER_1 * c;
        a = (uint32_t)(p1 >> 32) ^ b ^ k0;
        b = (uint32_t)p1;
        c = (uint32_t)(p0 >> 32) ^ d ^ k1;
        d = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

uint64_t noise_bits(uint64_t seed, uint64_t run, int source, uint64_t event) {
    NPU_ASSERT(event < NOISE_EVENTS && source >= 0 && source < 256);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)event, (uint32_t)(event >> 32) | (uint32_t)source << 24,
                                 (uint32_t)run, (uint32_t)(run >> 32)};
    uint32_t out[4];
    philox4x32_10(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

double noise_uniform(uint64_t seed, uint64_t run, int source, uint64_t event) {
    const uint64_t bits = noise_bits(seed, run, source, event) >> 12; // 52 bits
    return ((double)bits + 0.5) * 0x1p-52;
}

// High half of a 64 x 64 bit product, from four of 32 x 32.
uint64_t noise_scale(uint64_t bits, uint64_t n) {
    const uint64_t b1 = bits >> 32, b0 = bits & UINT32_MAX, n1 = n >> 32, n0 = n & UINT32_MAX;
    const uint64_t low = b0 * n0, m1 = b1 * n0, m2 = b0 * n1;
    const uint64_t carry = (low >> 32) + (m1 & UINT32_MAX) + (m2 & UINT32_MAX);
    return b1 * n1 + (m1 >> 32) + (m2 >> 32) + (carry >> 32);
}

uint64_t noise_below(uint64_t seed, uint64_t run, int source, uint64_t event, uint64_t n) {
    return noise_scale(noise_bits(seed, run, source, event), n);
}
