// SPDX-License-Identifier: Apache-2.0
// The tile program: what lowering makes of the graph, and what schedule, plan and codegen complete.
//
// It is a list of operations in a valid sequential order. Each is one instruction whose operands
// are places in named buffers instead of addresses. Executed one after another the list computes
// the graph; everything later (order.c, the planner, semaphores) only has to keep that meaning.
//
//   kernel   one fused group of graph nodes = one layer of the report = one debug tag
//   buffer   SPM and PSUM: `slots` equal copies that successive steps of a kernel take in turn
//   (step t uses slot t % slots: that is
//            double buffering); they live from the first to the last operation that touches them.
//            DRAM: one per graph value, packed weight tensor or scratch.
//   step     one iteration of a kernel's tile loop; steps count on over the whole program
//   phase    LOAD (DMA into the chip), COMPUTE, STORE (DMA out): the scheduler moves loads ahead of
//   earlier steps' computing
#ifndef NPU_TILE_TILE_H
#define NPU_TILE_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "isa/insn.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "toolchain/graph/graph.h"

#define TILE_OPERANDS 5

enum tile_phase { TILE_LOAD, TILE_COMPUTE, TILE_STORE };
// STATE: holds a value when the program starts, and is written.
enum tile_kind { TILE_ONCHIP, TILE_INPUT, TILE_OUTPUT, TILE_WEIGHT, TILE_SCRATCH, TILE_STATE };

#define TILE_BLOCK_DIMS 12

// A part of a constant as the program stores it: element (i0, i1, ...), outermost dimension first,
// is element from_at + sum(i * from_stride) of `from` and goes to element to_at + sum(i *
// to_stride) of the buffer, rounded to dtype. Both types have whole bytes; `from` needs no
// alignment and is lent.
struct tile_block {
    const void *from;
    enum isa_dtype from_dtype, dtype;
    int64_t from_at, to_at;
    int rank;
    int64_t size[TILE_BLOCK_DIMS], from_stride[TILE_BLOCK_DIMS], to_stride[TILE_BLOCK_DIMS];
};

struct tile_buf {
    int id;
    const char *name;
    enum isa_space space;
    enum tile_kind kind; // ONCHIP for SPM and PSUM
    int64_t bytes;       // of one slot
    int slots;
    int kernel;       // owner; -1 for DRAM buffers
    const void *data; // WEIGHT without blocks: its bytes, lent
    const struct tile_block
        *blocks; // WEIGHT, STATE: what it is made of, disjoint; the rest is zero
    int nblock;
    const struct graph_value *value; // DRAM: the value it holds, or NULL
    int64_t addr[8];                 // per slot, bytes; filled by plan (DRAM: addr[0])
    int first_op, last_op; // positions of the first and last operation that touch it, filled by
                           // tile_live_ranges()
};

struct tile_operand {
    int buf; // -1: absent
    int slot;
};

struct tile_op {
    struct isa_insn insn; // pattern bases are byte offsets inside the buffer's slot; waits and
                          // signals are added by sync
    struct tile_operand operand[TILE_OPERANDS]; // by pattern number (order of insn.def)
    int npat;
    int kernel;
    int step;
    enum tile_phase phase;
};

struct tile_kernel {
    int id;                     // tag of its instructions is id + 1
    const char *name;           // model node name of the group's anchor
    const char *graph_op;       // name of the graph's op
    const char *op;             // graph op and fused work, e.g. "conv+add+max"
    const char *kernel;         // e.g. "conv_nhwc", "mm_ws", "softmax_rows"
    const char *text;           // one line of --info; NULL: none
    const char *const *origins; // model node names
    int norigin;
    int64_t macs, vector_elems;
    int64_t m, n, k, batch;                          // of its matrix product; 0: none, or several
    enum isa_dtype dtype;                            // of the product's operands
    int64_t weight_bytes, input_bytes, output_bytes; // unavoidable DRAM traffic: each once
    int first_step, last_step;
    int64_t spm_bytes, psum_bytes; // all its buffers, all slots
    int64_t resident_bytes;        // scratchpad of values that stay there while it runs
    double estimate_cycles;        // by the cost model
    int call;                      // graph_node.call of the node that it is of; 0: of none
    int launch;                    // submission that it is a part of, from 0; ascending
};

