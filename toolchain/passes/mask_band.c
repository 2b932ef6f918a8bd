// SPDX-License-Identifier: Apache-2.0
// Bands. The keys that query i sees are those from i + low to i + high; low and high are the same
// for all queries, or there is no limit on that side. Each row that ends before the last key says
// what high is, each that begins after the first key what low is; all other rows must agree.
#include "toolchain/passes/mask.h"

// Neighbours of j among the columns that count.
struct columns {
    const uint8_t *counts;
    int64_t s;
};

static int64_t next(const struct columns *c, int64_t j, int64_t step) {
    do
        j += step;
    while (j >= 0 && j < c->s && c->counts && !c->counts[j]);
    return j;
}

// The range that a bound may lie in.
struct range {
    int64_t lo, hi;
};

static void narrow(struct range *r, int64_t lo, int64_t hi) {
    if (lo > r->lo) r->lo = lo;
    if (hi < r->hi) r->hi = hi;
}

#define FAR (INT64_C(1) << 40)

// One row: what it says about low and high. false: it is no run.
static bool row_range(const uint8_t *see, const struct columns *c, int64_t i, struct range *low,
                      struct range *high, bool *empty) {
    int64_t first = next(c, -1, 1), last = next(c, c->s, -1), from = -1, to = -1;
    for (int64_t j = first; j < c->s; j = next(c, j, 1)) {
        if (!see[j]) continue;
        if (from < 0) from = j;
        if (to >= 0 && next(c, to, 1) != j) return false;
        to = j;
    }
    *empty = from < 0;
    if (*empty) return true;
    narrow(high, to - i, to == last ? FAR : next(c, to, 1) - 1 - i);
    narrow(low, from == first ? -FAR : next(c, from, -1) + 1 - i, from - i);
    return true;
}

// Rows that see nothing must not see a key that counts within the bounds.
static bool hides_rows(const uint8_t *see, const struct columns *c, int64_t m, int64_t low,
                       int64_t high) {
    int64_t first = next(c, -1, 1);
    for (int64_t i = 0; i < m; i++) {
        bool empty = true;
        for (int64_t j = first; empty && j < c->s; j = next(c, j, 1))
            empty = !see[i * c->s + j];
        int64_t from = i + low > 0 ? i + low : 0;
        if (empty && from < c->s && next(c, from - 1, 1) < c->s && next(c, from - 1, 1) <= i + high)
            return false;
    }
    return true;
}

static void to_window(int64_t low, int64_t high, int64_t window[3]) {
    bool left = low > -FAR, right = high < FAR;
    int64_t offset = left && right && low <= 0 && high >= 0 ? 0 : right ? high : low;
    window[0] = left ? offset - low : -1;
    window[1] = right ? high - offset : -1;
    window[2] = offset;
}

bool mask_band(const uint8_t *see, const uint8_t *column, int64_t m, int64_t s, int64_t window[3]) {
    struct columns c = {column, s};
    struct range low = {-FAR, FAR}, high = {-FAR, FAR};
    bool any_empty = false;
    if (next(&c, -1, 1) >= s) return false;
    for (int64_t i = 0; i < m; i++) {
        bool empty;
        if (!row_range(see + i * s, &c, i, &low, &high, &empty)) return false;
        any_empty |= empty;
    }
    if (low.lo > low.hi || high.lo > high.hi || high.lo == -FAR) return false;
    // No limit where none is needed; the tightest bounds hide most.
    for (int k = 0; k < 4; k++) {
        int64_t h = k & 1 ? high.lo : FAR, l = k & 2 ? low.hi : -FAR;
        if (h > high.hi || l < low.lo || (any_empty && !hides_rows(see, &c, m, l, h))) continue;
        to_window(l, h, window);
        return true;
    }
    return false;
}
