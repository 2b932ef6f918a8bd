// SPDX-License-Identifier: Apache-2.0
//
// Two runs compared: report.json or trace events of npusim, each read strictly from any bytes.
//
//     struct diff d;
//     diff_load(a, "before.json", &d.run[0]), diff_load(a, "after.json", &d.run[1]);
//     diff_align(a, &d);
//     diff_text(&d, &text), diff_json(&d, &json);
//
// Memory: everything lives in the arena, whose end also releases what was read.
#ifndef SIMULATOR_TRACE_DIFF_H
#define SIMULATOR_TRACE_DIFF_H

#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "simulator/trace/trace.h"

struct diff_engine {
    const char *name;
    uint64_t cycles[TRACE_CLASSES]; ///< adds up to the run
};

struct diff_layer {
    const char *name, *op, *kernel, *bound; ///< "" where the file has none
    const char **node;                      ///< the model's names
    size_t nnodes;
    uint64_t cycles; ///< those of all layers add up to the run
    uint64_t macs, mxu_cycles, vec_cycles, dma_cycles, dram_read, dram_write;
};

/// What a file says about its run.
struct diff_run {
    const char *file, *program, *target;
    uint64_t clock_mhz, cycles;
    bool host;            ///< a host submitted it, whose time is in latency_us
    double latency_us;    ///< without noise, as the host sees it; 0: not known, as from a trace
    uint64_t host_cycles; ///< of `cycles`: all engines waited for the host
    struct diff_engine *engine;
    size_t nengine;
    struct diff_layer *layer; ///< in order of their start
    size_t nlayer;
};

/// How layers of the two runs were found to belong together.
enum diff_match {
    DIFF_NAMED,   ///< they share the layer's name or a node of the model
    DIFF_ORDERED, ///< the same op, kernel and multiply-adds, in the same order
    DIFF_ALONE,   ///< only one run has it
};

/// Layers of both runs that belong together: one each, or more where the runs fuse differently.
struct diff_group {
    enum diff_match match;
    size_t *layer[2], n[2];   ///< indices, ascending
    struct diff_layer sum[2]; ///< numbers added up; name, op, kernel, bound: of the longest
};

struct diff {
    struct diff_run run[2];
    struct diff_group *group; ///< largest difference of time first
    size_t ngroup;
    bool too_many; ///< of both runs, layers without common names: not aligned by order
};

/// Reads a report or a trace, packed or not, from memory; `name` is for messages. BAD_INPUT with
/// the place when it is damaged or something else, UNSUPPORTED for another version of the schema.
NPU_MUST_USE npu_status diff_parse(struct arena *a, struct span bytes, const char *name,
                                   struct diff_run *out);
/// The same from a file; IO.
NPU_MUST_USE npu_status diff_load(struct arena *a, const char *path, struct diff_run *out);

/// Finds out which layers belong together; both runs have been read.
void diff_align(struct arena *a, struct diff *d);

/// Cycles as time, to compare machines with different clocks.
double diff_us(const struct diff_run *run, uint64_t cycles);

/// By how many microseconds the second run takes longer over a group.
double diff_group_us(const struct diff *d, const struct diff_group *g);

/// Whether one run's cycles have waits for a host and the other's have not: an eager program
/// against a compiled one.
bool diff_mixed(const struct diff *d);

/// Whether a mixed pair can be compared as its hosts see it: both had one, and its time is known.
bool diff_latencies(const struct diff *d);

const char *diff_match_name(enum diff_match match);

/// Tables for people.
void diff_text(const struct diff *d, struct str *out);

/// The same as JSON (docs/reading-a-trace.md).
void diff_json(const struct diff *d, struct str *out);

#endif
