// SPDX-License-Identifier: Apache-2.0
// What a choice of tiles costs, from the closed forms of isa/timing.h, and what it may take.
//
// A kernel of n equal steps, double buffered: n * max(matrix, vector, DMA) + the first load + the
// last computing and store; with one slot the sum of all. DMA time of a step: the longer of the
// bytes at DRAM's peak rate and the engines' cycles.
#include "isa/timing.h"
#include "runtime/base/str.h"
#include "toolchain/lower/internal.h"

#include <string.h>

static void dram_rows(const struct lower_view *dram, int rank, const int64_t *size, int64_t *rows,
                      int64_t *row_bytes) {
    int order[LOWER_DIMS];
    int n = lower_by_stride(dram, rank, order);
    int64_t run = 1, elems = 1;
    bool open = true;
    for (int i = n - 1; i >= 0; i--) {
        int64_t k = size[order[i]];
        elems *= k;
        if (k == 1) continue;
        open = open && dram->stride[order[i]] == run;
        if (open) run *= k;
    }
    *rows = elems / run;
    *row_bytes = run * lower_dtype_bytes(dram->dtype);
}

double lower_dma_cycles(const struct lower *L, const struct lower_view *dram, int rank,
                        const int64_t *size) {
    if (dram->chip) return 0;
    int64_t rows, row_bytes;
    dram_rows(dram, rank, size, &rows, &row_bytes);
    return (double)isa_time_dma_lower_bound(L->hw, rows, row_bytes, true).issue_cycles;
}

double lower_dma_bytes(const struct lower *L, const struct lower_view *dram, int rank,
                       const int64_t *size) {
    if (dram->chip) return 0;
    int64_t rows, row_bytes, burst = L->hw->dma_burst_bytes;
    dram_rows(dram, rank, size, &rows, &row_bytes);
    return (double)(rows * lower_ceil(row_bytes, burst) * burst);
}

int lower_chain_stages(const struct isa_chain *chain, bool *special) {
    int n = 0;
    *special = false;
    for (int i = 0; chain && i < ISA_STAGES; i++) {
        if (chain->st[i].op == ISA_VOP_NOP && !chain->st[i].save) continue;
        n++;
        if (isa_vop_is_sf((int)chain->st[i].op)) *special = true;
    }
    return n;
}

double lower_vec_cycles(const struct lower *L, int64_t elems, int inputs,
                        const struct isa_chain *chain) {
    struct isa_vec_shape s = {.elems = elems, .steps = 1};
    s.stages = lower_chain_stages(chain, &s.special);
    for (int i = 0; i < inputs && i < 4; i++)
        s.in[i] = (struct isa_vec_port){elems, L->hw->vec_lanes};
    s.out[0] = (struct isa_vec_port){elems, L->hw->vec_lanes};
    struct isa_cost c = isa_time_vec(L->hw, &s);
    return (double)c.issue_cycles + (double)L->hw->vec_start;
}

double lower_bank_cycles(const struct lower *L, enum isa_dtype t, int ndim, const int64_t *size,
                         const int64_t *stride, double elems) {
    struct isa_pat p = {.space = ISA_SPM, .dtype = t, .size = {1, 1, 1, 1, 1}};
    for (int d = 0; d < ndim; d++) {
        p.size[d] = size[d];
        p.stride[d] = size[d] > 1 ? stride[d] : 0;
    }
    return elems / (double)isa_time_bank_rate(L->hw, &p);
}

static double dram_latency(const struct lower *L) {
    return (double)(L->hw->dram_latency_ps * L->hw->clock_npu_mhz) / 1e6;
}

// Transfers of that many cycles of one engine, spread over all, or the memory's time.
static double dma_time(const struct lower *L, double cycles, double bytes) {
    double rate = hw_dram_bytes_per_cycle(L->hw), spread = cycles / (double)L->hw->dma_engines;
    return rate > 0 && bytes / rate > spread ? bytes / rate : spread;
}

double lower_steps_cycles(const struct lower *L, double nstep, const struct lower_step *s) {
    double dma = dma_time(L, s->dma_cycles, s->dma_bytes);
    double first = dma_time(L, s->first_cycles, s->first_bytes);
    double sum = (first > dma ? first : dma) + s->mxu_cycles + s->vec_cycles;
    if (L->slots == 1) return nstep * (s->dma_cycles + s->mxu_cycles + s->vec_cycles);
    double longest = dma > s->mxu_cycles ? dma : s->mxu_cycles;
    if (s->vec_cycles > longest) longest = s->vec_cycles;
    // Buffers beyond the kernel's share keep the next kernel's first loads waiting until this one
    // ends.
    double wait =
        s->spm_bytes > lower_spm(L, false) ? dma + (double)L->hw->dma_start + dram_latency(L) : 0;
    // Waits between engines: a semaphore's latency per step and engine.
    return (nstep - 1) * (longest + (double)L->hw->cp_semaphore) + sum + wait;
}

double lower_psum_cycles(const struct lower *L, double nstep, const struct lower_step *s,
                         double tiles, double latency, int slots) {
    double turn = nstep / tiles * s->mxu_cycles + latency + nstep / tiles * s->vec_cycles +
                  (double)(L->hw->vec_start + L->hw->vec_latency + 2 * L->hw->cp_semaphore);
    double cycles = lower_steps_cycles(L, nstep, s) + latency;
    return cycles > tiles * turn / slots ? cycles : tiles * turn / slots;
}

int64_t lower_spm(const struct lower *L, bool all) {
    int percent = L->opt.spm_percent ? L->opt.spm_percent : 50;
    int64_t left = L->hw->spm_bytes - L->resident_bytes;
    return all ? left : left * percent / 100;
}

int64_t lower_psum_rows(const struct lower *L) {
    return hw_psum_bytes(L->hw) / hw_psum_row_bytes(L->hw);
}

npu_status lower_no_fit(const struct lower *L, int n, const char *const *names,
                        const int64_t *bytes) {
    struct str text = {0};
    int64_t sum = 0, have = lower_spm(L, true);
    for (int i = 0; i < n; i++) {
        if (!bytes[i]) continue;
        str_printf(&text, "%s%s (%lld)", text.len ? ", " : "", names[i], (long long)bytes[i]);
        sum += bytes[i];
    }
    npu_status st = npu_fail(NO_FIT,
                             "kernel '%s' (%s): at its smallest tile it needs %lld bytes of "
                             "scratchpad for %s; the target has %lld (%lld bytes too many)",
                             L->node->name, graph_ops[L->node->op].text, (long long)sum,
                             str_text(&text), (long long)have, (long long)(sum - have));
    str_free(&text);
    return st;
}
