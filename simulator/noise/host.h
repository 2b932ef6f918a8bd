// SPDX-License-Identifier: Apache-2.0
//
// The host that dispatches: how long the processor in front of the device spends on each launch, on
// each call that launches nothing (a view), and on the single submission of a compiled program.
//
// Nothing here is simulated. Durations are drawn from measured distributions, which a model file
// holds (docs/jitter.md says where each figure of the built-in one comes from):
//
//     launch = level x slow(run) x fast(class, event)
//
// fast    inverse of the measured distribution of one call of that class in a tight loop,
//         independent from launch to launch
// level   what whole models pay over tight loops, at the median
// slow    state of the host during one run, median 1: measured quantiles over whole runs, driven by
//         a Gaussian copula whose correlation over consecutive runs is a sum of AR(1) components
//
// A draw is a function of (seed, run, event) alone: any order, thread or shard gives the same. With
// the source HOST off every draw is its median. Times are in picoseconds.
#ifndef SIMULATOR_NOISE_HOST_H
#define SIMULATOR_NOISE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"
#include "simulator/noise/noise.h"

/// Classes of dispatch, of which a model file has one distribution each.
enum host_class {
#define HOST_CLASS(NAME, text, kin, view, meaning) HOST_##NAME,
#include "simulator/noise/host_class.def"
    HOST_CLASS_COUNT
};

struct host_model;

/// The built-in model: one data-centre accelerator under PyTorch. Release with host_model_free.
NPU_MUST_USE npu_status host_model_default(struct host_model **out);

/// A model file, as scripts/measure_dispatch writes it. BAD_INPUT "FILE: KEY: ...", IO. Release
/// with host_model_free.
NPU_MUST_USE npu_status host_model_load(const char *path, struct host_model **out);

/// The same from memory; `where` (a file name) starts the messages.
NPU_MUST_USE npu_status host_model_parse(const char *json, size_t size, const char *where,
                                         struct host_model **out);

/// NULL is allowed.
void host_model_free(struct host_model *model);

/// Class of a framework's operator as a model file spells it ("batch_norm", "Gemm"), of a graph op
/// ("matmul", "conv"), or of a class by its own name ("conv2d"); `view` (may be NULL) becomes
/// whether such a call launches nothing. -1: none of these. A class that the file does not have
/// stands for its nearest kin that it has.
int host_model_class(const struct host_model *model, const char *op, bool *view);

/// "linear"; lives as long as the program.
const char *host_class_name(int op_class);

/// Launches that may wait in front of the device before the host must wait (at least 1).
uint32_t host_model_queue(const struct host_model *model);

/// One line for reports: device, framework and host behind the figures. Lives as long as the model.
const char *host_model_source(const struct host_model *model);

/// A whole inference that was measured where the model comes from: shown beside ours, never drawn
/// from.
struct host_measured {
    const char *model, *mode; // "modernbert-base", "eager"; live as long as the model
    double mean_us, std_us, cv;
    const double *quantiles_us; // at k / (nquantiles - 1); NULL: none
    int nquantiles;
};

/// The number of measured inferences, and one of them.
int host_model_nmeasured(const struct host_model *model);
struct host_measured host_model_measured(const struct host_model *model, int index);

/// One run of the host. The model is lent.
struct host_run {
    const struct host_model *model;
    struct noise noise;
    uint64_t run;
    double slow;     // factor of launches and views; 1: the median
    double compiled; // quantile, 0 to 1, of the submission of a compiled program
};

/// Starts a run: its slow part is drawn here.
void host_run_begin(const struct host_model *model, struct noise noise, uint64_t run,
                    struct host_run *out);

/// Time that the host spends on one launch. `event` numbers launches and views of the run together.
uint64_t host_launch_ps(const struct host_run *run, int op_class, uint64_t event);

/// Time of one call that launches nothing.
uint64_t host_view_ps(const struct host_run *run, uint64_t event);

/// From the call to the device's start of a program that is submitted as a whole.
uint64_t host_submit_ps(const struct host_run *run);

/// From the device's end to the return of whoever waits for it.
uint64_t host_finish_ps(const struct host_run *run);

#endif
