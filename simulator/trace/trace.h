// SPDX-License-Identifier: Apache-2.0
//
// Views of one run. struct trace_run is everything that a view may need; the timing machine fills
// the counters (units_result), the caller the names and the metadata. Views write text into a
// struct str or a file; they compute shares and bounds, but no time.
//
//     struct trace_run run = {.program = "resnet50.npu", .target = "server", .hw = &hw, ...};
//     trace_text(&run, &out);                 // --trace
//     trace_json_write(&run, &log, "t.json.gz");   // --trace=t.json.gz
#ifndef SIMULATOR_TRACE_TRACE_H
#define SIMULATOR_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "simulator/noise/stats.h"
#include "simulator/trace/event.h"

/// What an engine did with the run's cycles.
struct trace_engine {
    int engine;                     ///< enum isa_engine
    uint64_t cycles[TRACE_CLASSES]; ///< sums to the run's length
    uint64_t wait_for[ISA_ENGINES]; ///< of WAIT_SEMAPHORE and WAIT_DMA: who signals
    uint64_t instructions;
};

/// What happened under one effective tag.
struct trace_tag {
    uint32_t tag;
    uint64_t first, last; ///< cycles: first start and last end of anything
    uint64_t start, end;  ///< of MXU and VEC work only; equal when there was none
    uint64_t macs, elems; ///< multiply-adds; elements through the vector chain
    uint64_t mxu_cycles, vec_cycles, dma_cycles; ///< engines occupied
    uint64_t dram_read, dram_write, spm_bytes;   ///< useful bytes
    uint64_t instructions;
};

struct trace_dram {
    uint64_t read_bytes, write_bytes; ///< on the bus
    uint64_t fetch_bytes;             ///< instructions, part of read_bytes
    uint64_t row_hits, row_misses, row_conflicts, refreshes;
    uint64_t refresh_ps, bus_ps; ///< summed over channels
    int channels;
};

/// Where a tag comes from. Strings live as long as the run; NULL: unknown.
struct trace_name {
    int layer;        ///< index of the layer, tags of one layer share it; -1: unknown
    const char *name; ///< layer
    const char *op, *kernel;
    const char *node;         ///< the model's own node names, the first ones when there are many
    const char *const *nodes; ///< all of them
    size_t nnodes;
};
typedef bool trace_lookup(void *ctx, uint32_t tag, struct trace_name *out);

struct trace_run;

/// The name of a tag by the run's lookup; layer -1 and no strings when it is unknown.
struct trace_name trace_name_of(const struct trace_run *run, uint32_t tag);

/// What a layer has to do at least, whatever the tiling: input of the bounds. In the order of
/// execution.
struct trace_work {
    const char *name;
    uint64_t macs;           ///< useful multiply-adds
    uint64_t m, n, k, batch; ///< shape of the product, macs = batch * m * n * k; 0: not known
    int dtype;               ///< enum isa_dtype of its operands
    uint64_t elems;          ///< elements that the vector engine has to pass
    uint64_t weight_bytes;   ///< constants of this layer
    uint64_t io_bytes;       ///< the program's inputs and outputs that this layer reads or writes
};

struct trace_bounds {
    double mac_cycles, dram_cycles, vector_cycles;
    double ideal_cycles;  ///< largest of the three
    double mapped_cycles; ///< with array utilisation, refresh, and a window of weights (bounds.c)
};

/// A source of jitter, and what turning it off alone takes away of the variance. These shares need
/// not add up to 1: sources meet (one hides behind another).
struct trace_source {
    const char *name;
    bool sampled;                ///< from a fitted model; else simulated
    struct noise_estimate share; ///< 1 - var(without it) / var(all)
    double mean_us, std_us;      ///< without it
};

/// Distribution over several runs, computed by the caller; n <= 1: not written.
struct trace_runs {
    const char *program; ///< whose runs; NULL: those of the trace_run
    uint64_t n, seed;
    uint64_t first;                      ///< number of the first run: draws depend on it
    const char *noise;                   ///< "off" or the list
    const double *time_us;               ///< n times in the order of running
    const struct noise_summary *summary; ///< of them; NULL: none was made
    const struct trace_source *source;   ///< shares of the variance, nsource of them (may be 0)
    size_t nsource;
    uint64_t source_runs; ///< runs, from the first on, that the shares are computed from
    double quiet_us;      ///< the run without noise
    double sampled_us;    ///< mean part of a run that is sampled from a fitted model; the rest is
                          ///< simulated
    /// --versus: the same runs of another program, NULL: none; and its times over these.
    const struct trace_runs *versus;
    struct noise_estimate mean_ratio, std_ratio;
};

struct trace_output {
    const char *name, *dtype;
    int rank;
    const int64_t *shape;
    uint32_t crc32;
};

