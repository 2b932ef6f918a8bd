// SPDX-License-Identifier: Apache-2.0
// What every instruction of a run wrote, in the order of execution: where, and the CRC-32 of the
// bytes. Two runs are compared with it, and a layer's result is led back to the instructions that
// stored it.
#ifndef NPUSIM_WRITES_H
#define NPUSIM_WRITES_H

#include "runtime/base/str.h"
#include "runtime/container.h"
#include "simulator/device.h"
#include "simulator/exec/exec.h"

// One operand that an instruction wrote.
struct write {
    struct exec_place at;
    uint64_t job; // submission of the run, from 0
    uint64_t seq; // instruction of the run, as in traces
    int space;    // enum isa_space
    struct exec_foot foot;
    uint32_t crc; // CRC-32 of the bytes, runs in the order of foot_next
};

// Zero-initialised but for `device` is empty.
struct writes {
    const struct sim_device *device; // lent: counts submissions
    struct write *item;              // owned
    size_t n, cap;
    bool failed;           // out of memory: writes were dropped
    exec_write_sink *next; // is shown everything too; may be NULL
    void *next_ctx;
};

// An exec_write_sink; ctx is the struct writes.
exec_write_sink writes_add;

void writes_deinit(struct writes *w);

// "dma0 at granule 12 (seq 34, loop 0,3)  copy ...  tag 5 (layer)": an instruction of a program.
void writes_print_place(struct str *out, const struct npu_program_image *image,
                        const struct exec_place *at);

// What was logged of the instruction: its start and end in cycles. False: nothing.
bool writes_cycles(const struct trace_log *log, const struct write *w, uint64_t *start,
                   uint64_t *done);

#endif