// A graph value that kernels store: element (i0, i1, ...) lies at `offset` bytes + (sum of i_d *
// stride[d]) elements of the value's type in a buffer's slot, once the last of them is over.
struct tile_result {
    const struct graph_value *value;
    int first_kernel, last_kernel;
    int buf, slot;
    int64_t offset, stride[GRAPH_MAX_RANK];
};

struct tile_program {
    struct arena *arena;
    const struct hw *hw;
    struct tile_kernel **kernels;
    int nkernel, cap_kernel;
    struct tile_buf **bufs;
    int nbuf, cap_buf;
    struct tile_op **ops;
    int nop, cap_op;
    struct tile_result **results;
    int nresult, cap_result;
    int nlaunch; // submissions: 1, or as many as tile_launches() made
    int next_step;
    int64_t dram_bytes, spm_peak_bytes, spm_bound_bytes, psum_peak_bytes, scratch_peak_bytes,
        scratch_bound_bytes; // filled by plan
    int64_t sync_work;       // accesses that schedule_sync compared
};

struct tile_program *tile_program_new(struct arena *a, const struct hw *hw);

// Starts a kernel; following buffers and operations belong to it. origins are borrowed.
struct tile_kernel *tile_kernel_begin(struct tile_program *p, const char *name, const char *op,
                                      const char *kernel, const char *const *origins, int norigin);
// Makes every run of kernels of one call a launch: a submission of its own, between which nothing
// stays on chip and no semaphore counts.
void tile_launches(struct tile_program *p);
// Starts the next step of the current kernel and returns its number counted from the kernel's first
// (0, 1, ...).
int tile_step(struct tile_program *p);

// Buffers. On-chip ones belong to the current kernel; bytes is that of one slot; slots 1..8.
int tile_add_spm(struct tile_program *p, const char *name, int64_t bytes, int slots);
// A value in the scratchpad that several kernels use.
int tile_add_resident(struct tile_program *p, const char *name, int64_t bytes,
                      const struct graph_value *value);
int tile_add_psum(struct tile_program *p, const char *name, int64_t bytes, int slots);
int tile_add_dram(struct tile_program *p, const char *name, enum tile_kind kind, int64_t bytes,
                  const void *data, const struct graph_value *value);

// A constant that is made of blocks when the program is written; they are copied.
int tile_add_weight(struct tile_program *p, const char *name, int64_t bytes,
                    const struct tile_block *blocks, int n);
// What a buffer's bytes are made of; copied. The rest is zero.
void tile_set_blocks(struct tile_program *p, int buf, const struct tile_block *blocks, int n);
// A constant's bytes where they lie somewhere as they are; else NULL.
const void *tile_lent(const struct tile_buf *b);
// Makes a constant's bytes.
void tile_fill(const struct tile_buf *b, uint8_t *to);

// Notes a result of kernels that were begun; copied.
void tile_add_result(struct tile_program *p, const struct tile_result *r);

// Appends an operation of the current kernel and step; the instruction is initialised (isa_init)
// and its operands absent.
struct tile_op *tile_emit(struct tile_program *p, enum isa_op op, enum tile_phase phase);
// Where an operand begins: offset in bytes inside the slot.
struct tile_place {
    int buf, slot;
    enum isa_dtype dtype;
    int64_t offset;
};
// Sets pattern number k. size and stride innermost first, ndim <= 5, strides in elements.
void tile_operand(struct tile_op *t, int k, const struct tile_program *p, struct tile_place at,
                  int ndim, const int64_t *size, const int64_t *stride);

// Pattern k of an operation, its bytes inside the slot [lo, hi), and how the instruction uses it.
bool tile_access(const struct tile_op *t, int k, int64_t *lo, int64_t *hi, enum isa_access *access);
// True when `later` must stay behind `earlier`: one writes what the other touches (same buffer and
// slot, extents overlap).
bool tile_depends(const struct tile_op *earlier, const struct tile_op *later);
void tile_live_ranges(struct tile_program *p);

// Checks operands against buffers, sizes and phases; the message names kernel and operation.
npu_status tile_verify(const struct tile_program *p, const char *stage);
struct str;
void tile_print(const struct tile_program *p, struct str *out);

#endif
