// SPDX-License-Identifier: Apache-2.0
// Hill climbing over tile sizes: from a small tile, double one dimension at a time while it fits,
// the cheapest neighbour first; the cheapest tile met wins. Tiles are then evened out, so that no
// short one is left over.
#include "toolchain/lower/internal.h"

#include <string.h>

static bool grow(const struct lower_climb *c, int64_t most, struct lower_found *at) {
    struct lower_found next = {0};
    bool any = false;
    for (int d = 0; d < c->rank; d++) {
        if (at->tile[d] >= c->size[d] || at->tile[d] >= 65536) continue;
        struct lower_found t = *at;
        t.tile[d] = lower_min(lower_min(at->tile[d] * 2, c->size[d]), 65536);
        c->price(c->ctx, &t);
        if (t.bytes > most) continue;
        if (!any || t.cycles < next.cycles) next = t;
        any = true;
    }
    if (any) *at = next;
    return any;
}

struct lower_found lower_climb_run(const struct lower *L, const struct lower_climb *c) {
    struct lower_found best;
    memset(&best, 0, sizeof best);
    for (int d = 0; d < c->rank; d++)
        best.tile[d] = c->from ? c->from[d] : 1;
    c->price(c->ctx, &best);
    struct lower_found at = best;
    while (grow(c, lower_spm(L, true), &at))
        if (at.cycles < best.cycles) best = at;
    for (int d = 0; d < c->rank; d++)
        best.tile[d] = lower_ceil(c->size[d], lower_ceil(c->size[d], best.tile[d]));
    c->price(c->ctx, &best);
    return best;
}
