// SPDX-License-Identifier: Apache-2.0
//
// Which layers of two runs belong together.
//
//   1. Layers that share their name or a node of the model are one group, over any number of steps:
//      conv and relu of a run that does not fuse meet the conv+relu of one that does.
//   2. What is left, because the two models name things differently, is aligned by order: the
//      longest common subsequence of (op, kernel, multiply-adds).
//   3. The rest is alone.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"
#include "simulator/trace/diff.h"

#define MOST_CELLS ((size_t)1 << 26) // of the table of step 2

double diff_us(const struct diff_run *run, uint64_t cycles) {
    return (double)cycles / (double)run->clock_mhz;
}

double diff_group_us(const struct diff *d, const struct diff_group *g) {
    return diff_us(&d->run[1], g->sum[1].cycles) - diff_us(&d->run[0], g->sum[0].cycles);
}

bool diff_mixed(const struct diff *d) {
    return (d->run[0].host_cycles > 0) != (d->run[1].host_cycles > 0);
}

bool diff_latencies(const struct diff *d) {
    return d->run[0].host && d->run[0].latency_us > 0 && d->run[1].host && d->run[1].latency_us > 0;
}

const char *diff_match_name(enum diff_match match) {
    switch (match) {
    case DIFF_NAMED: return "name";
    case DIFF_ORDERED: return "order";
    case DIFF_ALONE: return "none";
    }
    return "";
}

// ---- by name: sets of layers that grow together ----

