// SPDX-License-Identifier: Apache-2.0
// Borders. Each dimension falls into up to three segments (before, inside, after); every
// combination of segments is one block:
//
//   constant   a block that is inside in every dimension is a copy, any other a fill
//   edge       the border repeats the edge element (stride 0); reflect: it runs backwards from the
//   edge (stride -1)
//
// A negative pad crops.
#include "toolchain/lower/internal.h"

#include <string.h>

struct segment {
    int64_t at, size, from, step;
    bool border;
}; // output start, extent; input start and step

static int segments(int64_t in, int64_t before, int64_t after, const char *mode,
                    struct segment *s) {
    bool reflect = !strcmp(mode, "reflect");
    int n = 0;
    int64_t skip = lower_max(0, -before), inside = in - skip - lower_max(0, -after);
    if (before > 0)
        s[n++] = (struct segment){0, before, reflect ? before : 0, reflect ? -1 : 0, true};
    if (inside > 0) s[n++] = (struct segment){lower_max(before, 0), inside, skip, 1, false};
    if (after > 0)
        s[n++] = (struct segment){lower_max(before, 0) + inside, after, reflect ? in - 2 : in - 1,
                                  reflect ? -1 : 0, true};
    return n;
}

static npu_status block(struct lower *L, const struct graph_node *n,
                        const struct segment *const *seg, bool border, bool constant) {
    const struct graph_value *x = n->inputs[0], *y = n->outputs[0];
    struct lower_affine a = {.rank = x->rank,
                             .has = {true, false, false},
                             .in = {L->place[x->id]},
                             .out = L->place[y->id]};
    int64_t from[LOWER_DIMS] = {0}, to[LOWER_DIMS] = {0};
    for (int d = 0; d < x->rank; d++) {
        from[d] = seg[d]->from;
        to[d] = seg[d]->at;
        a.size[d] = seg[d]->size;
        a.in[0].stride[d] *= seg[d]->step;
    }
    a.out = lower_at(&a.out, x->rank, to);
    if (border && constant) {
        tile_step(L->p);
        lower_fill(L, TILE_LOAD, x->rank, a.size, &a.out,
                   (float)graph_float(n, GRAPH_ATTR_VALUE, 0));
        return NULL;
    }
    a.in[0].offset = lower_at(&L->place[x->id], x->rank, from).offset;
    return lower_affine_run(L, &a);
}

npu_status lower_pad(struct lower *L, const struct graph_node *n) {
    const struct graph_value *x = n->inputs[0];
    const char *mode = graph_word(n, GRAPH_ATTR_MODE, "constant");
    bool constant = !strcmp(mode, "constant");
    lower_kernel(L, n, "pad");
    struct segment seg[GRAPH_MAX_RANK][3] = {{{0}}};
    int64_t count[LOWER_DIMS], one[LOWER_DIMS], at[LOWER_DIMS] = {0};
    for (int d = 0; d < x->rank; d++) {
        int64_t before = graph_ints_at(n, GRAPH_ATTR_PADS_BEFORE, d, 0),
                after = graph_ints_at(n, GRAPH_ATTR_PADS_AFTER, d, 0);
        if (!strcmp(mode, "reflect") && (before >= x->dims[d] || after >= x->dims[d]))
            return npu_fail(UNSUPPORTED,
                            "a reflected border of %lld and %lld around dimension %d of size %lld; "
                            "it must be smaller than the dimension",
                            (long long)before, (long long)after, d, (long long)x->dims[d]);
        count[d] = segments(x->dims[d], before, after, mode, seg[d]);
        one[d] = 1;
    }
    do {
        const struct segment *now[GRAPH_MAX_RANK];
        bool border = false;
        for (int d = 0; d < x->rank; d++) {
            now[d] = &seg[d][at[d]];
            border = border || now[d]->border;
        }
        NPU_TRY(block(L, n, now, border, constant));
    } while (lower_next(x->rank, count, one, at));
    return NULL;
}
