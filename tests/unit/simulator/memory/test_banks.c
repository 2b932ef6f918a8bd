// SPDX-License-Identifier: Apache-2.0
//
// The fluid sharing against a model that moves single accesses: each user asks for its words in
// order, with a short queue in front of each bank's arbiter; a bank serves one access a cycle, the
// lowest user first.
#include "simulator/memory/banks.h"

#include <criterion/criterion.h>
#include <string.h>

#define BANKS 64
#define LOOKAHEAD 4 // cycles of accesses that may wait at the banks

struct stream {
    int rate;   // words per cycle at full speed
    int stride; // words from one access to the next
    int base;
    int64_t cycles; // of work at full speed
};

static int gcd(int a, int b) {
    return b ? gcd(b, a % b) : a;
}

// Cycles until each stream has made all its accesses.
static void brute_force(const struct stream *s, int n, int64_t *end) {
    int64_t issued[BANKS_USERS] = {0}, served[BANKS_USERS] = {0};
    int waiting[BANKS_USERS][BANKS];
    memset(waiting, 0, sizeof waiting);
    int left = n;
    for (int u = 0; u < n; u++)
        end[u] = -1;
    for (int64_t t = 0; left; t++) {
        for (int u = 0; u < n; u++) {
            const int64_t total = s[u].rate * s[u].cycles;
            for (int k = 0; k < s[u].rate && issued[u] < total; k++) {
                if (issued[u] - served[u] >= (int64_t)s[u].rate * LOOKAHEAD) break;
                waiting[u][(s[u].base + issued[u] * s[u].stride) % BANKS]++;
                issued[u]++;
            }
        }
        for (int b = 0; b < BANKS; b++)
            for (int u = 0; u < n; u++)
                if (waiting[u][b]) {
                    waiting[u][b]--;
                    served[u]++;
                    break;
                }
        for (int u = 0; u < n; u++)
            if (end[u] < 0 && served[u] == s[u].rate * s[u].cycles) {
                end[u] = t + 1;
                left--;
            }
    }
}

// The same with shares that change when a stream ends.
static void fluid(const struct stream *s, int n, int64_t *end) {
    struct banks b;
    banks_init(&b);
    uint64_t work[BANKS_USERS];
    for (int u = 0; u < n; u++) {
        const uint32_t met =
            (uint32_t)(BANKS / gcd(s[u].stride % BANKS ? s[u].stride % BANKS : BANKS, BANKS));
        work[u] = (uint64_t)s[u].cycles * BANKS_ONE;
        end[u] = -1;
        banks_set(&b, u, (uint32_t)s[u].rate * BANKS_ONE / met);
    }
    int64_t now = 0;
    for (int left = n; left;) {
        uint64_t step = UINT64_MAX;
        for (int u = 0; u < n; u++)
            if (end[u] < 0) {
                const uint64_t c = banks_cycles(work[u], b.speed[u]);
                if (c < step) step = c;
            }
        cr_assert(step != UINT64_MAX, "starved with nobody else at work");
        now += (int64_t)step;
        for (int u = 0; u < n; u++) {
            if (end[u] >= 0) continue;
            const uint64_t gain = step * b.speed[u];
            work[u] -= gain < work[u] ? gain : work[u];
            if (work[u]) continue;
            end[u] = now;
            left--;
        }
        for (int u = 0; u < n; u++)
            if (end[u] == now) banks_set(&b, u, 0);
    }
}

static void compare(const char *what, const struct stream *s, int n) {
    int64_t exact[BANKS_USERS], shared[BANKS_USERS];
    brute_force(s, n, exact);
    fluid(s, n, shared);
    for (int u = 0; u < n; u++) {
        const double error = (double)(shared[u] - exact[u]) / (double)exact[u];
        cr_expect(error > -0.02 && error < 0.02, "%s, user %d: %d cycles, brute force %d", what, u,
                  (int)shared[u], (int)exact[u]);
    }
}

Test(banks, one_user_alone) {
    compare("undisturbed", (const struct stream[]){{8, 1, 0, 20000}}, 1);
    compare("all banks", (const struct stream[]){{64, 1, 5, 20000}}, 1);
    compare("stride 2, still fast enough", (const struct stream[]){{32, 2, 0, 20000}}, 1);
    compare("stride 8 meets 8 banks", (const struct stream[]){{32, 8, 3, 20000}}, 1);
    compare("stride 64 meets one", (const struct stream[]){{4, 64, 0, 20000}}, 1);
    compare("odd strides meet all", (const struct stream[]){{48, 37, 0, 20000}}, 1);
}

Test(banks, several_users_within_capacity) {
    compare("two", (const struct stream[]){{8, 1, 0, 20000}, {32, 1, 9, 20000}}, 2);
    compare("three",
            (const struct stream[]){{4, 1, 0, 20000}, {12, 1, 30, 20000}, {40, 1, 9, 20000}}, 3);
}

Test(banks, the_last_gets_what_is_left) {
    compare("over capacity", (const struct stream[]){{16, 1, 0, 40000}, {64, 1, 3, 20000}}, 2);
    compare("first ends early", (const struct stream[]){{32, 1, 0, 5000}, {64, 1, 0, 20000}}, 2);
    compare("three over",
            (const struct stream[]){{8, 1, 0, 30000}, {24, 1, 7, 30000}, {64, 1, 1, 20000}}, 3);
    compare("wants more than there is",
            (const struct stream[]){{8, 1, 0, 40000}, {96, 1, 0, 20000}}, 2);
}

Test(banks, strided_user_against_dense_one) {
    compare("half the banks", (const struct stream[]){{16, 2, 0, 40000}, {48, 1, 0, 20000}}, 2);
}

static uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

Test(banks, shares_do_not_depend_on_the_order_of_setting) {
    struct banks a, b;
    banks_init(&a);
    banks_init(&b);
    uint64_t state = 1;
    for (int k = 0; k < 1000; k++) {
        uint32_t want[BANKS_USERS];
        for (int u = 0; u < BANKS_USERS; u++)
            want[u] = next_random(&state) % (BANKS_ONE / 2);
        for (int u = 0; u < BANKS_USERS; u++)
            banks_set(&a, u, want[u]);
        for (int u = BANKS_USERS - 1; u >= 0; u--)
            banks_set(&b, u, want[u]);
        cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
        uint64_t used = 0;
        for (int u = 0; u < BANKS_USERS; u++)
            used += (uint64_t)a.demand[u] * a.speed[u] / BANKS_ONE;
        cr_assert(used <= BANKS_ONE);
    }
}

Test(banks, reports_whose_speed_changed) {
    struct banks b;
    banks_init(&b);
    cr_expect_eq(banks_set(&b, 5, BANKS_ONE), 0);
    cr_expect_eq(banks_set(&b, 4, BANKS_ONE / 2), 1u << 5);
    cr_expect_eq(b.speed[5], BANKS_ONE / 2);
    cr_expect_eq(banks_set(&b, 0, BANKS_ONE / 2), 1u << 5);
    cr_expect_eq(b.speed[5], 0);
    cr_expect_eq(banks_cycles(100, b.speed[5]), UINT64_MAX);
    cr_expect_eq(banks_set(&b, 0, 0), 1u << 5);
    cr_expect_eq(banks_set(&b, 4, 0), 1u << 5);
    cr_expect_eq(b.speed[5], BANKS_ONE);
}
