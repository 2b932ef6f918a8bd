// SPDX-License-Identifier: Apache-2.0
// Activation functions that ops know by name (attribute act of GLU and GLU_MLP), as chains.
#ifndef NPU_GRAPH_ACT_H
#define NPU_GRAPH_ACT_H

#include "toolchain/graph/graph.h"

struct graph_act {
    const char *text; // the word in the attribute
    const char *glu;  // what a product gated by it is called
    int stages;
    struct isa_stage st[5]; // IN0 is what the function is of
    double imm[4];
};
extern const struct graph_act graph_acts[];
extern const int graph_act_count;

// -1 when unknown.
int graph_act_parse(const char *text);
// The function that this chain of IN0 alone computes, stage by stage; -1 when it is none of them. A
// chain without stages is the identity.
int graph_act_find(const struct isa_chain *c);
// The function as a chain.
struct isa_chain graph_act_chain(int act);

#endif
