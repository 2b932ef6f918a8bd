// SPDX-License-Identifier: Apache-2.0
//
// A core with a job of assembly text, for tests of what it does with it:
//
//     struct bench b;
//     bench_init(&b, "halt\n", 1 << 20);
//     b.hw.cp_queue_depth = 2; // before the first run
//     npu_status st = bench_run(&b);
//     bench_deinit(&b);
#ifndef TESTS_CORE_BENCH_H
#define TESTS_CORE_BENCH_H

#include "runtime/base/arena.h"
#include "simulator/core/core.h"

struct bench {
    struct arena *a;
    struct hw hw;
    struct exec_dram dram;
    int64_t dram_bytes;
    struct core *core; // NULL before the first run
    struct core_job job;
    struct core_result r;
};

// A small machine, its DRAM empty and zero-based, values computed.
void bench_init(struct bench *b, const char *text, int64_t dram_bytes);
void bench_deinit(struct bench *b);

// Runs the job on what the job before left in DRAM.
NPU_MUST_USE npu_status bench_run(struct bench *b);

// Forgets what DRAM holds.
void bench_clear(struct bench *b);

#endif
