// SPDX-License-Identifier: Apache-2.0
// Common subexpressions: a node equal to an earlier one (op, attributes, chain, inputs; small
// constants by content) is replaced by it. Candidates are found by hash.
#include <string.h>

#include "toolchain/passes/pass.h"

#define BUCKETS 4096
#define CONST_BYTES 4096

struct entry {
    struct graph_node *n;
    struct entry *next;
};

static bool same_value(const struct graph_value *a, const struct graph_value *b) {
    if (a == b) return true;
    if (!a->data || !b->data || a->dtype != b->dtype || a->rank != b->rank ||
        graph_value_bytes(a) != graph_value_bytes(b))
        return false;
    if (memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return false;
    return graph_value_bytes(a) <= CONST_BYTES &&
           !memcmp(a->data, b->data, (size_t)graph_value_bytes(a));
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
        if (!same_value(a->inputs[i], b->inputs[i])) return false;
    for (int i = 0; i < a->nattr; i++)
        if (!same_attr(&a->attrs[i], graph_attr(b, a->attrs[i].key))) return false;
    return true;
}

static unsigned hash_of(const struct graph_node *n) {
    unsigned h = (unsigned)n->op * 31u + (unsigned)n->nin;
    for (int i = 0; i < n->nin; i++)
        h = h * 131u +
            (n->inputs[i]->data ? (unsigned)n->inputs[i]->rank : 7u + (unsigned)n->inputs[i]->id);
    return h % BUCKETS;
}

npu_status pass_cse(struct pass_context *c) {
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