/// An input and where its values came from: a file, or how they were drawn.
struct trace_input {
    const char *name, *source;
};

/// The run on a machine with other timing parameters: what its critical path says, and what running
/// it again took.
struct trace_whatif {
    const char *title;  ///< "twice the memory channels"
    const char *change; ///< "dram.channels 4 -> 8"
    double predicted_us, rerun_us;
};

/// What the host did for an eager program.
struct trace_host {
    uint64_t launches, views; ///< launches 0: the program was submitted whole
    const char *source;       ///< of the model that its times are drawn from; NULL: none, all are 0
    double launch_us, view_us;
    double full_us;         ///< it waited since the queue was full
    uint64_t bubble_cycles; ///< all engines waited for it: their class HOST
    double latency_us;      ///< of the run, as the host sees it
};

struct trace_run {
    const char *program, *target;
    const struct hw *hw;
    const char *fault;   ///< the fault that ended the run early, NULL
    const char *stopped; ///< where the user stopped it early, NULL
    uint64_t cycles, instructions;
    const struct trace_engine *engine;
    size_t nengine;
    const struct trace_tag *tag; ///< in order of first appearance
    size_t ntag;
    struct trace_dram dram;
    struct span code;        ///< instructions that the events' pc counts in; may be empty
    uint64_t spm_peak_bytes; ///< from the program's plan; 0: unknown
    trace_lookup *lookup;    ///< may be NULL
    void *lookup_ctx;
    const struct trace_work *work; ///< may be NULL
    size_t nwork;
    struct trace_runs runs;
    struct trace_host launches;
    const struct trace_input *input;
    size_t ninput;
    const struct trace_output *output;
    size_t noutput;
    const struct trace_whatif *whatif; ///< may be NULL
    size_t nwhatif;
    double host_seconds; ///< of the run loop
    uint64_t peak_rss_bytes;
};

/// One layer of the tables: tags with the same layer number added up.
struct trace_layer {
    struct trace_name name;
    uint32_t tag;           ///< its first
    struct trace_tag total; ///< sums; first..last and start..end of all
    uint64_t cycles; ///< by which it moved the end of the run on: these add up to the run's length
    double utilization; ///< multiply-adds against the peak of the array over `cycles`
    const char *bound;  ///< "mxu", "vec", "dram" or "latency"
};

/// When a tag or a layer is at work: its MXU and VEC instructions, or, without any, all of it.
uint64_t trace_tag_start(const struct trace_tag *t);
uint64_t trace_tag_end(const struct trace_tag *t);

/// Layers of a run in order of their start, none beyond its end, which may be early; *out is freed
/// with base_free. NO_MEMORY.
NPU_MUST_USE npu_status trace_layers(const struct trace_run *run, struct trace_layer **out,
                                     size_t *count);

/// Bounds from the work list; all 0 without one, and for a run that ended early: the list is of the
/// whole program. NO_MEMORY.
NPU_MUST_USE npu_status trace_bounds(const struct trace_run *run, struct trace_bounds *out);

/// Cycle report for people.
NPU_MUST_USE npu_status trace_text(const struct trace_run *run, struct str *out);

/// report.json as text.
NPU_MUST_USE npu_status trace_report_text(const struct trace_run *run, struct str *out);

/// The same as a file, written complete or not at all.
NPU_MUST_USE npu_status trace_report_write(const struct trace_run *run, const char *path);

/// Chrome trace events as Perfetto reads them; gzip when the path ends in .gz. The log must be
/// finished.
NPU_MUST_USE npu_status trace_json_write(const struct trace_run *run, const struct trace_log *log,
                                         const char *path);

/// One row per instruction.
NPU_MUST_USE npu_status trace_csv_write(const struct trace_run *run, const struct trace_log *log,
                                        const char *path);

/// One row per layer. The log is not needed.
NPU_MUST_USE npu_status trace_layers_csv_write(const struct trace_run *run,
                                               const struct trace_log *log, const char *path);

/// Value change dump (IEEE 1364): states, instructions, queues, memory, semaphores (vcd.c); gzip
/// when the path ends in .gz.
NPU_MUST_USE npu_status trace_vcd_write(const struct trace_run *run, const struct trace_log *log,
                                        const char *path);

/// Endings of view.def with blanks between them, for messages.
const char *trace_endings(void);

/// A page for a browser: everything above in one file that needs no network (html.h).
NPU_MUST_USE npu_status trace_html_write(const struct trace_run *run, const struct trace_log *log,
                                         const char *path);

/// Whether a path's ending names a view of the log.
bool trace_path_known(const char *path);

/// The view that the ending names. UNSUPPORTED for any other ending.
NPU_MUST_USE npu_status trace_write(const struct trace_run *run, const struct trace_log *log,
                                    const char *path);

#endif
