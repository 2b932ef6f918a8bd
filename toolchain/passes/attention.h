// SPDX-License-Identifier: Apache-2.0
// Inside the pass attention: what is known of one attention while it is recognised.
#ifndef NPU_PASSES_ATTENTION_H
#define NPU_PASSES_ATTENTION_H

#include "toolchain/passes/chain.h"
#include "toolchain/passes/mask.h"

enum { ATTENTION_PATH = 24 };

struct match {
    struct pass_context *c;
    struct graph_node *product, *softmax, *value; // value: the second product
    struct graph_node *path[ATTENTION_PATH]; // from the softmax back to the product, without them
    int npath;
    struct graph_value *weights; // what the second product reads
    struct graph_node *guard;    // also reads the scores, to see which rows are empty; or NULL
    bool zero_rows;
    double factor, inner; // inner: before the tanh
    bool capped, masked;
    struct mask mask;
};

// From the softmax on: finds the second product; false: there is none.
bool attention_find_value(struct match *m);
// From the softmax back: finds the first product and what lies between; false: there is none.
bool attention_find_product(struct match *m);
// Reads scale, softcap and mask off the path; m->mask has to be empty. false: something else is
// computed on it.
bool attention_read_path(struct match *m);

// A stage's operand that is one number.
bool attention_number(const struct chain *c, int64_t src, double *out);

#endif
