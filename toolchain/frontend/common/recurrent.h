// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: one direction of an RNN, GRU or LSTM, unrolled.
#ifndef NPU_FRONTEND_COMMON_RECURRENT_H
#define NPU_FRONTEND_COMMON_RECURRENT_H

#include "toolchain/frontend/common/build.h"

enum { RECURRENT_STEPS_MAX = 4096 };

struct recurrent {
    int gates;         // 1: RNN; 3: GRU, gates z, r, h; 4: LSTM, gates i, o, f, c
    bool before_reset; // GRU: the reset gate applies to h R', not to h
    int64_t steps, batch, in, hidden;
};

struct recurrent_weights {
    struct graph_value *w;       // [gates * H, I]
    struct graph_value *rec;     // [gates * H, H]
    struct graph_value *wb, *rb; // [gates * H] each, or both NULL
    struct graph_value *peep;    // LSTM: [3 * H] for i, o, f, or NULL
    const char *chain[3];        // activations as chains, or "softplus": RNN 1, GRU 2, LSTM 3
    bool backward;
    double clip;                 // gates see values within +-clip; 0: as they are
    bool couple;                 // LSTM: the forget gate is 1 - the input gate
    struct graph_value *lengths; // integers [B]: steps from there on do not count; NULL: all do
};

// x[T,B,I]. *h and *c [B,H] are the initial states, NULL: zeros, and become the last ones (*c for
// LSTM only). ys[t], one per step, are the states after each step, zeros where it does not count.
// BAD_INPUT: known lengths beyond the number of steps.
NPU_MUST_USE npu_status recurrent_walk(const struct build *b, const struct recurrent *r,
                                       struct graph_value *x,
                                       const struct recurrent_weights *weights,
                                       struct graph_value **h, struct graph_value **c,
                                       struct graph_value **ys);

// Part of x along its first dimension: x[at .. at + count), the dimension dropped when count is 1
// and `drop`. BAD_INPUT when x is too short.
NPU_MUST_USE npu_status recurrent_rows(const struct build *b, struct graph_value *x, int64_t at,
                                       int64_t count, bool drop, struct graph_value **out);

#endif
