// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds that do not look at the compiler's tiling.
//
//   ideal    the largest of: multiply-adds / (R C) at their type's rate; constants, inputs and
//   outputs once
//            over DRAM's peak rate; vector elements / lanes
//   mapped   layers one after another, each the longer of its product's passes over the array
//            (isa_time_mm of its own shape) and its vector cycles; DRAM at its rate less refresh,
//            fetching constants ahead into a window of 3/4 of SPM: a constant occupies the window
//            from the start of its fetch to the end of its layer, and a layer ends no earlier than
//            its last byte arrives
#include "isa/timing.h"
#include "runtime/base/alloc.h"
#include "simulator/trace/trace.h"

static double max2(double a, double b) {
    return a > b ? a : b;
}

// Loss of all-bank refresh per standard: rows of dram.def.
static double refresh_loss(const struct hw *hw) {
    static const double loss[] = {
#define DRAM_STANDARD(NAME, word, mt, tck, burst, cl, cwl, rr, rw, rp, ras, faw, rs, rl, cs, cl2, \
                      ws, wl, wr, rtp, groups, banks, page, rfc, rfcb, refi, source)              \
    (double)(rfc) / (double)(refi),
#include "isa/dram.def"
    };
    if (!hw->dram_refresh || hw->dram_refresh_mode == 1) return 0;
    return hw->dram_standard < (int64_t)(sizeof loss / sizeof *loss) ? loss[hw->dram_standard] : 0;
}

static double product_cycles(const struct hw *hw, const struct trace_work *w) {
    const double half = (double)isa_time_row_half_cycles(hw, w->dtype);
    if (!w->m || !w->n || !w->k)
        return (double)w->macs * half / 2 / (double)(hw->mxu_rows * hw->mxu_cols);
    const struct isa_mm_shape s = {(int64_t)w->m, (int64_t)w->n, (int64_t)w->k,
                                   w->dtype,      w->dtype,      false};
    return (double)isa_time_mm(hw, &s).issue_cycles * (double)(w->batch ? w->batch : 1);
}

static double mapped(const struct hw *hw, const struct trace_work *work, size_t n, double *end) {
    const double rate = hw_dram_bytes_per_cycle(hw) * (1 - refresh_loss(hw));
    const double window = 0.75 * (double)hw->spm_bytes;
    double fetch = 0, done = 0, held = 0; // bytes of the window in use
    size_t oldest = 0;                    // first layer whose constants are still held
    for (size_t i = 0; i < n; i++) {
        const double bytes = (double)work[i].weight_bytes, io = (double)work[i].io_bytes;
        double start = fetch;
        // Room for these constants comes from layers that have ended. One larger than the window
        // streams.
        while (oldest < i && held + bytes > window) {
            start = max2(start, end[oldest]);
            held -= (double)work[oldest++].weight_bytes;
        }
        held += bytes;
        fetch = rate > 0 ? start + (bytes + io) / rate : start;
        const double busy =
            max2(product_cycles(hw, &work[i]), (double)work[i].elems / (double)hw->vec_lanes);
        done = max2(max2(done, start) + busy, fetch);
        end[i] = done;
    }
    return done;
}

npu_status trace_bounds(const struct trace_run *run, struct trace_bounds *out) {
    *out = (struct trace_bounds){0};
    if (run->fault || run->stopped) return NULL;
    const struct hw *hw = run->hw;
    double bytes = 0;
    for (size_t i = 0; i < run->nwork; i++) {
        const struct trace_work *w = &run->work[i];
        const double half = (double)isa_time_row_half_cycles(hw, w->dtype);
        out->mac_cycles += (double)w->macs * half / 2 / (double)(hw->mxu_rows * hw->mxu_cols);
        out->vector_cycles += (double)w->elems / (double)hw->vec_lanes;
        bytes += (double)(w->weight_bytes + w->io_bytes);
    }
    const double rate = hw_dram_bytes_per_cycle(hw);
    out->dram_cycles = rate > 0 ? bytes / rate : 0;
    out->ideal_cycles = max2(out->mac_cycles, max2(out->dram_cycles, out->vector_cycles));
    double *end = base_alloc_array(run->nwork + 1, sizeof *end);
    if (!end) return npu_fail(NO_MEMORY, "no memory for the bounds of %zu layers", run->nwork);
    out->mapped_cycles = mapped(hw, run->work, run->nwork, end);
    base_free(end);
    return NULL;
}