static size_t root_of(size_t *parent, size_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

// The smaller number stays the root, so that groups are numbered in order.
static void join(size_t *parent, size_t i, size_t k) {
    i = root_of(parent, i);
    k = root_of(parent, k);
    if (i < k)
        parent[k] = i;
    else
        parent[i] = k;
}

static void meet(struct map *first, size_t *parent, const char *key, size_t *self) {
    if (!*key) return;
    size_t *other = map_get(first, key);
    if (other)
        join(parent, *self, *other);
    else
        map_put(first, key, self);
}

static size_t *by_name(struct arena *a, const struct diff *d) {
    const size_t na = d->run[0].nlayer, n = na + d->run[1].nlayer;
    size_t *parent = ARENA_ARRAY(a, size_t, n + 1), *self = ARENA_ARRAY(a, size_t, n + 1);
    struct map first;
    map_init(&first, a);
    for (size_t i = 0; i < n; i++)
        parent[i] = self[i] = i;
    for (size_t i = 0; i < n; i++) {
        const struct diff_layer *l = i < na ? &d->run[0].layer[i] : &d->run[1].layer[i - na];
        meet(&first, parent, l->name, &self[i]);
        for (size_t k = 0; k < l->nnodes; k++)
            meet(&first, parent, l->node[k], &self[i]);
    }
    return parent;
}

// ---- by order ----

static bool alike(const struct diff_layer *x, const struct diff_layer *y) {
    return x->macs == y->macs && strcmp(x->op, y->op) == 0 && strcmp(x->kernel, y->kernel) == 0;
}

// Joins what is left of both sides; `left` are numbers of layers, the second side's from na on.
static void by_order(struct arena *a, struct diff *d, size_t *parent, size_t *const left[2],
                     const size_t n[2]) {
    const size_t na = d->run[0].nlayer, width = n[1] + 1;
    if (!n[0] || !n[1]) return;
    d->too_many = n[0] + 1 > MOST_CELLS / width;
    if (d->too_many) return;
    uint32_t *most = ARENA_ARRAY(a, uint32_t, (n[0] + 1) * width); // pairs from (i, k) on
    const struct diff_layer *const x = d->run[0].layer, *const y = d->run[1].layer;
    for (size_t i = n[0]; i-- > 0;)
        for (size_t k = n[1]; k-- > 0;) {
            const uint32_t skip_a = most[(i + 1) * width + k], skip_b = most[i * width + k + 1];
            uint32_t best = skip_a > skip_b ? skip_a : skip_b;
            if (alike(&x[left[0][i]], &y[left[1][k] - na]) && most[(i + 1) * width + k + 1] >= best)
                best = most[(i + 1) * width + k + 1] + 1;
            most[i * width + k] = best;
        }
    for (size_t i = 0, k = 0; i < n[0] && k < n[1];) {
        const uint32_t here = most[i * width + k];
        if (alike(&x[left[0][i]], &y[left[1][k] - na]) &&
            here == most[(i + 1) * width + k + 1] + 1) {
            join(parent, left[0][i++], left[1][k++]);
        } else if (here == most[(i + 1) * width + k]) {
            i++;
        } else {
            k++;
        }
    }
}

// ---- groups ----

static void add(struct diff_layer *sum, const struct diff_layer *l, uint64_t *longest) {
    if (!sum->name || l->cycles > *longest) {
        *longest = l->cycles;
        sum->name = l->name;
        sum->op = l->op;
        sum->kernel = l->kernel;
        sum->bound = l->bound;
    }
    sum->cycles += l->cycles;
    sum->macs += l->macs;
    sum->mxu_cycles += l->mxu_cycles;
    sum->vec_cycles += l->vec_cycles;
    sum->dma_cycles += l->dma_cycles;
    sum->dram_read += l->dram_read;
    sum->dram_write += l->dram_write;
}

struct order {
    double us;
    size_t place;
    struct diff_group group;
};

static int by_difference(const void *a, const void *b) {
    const struct order *x = a, *y = b;
    const double p = x->us < 0 ? -x->us : x->us, q = y->us < 0 ? -y->us : y->us;
    if (p > q || p < q) return p > q ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

// Numbers of the layers that share no name with the other side, by side; named[i] for the others.
static void leftover(struct arena *a, size_t *parent, size_t na, size_t n, bool *named,
                     size_t *left[2], size_t nleft[2]) {
    int *sides = ARENA_ARRAY(a, int, n + 1);
    for (size_t i = 0; i < n; i++)
        sides[root_of(parent, i)] |= i < na ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        const int side = i >= na;
        named[i] = sides[root_of(parent, i)] == 3;
        if (!named[i]) left[side][nleft[side]++] = i;
    }
}

// Puts every layer into the group of its root; group[number[root]].
static void collect(struct arena *a, const struct diff *d, size_t *parent, const bool *named,
                    const size_t *number, struct order *order) {
    const size_t na = d->run[0].nlayer, n = na + d->run[1].nlayer;
    uint64_t(*longest)[2] = arena_alloc_array(a, n + 1, sizeof *longest);
    for (size_t i = 0; i < n; i++)
        order[number[root_of(parent, i)]].group.n[i >= na]++;
    for (size_t i = 0; i < n; i++) {
        const int side = i >= na;
        const size_t at = number[root_of(parent, i)], index = side ? i - na : i;
        struct diff_group *g = &order[at].group;
        if (!g->layer[side]) {
            g->layer[side] = ARENA_ARRAY(a, size_t, g->n[side]);
            g->n[side] = 0;
        }
        g->layer[side][g->n[side]++] = index;
        g->match = named[i] ? DIFF_NAMED : DIFF_ORDERED;
        add(&g->sum[side], &d->run[side].layer[index], &longest[at][side]);
    }
}

void diff_align(struct arena *a, struct diff *d) {
    const size_t na = d->run[0].nlayer, n = na + d->run[1].nlayer;
    size_t *parent = by_name(a, d), nleft[2] = {0}, ngroup = 0;
    size_t *left[2] = {ARENA_ARRAY(a, size_t, n + 1), ARENA_ARRAY(a, size_t, n + 1)};
    bool *named = ARENA_ARRAY(a, bool, n + 1);
    leftover(a, parent, na, n, named, left, nleft);
    by_order(a, d, parent, left, nleft);
    size_t *number = ARENA_ARRAY(a, size_t, n + 1);
    for (size_t i = 0; i < n; i++)
        if (root_of(parent, i) == i) number[i] = ngroup++;
    struct order *order = ARENA_ARRAY(a, struct order, ngroup + 1);
    collect(a, d, parent, named, number, order);
    for (size_t i = 0; i < ngroup; i++) {
        struct diff_group *g = &order[i].group;
        if (!g->n[0] || !g->n[1]) g->match = DIFF_ALONE;
        order[i].us = diff_group_us(d, g);
        order[i].place = i;
    }
    if (ngroup) qsort(order, ngroup, sizeof *order, by_difference);
    d->group = ARENA_ARRAY(a, struct diff_group, ngroup + 1);
    d->ngroup = ngroup;
    for (size_t i = 0; i < ngroup; i++)
        d->group[i] = order[i].group;
}
