// SPDX-License-Identifier: Apache-2.0
// Life of the functional machine, and one run of a program: reset, scan the code, step until halt
// or fault. Without values the program first runs, as often as needed, to find what must be
// computed all the same (slice.c); that pass shows nothing to the sink and its faults count only
// when the set has stopped growing.
#include "simulator/exec/exec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/exec/machine.h"

bool exec_raise(struct exec *x, const struct exec_place *at, enum exec_fault_kind kind,
                const char *format, ...) {
    va_list args;
    va_start(args, format);
    x->fault.kind = kind;
    if (at) x->fault.at = *at;
    vsnprintf(x->fault.what, sizeof x->fault.what, format, args);
    va_end(args);
    return false;
}

bool exec_no_memory(struct exec *x, const char *what) {
    x->error = npu_status_join(x->error, npu_fail(NO_MEMORY, "simulating: no memory for %s", what));
    return false;
}

npu_status exec_new(const struct hw *hw, struct exec **out) {
    struct exec *x = base_alloc(sizeof *x);
    if (!x) return npu_fail(NO_MEMORY, "the functional machine");
    x->hw = *hw;
    x->m = (struct check_machine){.hw = &x->hw,
                                  .spm_bytes = hw->spm_bytes,
                                  .psum_bytes = hw_psum_bytes(hw),
                                  .psum_row_bytes = hw_psum_row_bytes(hw)};
    race_init(&x->race);
    for (int i = 0; i < ISA_SEMS; i++)
        exec_sem_init(&x->sem[i]);
    x->spm = pages_new(x->m.spm_bytes);
    x->psum = pages_new(x->m.psum_bytes);
    x->work = val_work_new();
    if (!x->spm || !x->psum || !x->work || !bits_init(&x->spm_written, x->m.spm_bytes) ||
        !bits_init(&x->psum_written, x->m.psum_bytes)) {
        exec_free(x);
        return npu_fail(NO_MEMORY, "on-chip memory of the functional machine");
    }
    *out = x;
    return NULL;
}

void exec_free(struct exec *x) {
    if (!x) return;
    engine_drop_queues(x);
    while (x->spare) {
        struct exec_entry *next = x->spare->next;
        base_free(x->spare);
        x->spare = next;
    }
    for (int i = 0; i < ISA_SEMS; i++)
        exec_sem_deinit(&x->sem[i]);
    race_deinit(&x->race);
    slice_deinit(&x->slice);
    undo_deinit(&x->undo);
    bits_deinit(&x->spm_written);
    bits_deinit(&x->psum_written);
    pages_free(x->spm, x->m.spm_bytes);
    pages_free(x->psum, x->m.psum_bytes);
    val_work_free(x->work);
    base_free(x->snap);
    base_free(x->rows);
    base_free(x->feet);
    base_free(x->code_map);
    npu_status_free(x->error);
    base_free(x);
}

// Everything a run starts from.
static void reset(struct exec *x) {
    engine_drop_queues(x);
    for (int i = 0; i < ISA_SEMS; i++)
        exec_sem_reset(&x->sem[i]);
    race_reset(&x->race);
    bits_clear(&x->spm_written, 0, x->m.spm_bytes);
    bits_clear(&x->psum_written, 0, x->m.psum_bytes);
    memset(x->reg, 0, sizeof x->reg);
    memset(&x->cp, 0, sizeof x->cp);
    const uint32_t passes = x->stats.passes;
    x->stats = (struct exec_stats){.passes = passes + 1};
    x->fault = (struct exec_fault){0};
    x->nsnap = 0;
    x->pc = (uint32_t)(x->job->entry_bytes / ISA_GRANULE_BYTES);
    x->loop_depth = x->call_depth = 0;
    x->tag_base = 0;
    x->cp_changed = x->signalled = x->halted = x->stopped = false;
    memset(x->nflight, 0, sizeof x->nflight);
    x->idle_steps = 0;
    x->slice.grew = false;
}

// One pass over the program. false: x->fault or x->error is set.
static bool pass(struct exec *x) {
    reset(x);
    if (!code_is_start(x, (int64_t)x->pc)) {
        const struct exec_place at = {.pc_granule = x->pc};
        x->stopped = exec_point_of(x, 0) < EXEC_DONE;
        if (x->stopped) return true;
        return exec_raise(x, &at, EXEC_FAULT_BRANCH,
                          "the entry point, granule %" PRIu32
                          ", is not the start of an instruction",
                          x->pc);
    }
    while (!x->halted && !x->stopped)
        if (!interp_step(x)) return false;
    return true;
}

enum { DISCOVERY_PASSES = 64 }; // each follows the values one instruction further back

// Finds what must be computed for addresses, sizes and branches. A fault in a pass that still found
// something means nothing: a value that was not computed yet may have led it astray.
static bool discover(struct exec *x) {
    if (!slice_init(&x->slice, x->ngranule))
        return exec_no_memory(x, "the set of instructions to compute");
    if (!x->code_loads) return true;
    x->discovering = true;
    bool ok = true;
    for (int i = 0; i < DISCOVERY_PASSES && ok; i++) {
        pass(x);
        slice_restore(&x->slice, x->job->dram);
        ok = !x->error;
        if (!x->slice.grew) break;
    }
    x->discovering = false;
    return ok;
}

npu_status exec_run(struct exec *x, const struct exec_job *job) {
    x->job = job;
    x->m.dram = job->dram;
    x->m.dram_base = job->dram_base;
    x->m.dram_bytes = job->dram_bytes;
    x->stats = (struct exec_stats){0};
    x->fault = (struct exec_fault){0};
    slice_deinit(&x->slice);
    npu_status_free(x->error);
    x->error = NULL;
    if (job->entry_bytes % ISA_GRANULE_BYTES || job->entry_bytes / ISA_GRANULE_BYTES > UINT32_MAX ||
        job->code.size / ISA_GRANULE_BYTES > UINT32_MAX / 2)
        return npu_fail(BAD_INPUT, "entry point at byte %" PRIu64 " of a code of %zu bytes",
                        job->entry_bytes, job->code.size);
    const bool ok = code_scan(x) && (job->values || discover(x)) && pass(x);
    undo_restore(&x->undo, job->dram); // queues stay for whoever asks for the state
    if (ok) return NULL;
    npu_status error = x->error;
    x->error = NULL;
    if (error) return error;
    return npu_fail(FAULT, "%s: %s", fault_kind_text(x->fault.kind), x->fault.what);
}

const struct exec_fault *exec_fault_of(const struct exec *x) {
    return x->fault.kind == EXEC_FAULT_NONE ? NULL : &x->fault;
}
const struct exec_stats *exec_stats_of(const struct exec *x) {
    return &x->stats;
}
const uint8_t *exec_spm(const struct exec *x) {
    return x->spm;
}
const uint8_t *exec_psum(const struct exec *x) {
    return x->psum;
}
