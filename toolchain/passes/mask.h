// SPDX-License-Identifier: Apache-2.0
// What a model does to attention's scores before the softmax, read as a mask: which keys each query
// sees, as a window, a small operand, or both.
//
// Steps are noted in the order in which they happen; mask_finish() makes of all of them together
//
//   window    constant steps that leave a band of each row (causal, sliding, both, any alignment)
//   operand   what the window does not say: integers, 0 hides; or floats that are added. Dimensions
//             along which it does not change have size 1: a mask per key that the model repeats for
//             every query is one row, and the model's own input where that is all it is
//   fill      the score that a hidden key has; -infinity: it takes no part
#ifndef NPU_PASSES_MASK_H
#define NPU_PASSES_MASK_H

#include "toolchain/passes/pass.h"

enum { MASK_LEAVES = 12, MASK_VIA = 24 };

// A value that hides keys or is added to scores, and the nodes between it and the scores, outermost
// first.
struct mask_leaf {
    struct graph_value *v;
    bool keep; // a key is seen where v is not 0 (false: where it is 0); unused for addends
    struct graph_node *via[MASK_VIA];
    int nvia;
    int rank; // of the scores that it meets
    int64_t dims[GRAPH_MAX_RANK];
};

struct mask {
    struct pass_context *c;
    bool weak; // constants that only lower a score far are taken to hide a key; see mask_finish()
    struct mask_leaf hide[MASK_LEAVES], add[MASK_LEAVES];
    int nhide, nadd;
    bool filled, used_weak;
    double fill;

    struct graph_value *operand; // NULL: none
    bool windowed;
    int64_t window[3]; // as the attribute of attention
    bool sees_all;     // every query is known to see a key
};

// score + v (or - v when negative), for scores of those dimensions. false: not understood.
bool mask_add(struct mask *m, struct graph_value *v, bool negative,
              const struct graph_value *score);
// cond ? score : fill (hides: cond ? fill : score).
bool mask_hide(struct mask *m, struct graph_value *cond, bool hides, double fill,
               const struct graph_value *score);

// Puts everything together for scores of `rank` dimensions dims [.., H, M, S] (the steps' scores
// are these, possibly with other batch dimensions in the same order). New nodes go before `before`.
// *fits = false: the steps cannot be expressed; nothing was added then, and the caller may try
// again without `weak`.
npu_status mask_finish(struct mask *m, int rank, const int64_t *dims, struct graph_node *before,
                       bool *fits);

// Does the same for the window and the mask operand that an attention node has. *done: the node was
// replaced by one with a simpler mask.
npu_status mask_simplify(struct pass_context *c, struct graph_node *attention, bool *done);

// The band that a matrix [m][s] of 0 and 1 is, given that columns with column[j] == 0 may be
// anything: window as the attribute of attention. false: it is none. (Exposed for tests.)
bool mask_band(const uint8_t *see, const uint8_t *column, int64_t m, int64_t s, int64_t window[3]);

#endif
