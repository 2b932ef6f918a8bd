// SPDX-License-Identifier: Apache-2.0
// Kernels as people read them: short names of values, names of ops, one line each.
#ifndef NPU_LOWER_TEXT_H
#define NPU_LOWER_TEXT_H

#include "runtime/base/str.h"
#include "toolchain/lower/internal.h"

// One step of a chain, as it is shown: "bias" with its operand, "relu" with none.
struct text_term {
    const char *name;
    bool gated; // an activation times another value
    int noperand;
    struct {
        const struct graph_value *value; // NULL: the immediate
        double imm;
    } operand[2];
};

enum { TEXT_TERMS = ISA_STAGES };

// The terms of n's chain in order; returns their number. Steps that only move are left out.
int text_chain(const struct graph_node *n, struct text_term terms[TEXT_TERMS]);

#endif
