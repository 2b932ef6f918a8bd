// SPDX-License-Identifier: Apache-2.0
//
// Walks the contiguous runs of a DMA instruction's DRAM side, in whole bursts: a partial burst pays
// a whole one.
#include "simulator/units/machine.h"

void units_runs_init(struct units_runs *w, const struct units_walk *walk) {
    *w = (struct units_runs){.walk = walk};
}

void units_runs_gather(struct units_runs *w, const struct units_walk *walk, const int64_t *row,
                       uint64_t n) {
    *w = (struct units_runs){.walk = walk, .row = row, .nrow = n};
}

// Makes the run at the current position the current one, or ends the walk.
void units_runs_load(struct units_runs *w, uint64_t burst) {
    const struct units_walk *k = w->walk;
    uint64_t first = k->base;
    if (w->row) {
        while (w->at < w->nrow && w->row[w->at] < 0)
            w->at++;
        w->over = w->at == w->nrow;
        if (w->over) return;
        first += (uint64_t)(w->row[w->at] * k->stride[0]);
    } else {
        for (int d = 0; d < 4; d++)
            first += (uint64_t)((int64_t)w->index[d] * k->stride[d]);
    }
    if (!k->run) {
        w->over = true;
        return;
    }
    const uint64_t end = first + k->run + burst - 1;
    const bool power = (burst & (burst - 1)) == 0;
    w->address = power ? first & ~(burst - 1) : first / burst * burst;
    w->left = (power ? end & ~(burst - 1) : end / burst * burst) - w->address;
    w->fresh = 1;
}

// Goes on by what was taken of the current run.
void units_runs_took(struct units_runs *w, uint64_t bytes, uint64_t burst) {
    w->address += bytes;
    w->left -= bytes;
    w->fresh = 0;
    if (w->left) return;
    if (w->row) {
        w->at++;
        units_runs_load(w, burst);
        return;
    }
    for (int d = 0; d < 4; d++) {
        if (++w->index[d] < w->walk->n[d]) {
            units_runs_load(w, burst);
            return;
        }
        w->index[d] = 0;
    }
    w->over = true;
}
