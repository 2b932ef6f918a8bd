// SPDX-License-Identifier: Apache-2.0
//
// Inside of a units_program: what the timing machine keeps of each dynamic instruction.
#ifndef SIMULATOR_UNITS_RECORD_H
#define SIMULATOR_UNITS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "isa/insn.h"
#include "simulator/units/units.h"

enum units_flag {
    UNITS_FENCE = 1,      ///< DMA: after every earlier one of its queue
    UNITS_DRAM = 2,       ///< CP: LDS, STS of DRAM
    UNITS_WRITES = 4,     ///< CP: STS
    UNITS_ACCUMULATE = 8, ///< MXU: dep names an instruction on whose PSUM rows it accumulates
    UNITS_SKIPPED = 16,
};

/// 80 bytes. The index of a record is its seq.
struct units_rec {
    uint32_t tag, pc; ///< effective tag; granule
    uint8_t engine, opcode, granules, flags;
    uint8_t wait_sem[2], sig_sem[2];
    uint16_t wait_value[2];
    uint8_t sig_inc[2], sig_when[2];
    uint8_t acquire; ///< bit i: wait i subtracts
    uint8_t dep; ///< 1..UNITS_DEPS: needs the result of the dep-th instruction before on its engine
    uint16_t rsv;
    uint32_t tag_index;         ///< into the program's tags
    uint32_t issue, read, done; ///< cycles from the start (struct isa_cost); CP: issue only
    uint32_t full;              ///< cycles of issue at peak rate, <= issue
    uint32_t accumulate;        ///< MXU: cycles until one that accumulates on it may start
    uint32_t spm, psum;         ///< demand of banks, BANKS_ONE = all of them
    uint32_t extra;     ///< DMA: index into the program's transfers; CP: id of TS, MARK, IRQ
    uint64_t work;      ///< trace_event.work; CP with UNITS_DRAM: the address
    uint32_t spm_bytes; ///< bytes of SPM and PSUM touched
};

#define UNITS_DEPS 4

/// A strided walk over DRAM: runs of contiguous bytes.
struct units_walk {
    uint64_t base;
    uint32_t run;      ///< bytes of a run
    uint32_t n[4];     ///< runs, innermost first; all 1 when there is one
    int64_t stride[4]; ///< bytes
};

struct units_transfer {
    struct units_walk src, dst;
    bool src_dram, dst_dram;
    bool gather;          ///< the runs of src are rows[first_row ..] times src.stride[0]
    uint32_t link_q8;     ///< bytes over the link per byte on the bus, 8 fraction bits
    uint32_t row_q8;      ///< address-generator rows per run in DRAM, 8 fraction bits
    uint32_t chip_cycles; ///< link cycles when no side is DRAM; rows included
    uint64_t read_bytes, write_bytes; ///< useful bytes of DRAM
    uint64_t first_row, nrow; ///< gather: into the program's rows; nrow 0: rows never became known
};

struct units_tagmap; // tag -> index

struct units_program {
    struct hw hw;
    struct units_rec *rec;
    uint64_t count, capacity;
    struct units_transfer *transfer;
    uint64_t ntransfer, transfer_capacity;
    int64_t *row;
    uint64_t nrow, row_capacity;
    uint32_t *tag; // effective tags in order of first appearance
    uint64_t ntag, tag_capacity;
    uint32_t *slot; // hash of tags: index + 1, 0 free
    uint64_t nslot;
    uint64_t code_address, code_bytes;
    uint64_t per_engine[ISA_ENGINES];
    uint8_t signaller[ISA_SEMS], waiter[ISA_SEMS]; // engine + 1, 0: none seen
    // Footprints of the last instructions of MXU and VEC, for dep. [0] is the last.
    struct units_footprint {
        bool valid;
        int64_t space, lo, hi; // bytes written
    } recent[2][UNITS_DEPS][2];
};

/// Fills cost, demands and transfer of a record from the instruction. False: out of memory.
bool units_cost(struct units_program *p, const struct exec_dyn *dyn, struct units_rec *r);

/// Appends a record made by hand (tests, synthetic programs); false: out of memory. tag_index,
/// signaller and waiter are filled here.
bool units_program_add(struct units_program *p, const struct units_rec *r);

/// Appends a transfer and gives its index; UINT32_MAX: out of memory.
uint32_t units_program_transfer(struct units_program *p, const struct units_transfer *t);

#endif
