// SPDX-License-Identifier: Apache-2.0
//
// A host model as read. Durations are microseconds; all tables live in the model's arena.
#ifndef SIMULATOR_NOISE_HOST_MODEL_H
#define SIMULATOR_NOISE_HOST_MODEL_H

#include "runtime/base/arena.h"
#include "simulator/noise/host.h"

/// A quantile function: q[k] is the quantile at k / (n - 1). Between neighbours it is straight,
/// from HOST_TAIL on straight in its logarithm: few measurements make a long last piece.
struct host_table {
    const double *q; // not decreasing, above 0
    int n;           // from 2 on
    double p999;     // the quantile at 0.999, between q's neighbours of it; 0: not given
};

#define HOST_TAIL 0.995

/// Value at u, 0 to 1.
double host_table_at(const struct host_table *t, double u);

/// One AR(1) component of a normal variable: weight is its share of the variance, phi the
/// correlation of consecutive runs.
struct host_component {
    double weight, phi;
};

enum { HOST_MAX_COMPONENTS = 4 };

/// A normal variable of variance 1 over runs: what the weights leave of 1 is white.
struct host_process {
    struct host_component component[HOST_MAX_COMPONENTS];
    int n;
};

struct host_model {
    struct arena *arena;
    const char *source;
    uint32_t queue;
    double timer_us;                          // taken from every dispatch below, already
    struct host_table fast[HOST_CLASS_COUNT]; // of the class, or of its kin
    double level;                             // of whole models over tight loops
    struct host_table slow;                   // factor, 1 at 0.5
    struct host_process slow_process;
    struct host_table compiled; // submission and completion together
    struct host_process compiled_process;
    double submit_share; // of that before the device starts
    struct host_measured *measured;
    int nmeasured;
};

/// The built-in model file.
extern const char host_default_json[];
extern const size_t host_default_json_size;

#endif
