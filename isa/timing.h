// SPDX-License-Identifier: Apache-2.0
// Closed forms for the cycles of one instruction that works from on-chip memory. The simulator's
// units, the compiler's cost model and the manual all read these; nothing else states them.
// Integers only (saturating far beyond any real size), freestanding, no allocation.
//
// Names: R = mxu.rows, C = mxu.cols, cdiv(a, b) = a / b rounded up,
// p = mxu.half_cycles_<dtype> / 2 cycles per moving row (of the slower operand's type).
//
// Matrix engine. A product M x N x K is cut into F passes, each with one stationary block:
//               stationary   F                        T (moving rows)
//     ws, dot   B, R x C     cdiv(K, R) * cdiv(N, C)  M
//     is        A, R x C     cdiv(K, R) * cdiv(M, C)  N
//     os        D, R x C     cdiv(M, R) * cdiv(N, C)  K
//   load  = p * cdiv(R, load_rows)     ws, is, dot: the stationary block shifts in; os: 0
//                                      (with load_narrow at most p * N, is: p * M)
//   drain = cdiv(R, drain_rows)        os: the results shift out (0 when drain_rows is 0); else 0
//   fill  = R + C - 2                  dot: 0
//   gap   = max(R, p * R) + pipeline   a partial sum is read at the top of the array and written
//                                      that much later (dot: pipeline; os: 0)
//   preload overlapped (mxu.overlap = 1):
//     II    = max(p * T, load, drain, p * min_ii)
//     issue = (KB - 1) * max(NB * II, gap) + NB * II, KB blocks of k, NB result blocks: the
//             sequencer takes all passes of one k block before the next, which hides the gap
//     done  = load + issue - 1 + fill + drain + pipeline
//   preload serial (mxu.overlap = 0):
//     II    = max(load + max(p * T, p * min_ii) + fill + drain, gap if KB > 1)
//     done  = KB * NB * II - 1 + pipeline
//     issue = min(KB * NB * II, done)
// The first moving row enters in cycle `load`, so the last one enters one cycle before
// load + issue is over: that is the "- 1". With pipeline = 0 the serial forms are SCALE-Sim's,
// with pipeline = 1 the overlapped ones are ONNXim's. A moving A whose k stride is not 1 goes
// through a transposer of R x R blocks, cdiv(R, transpose_rows) cycles each, double buffered.
//
// Vector engine. n elements, the longest of what they pass through, all pipelined:
//   chain      cdiv(n, lanes) * max(cdiv(stages, chain_depth), window steps, 1)
//              * (4 when an operand is i64)
//   functions  cdiv(n, sf_lanes)
//   SPM port   sum over inputs of cdiv(elements, min(lanes, what the banks give)); the output
//              has a port of its own
//   PSUM port  cdiv(elements read and written, psum.read_elems)
//   reduction  rows * cdiv(row, w) slots of w = min(64, lanes) partials, lanes / w slots a cycle
//   issue = max(min_ii, longest), read = start + longest,
//   done  = read + latency (+ sf_latency) (+ 7 for the halving tree and the running value)
#ifndef NPU_ISA_TIMING_H
#define NPU_ISA_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/hw.h"
#include "isa/insn.h"

/// Cycles from the instruction's start.
struct isa_cost {
    int64_t issue_cycles;      // the next instruction of this engine may start
    int64_t read_cycles;       // every operand has been read (signal at read); <= done_cycles
    int64_t done_cycles;       // the result is visible (signal at done)
    int64_t load_cycles;       // MXU: at the start, only the stationary operand is loaded
    int64_t accumulate_cycles; // MXU: one that accumulates on this one's PSUM rows may start
    int64_t macs;              // MXU: multiply-adds, those on padding included
    int64_t elems;             // VEC: elements that pass the chain
};

struct isa_mm_shape {
    int64_t m, n, k;   // elements, each >= 1
    int dtype_a;       // enum isa_dtype of the moving operand
    int dtype_b;       // of the stationary one
    bool transposed_a; // the moving operand's k stride is not 1
};

struct isa_conv_shape {
    int64_t p, q, cout;   // rows, columns and channels of the result
    int64_t kh, kw, cin;  // window; channels of the input
    int dtype_a, dtype_b; // enum isa_dtype
};

/// One operand of the vector engine in SPM.
struct isa_vec_port {
    int64_t elems;     // elements that pass the port; 0: operand absent
    int64_t per_cycle; // elements per cycle that its strides leave of the banks, >= 1
};

struct isa_vec_shape {
    int64_t elems;     // elements that pass the chain
    int64_t steps;     // window positions per element: kh * kw, else 1
    int64_t stages;    // stages of the chain in use
    bool special;      // one of them is a special function
    bool wide;         // an operand is i64
    int64_t rows, row; // reduction: results, and elements of each; 0, 0: none
    struct isa_vec_port in[4], out[2];
    int64_t psum_elems; // elements read from and written to PSUM
};

/// Half cycles per moving row; the f32 rate for a type that the array does not take.
int64_t isa_time_row_half_cycles(const struct hw *hw, int dtype);

struct isa_cost isa_time_mm(const struct hw *hw, const struct isa_mm_shape *s);

/// The product (p * q) x cout x (kh * kw * cin), packed along k.
struct isa_cost isa_time_conv(const struct hw *hw, const struct isa_conv_shape *s);

struct isa_cost isa_time_vec(const struct hw *hw, const struct isa_vec_shape *s);

/// Elements per cycle, 1 .. 2^30, that SPM gives to a pattern: one access per bank and cycle,
/// consecutive words of spm.bank_bytes in consecutive banks. An inner stride of w > 1 words
/// reaches banks / gcd(w, banks) of them.
int64_t isa_time_bank_rate(const struct hw *hw, const struct isa_pat *p);

/// Elements of a pattern, dimensions of stride 0 counted once.
int64_t isa_time_touched_elems(const struct isa_pat *p);

/// Any matrix, vector or DMA instruction (DMA: isa_time_dma_lower_bound), operands resolved: a
/// size that comes from a register is already stored in size[1]. Every other: 1 cycle.
struct isa_cost isa_time_insn(const struct hw *hw, const struct isa_insn *in);

/// Shape of an instruction; false when it is not of that kind (MM and MMCONV; vector ones).
bool isa_time_mm_shape(const struct isa_insn *in, struct isa_mm_shape *out);
bool isa_time_vec_shape(const struct hw *hw, const struct isa_insn *in, struct isa_vec_shape *out);

/// A transfer of `rows` contiguous runs of `row_bytes`: dma.start, then the longer of the link
/// (rows, and bytes at dma.width) and, when `dram`, whole bursts at DRAM's peak rate. A queue is
/// in order, so issue = read = done.
struct isa_cost isa_time_dma_lower_bound(const struct hw *hw, int64_t rows, int64_t row_bytes,
                                         bool dram);

/// Contiguous runs of a pattern: dimensions merge from the innermost as long as each continues
/// the one below.
void isa_pat_runs(const struct isa_pat *p, int64_t *rows, int64_t *row_bytes);

/// Cycles of the command processor for one instruction of that many granules.
int64_t isa_time_decode(const struct hw *hw, int granules);

/// Instruction memory: a direct-mapped store of blocks of code. Entering a block asks for those of
/// the next `ahead` that are not there as well.
struct isa_fetch {
    int64_t block_bytes, blocks, ahead;
};
struct isa_fetch isa_time_fetch(const struct hw *hw);

/// Product of two values >= 0 that stops at 2^60.
int64_t isa_sat_mul(int64_t a, int64_t b);

#endif
