// SPDX-License-Identifier: Apache-2.0
//
// Work in numbered, independent pieces spread over processes. A simulation kernel has one context
// per process, so shards are forks of a process that holds the machine ready to run; what they find
// comes back through pipes. A piece's result depends on its number alone, so how many processes
// there are never shows.
#ifndef NPUSIM_SHARDS_H
#define NPUSIM_SHARDS_H

#include <stdint.h>

#include "runtime/base/status.h"

// Result of a piece, as it goes through a pipe.
struct shard_result {
    uint64_t cycles, latency_ps, sampled_ps;
    double seconds;
};

// Works on piece number `piece`. May fail; then all fails.
typedef npu_status shard_work(void *ctx, uint64_t piece, struct shard_result *out);

// Processors that this process may use.
int shards_processors(void);

// Pieces 0 .. n - 1 into out[0 .. n - 1], piece i in process i mod `processes`; one process: here,
// without a fork. Returns when every process has ended. The failure of the lowest piece that
// failed, IO when a process could not be started or was killed. Moves the progress bar.
NPU_MUST_USE npu_status shards_run(int processes, uint64_t n, shard_work *work, void *ctx,
                                   struct shard_result *out);

// Test hook: the k-th fork from now fails (1: the next); 0: none.
void shards_fail_fork_at(int k);

#endif
