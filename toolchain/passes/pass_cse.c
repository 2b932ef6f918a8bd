// SPDX-License-Identifier: Apache-2.0
// Common subexpressions: a node equal to an earlier one (op, attributes, chain, inputs) is replaced
// by it. Before that constants of equal content become one, since some exporters write one for each
// use. Candidates are found by hash.
#include <string.h>

#include "toolchain/passes/pass.h"

#define BUCKETS 4096
#define CONST_BYTES (4 << 20)
#define HASHED_BYTES 64 // at either end of a constant

struct entry {
    struct graph_node *n;
    struct entry *next;
};

struct constant {
    struct graph_value *v;
    struct constant *next;
};

static unsigned hash_bytes(unsigned h, const void *data, size_t n) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++)
        h = h * 131u + bytes[i];
    return h;
}

static unsigned hash_constant(const struct graph_value *v) {
    size_t bytes = (size_t)graph_value_bytes(v), part = bytes < HASHED_BYTES ? bytes : HASHED_BYTES;
    unsigned h = hash_bytes((unsigned)v->dtype, v->dims, (size_t)v->rank * sizeof *v->dims);
    h = hash_bytes(h, v->data, part);
    return hash_bytes(h, (const uint8_t *)v->data + bytes - part, part) % BUCKETS;
}

static bool same_constant(const struct graph_value *a, const struct graph_value *b) {
    return a->dtype == b->dtype && a->rank == b->rank && !a->has_order && !b->has_order &&
           !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) &&
           !memcmp(a->data, b->data, (size_t)graph_value_bytes(a));
}

// Every use of a constant becomes one of the first that equals it.
static void merge_constants(struct pass_context *c) {
    struct graph *g = c->g;
    struct constant **table = ARENA_ARRAY(c->scratch, struct constant *, BUCKETS);
    struct graph_value **first =
        ARENA_ARRAY(c->scratch, struct graph_value *, (size_t)g->nvalue + 1);
    for (int i = 0; i < g->nvalue; i++) {
        struct graph_value *v = first[i] = g->values[i];
        if (!v || !v->data || v->is_output || graph_value_bytes(v) > CONST_BYTES) continue;
        unsigned h = hash_constant(v);
        const struct constant *k = table[h];
        while (k && !same_constant(k->v, v))
            k = k->next;
        if (k) {
            first[i] = k->v;
            continue;
        }
        struct constant *fresh = ARENA_NEW(c->scratch, struct constant);
        *fresh = (struct constant){v, table[h]};
        table[h] = fresh;
    }
    for (struct graph_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nin; k++)
            n->inputs[k] = first[n->inputs[k]->id];
}

static bool same_bits(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static bool same_attr(const struct graph_attr *a, const struct graph_attr *b) {
    if (!b || a->n != b->n || a->i != b->i || !same_bits(a->f, b->f)) return false;
    if (a->ints && (!b->ints || memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints) != 0))
        return false;
    for (int i = 0; a->floats && i < a->n; i++)
        if (!b->floats || !same_bits(a->floats[i], b->floats[i])) return false;
    if (a->word || b->word) return a->word && b->word && !strcmp(a->word, b->word);
    return true;
}

static bool same_node(const struct graph_node *a, const struct graph_node *b) {
    if (a->op != b->op || a->nin != b->nin || a->nout != b->nout || a->nattr != b->nattr ||
        a->has_chain != b->has_chain)
        return false;
    if (a->has_chain && (memcmp(&a->chain, &b->chain, sizeof a->chain) != 0 ||
                         memcmp(a->chain_in, b->chain_in, sizeof a->chain_in) != 0))
        return false;
    if (a->outputs[0]->dtype != b->outputs[0]->dtype) return false;
    for (int i = 0; i < a->nin; i++)
        if (a->inputs[i] != b->inputs[i]) return false;
    for (int i = 0; i < a->nattr; i++)
        if (!same_attr(&a->attrs[i], graph_attr(b, a->attrs[i].key))) return false;
    return true;
}

static unsigned hash_of(const struct graph_node *n) {
    unsigned h = (unsigned)n->op * 31u + (unsigned)n->nin;
    for (int i = 0; i < n->nin; i++)
        h = h * 131u + 7u + (unsigned)n->inputs[i]->id;
    return h % BUCKETS;
}

npu_status pass_cse(struct pass_context *c) {
    merge_constants(c);
    struct entry **table = ARENA_ARRAY(c->scratch, struct entry *, BUCKETS);
    for (struct graph_node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        if (n->nout != 1) continue;
        unsigned h = hash_of(n);
        struct entry *e = table[h];
        while (e && !same_node(e->n, n))
            e = e->next;
        if (e && !(n->outputs[0]->is_output && e->n->outputs[0]->is_output)) {
            struct graph_node *kept = e->n;
            graph_replace_uses(c->g, n->outputs[0], kept->outputs[0]);
            graph_add_origins(c->g, kept, n);
            graph_remove_node(c->g, n);
            continue;
        }
        struct entry *fresh = ARENA_NEW(c->scratch, struct entry);
        *fresh = (struct entry){n, table[h]};
        table[h] = fresh;
    }
    return NULL;
}
