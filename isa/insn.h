// SPDX-License-Identifier: Apache-2.0
// One decoded instruction and its machine form. Everything here is generated from insn.def,
// header.def, unit.def, vop.def. Freestanding, no allocation. Text: isa/insn_text.h.
#ifndef NPU_ISA_INSN_H
#define NPU_ISA_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA_GRANULE_BYTES 16
#define ISA_MAX_GRANULES 16
#define ISA_DIMS 5   // dimensions of a pattern; dim 0 is innermost
#define ISA_STAGES 8 // slots of a chain
#define ISA_IMMS 4   // immediates of a chain
#define ISA_REGS 16  // scalar registers; r0 reads 0
#define ISA_SEMS 256 // semaphores; 0 is none

// clang-format off
enum isa_dtype {
    ISA_DTYPE_NONE = 0,
#define ISA_DTYPE(N, text, code, bits, kind, on_chip, doc) ISA_##N = (code),
#include "isa/dtype.def"
};

enum isa_engine {
#define ISA_ENGINE(N, text, number, cls, doc) ISA_ENGINE_##N = (number),
#include "isa/unit.def"
    ISA_ENGINES
};
enum isa_class { ISA_CLASS_CP, ISA_CLASS_DMA, ISA_CLASS_MXU, ISA_CLASS_VEC, ISA_CLASS_ANY };

// Memories. NONE marks an absent pattern.
enum isa_space {
    ISA_SPACE_NONE, ISA_SPM, ISA_PSUM, ISA_DRAM, ISA_L2, ISA_RSPM, ISA_SCALAR, ISA_IMEM
};

enum isa_vop {
#define ISA_VOP(N, text, code, operands, kind, types, doc) ISA_VOP_##N = (code),
#include "isa/vop.def"
};
// Operands of a chain stage. ROW and COL are the indices of dim 1 and dim 0.
enum isa_src {
    ISA_SRC_NONE, ISA_SRC_ACC, ISA_SRC_IN0, ISA_SRC_IN1, ISA_SRC_IN2, ISA_SRC_TMP,
    ISA_SRC_IMM0, ISA_SRC_IMM1, ISA_SRC_IMM2, ISA_SRC_IMM3, ISA_SRC_ROW, ISA_SRC_COL, ISA_SRCS
};
enum isa_red {
    ISA_RED_NONE, ISA_RED_SUM, ISA_RED_MAX, ISA_RED_MIN, ISA_RED_SUMSQ, ISA_RED_ARGMAX,
    ISA_RED_PROD, ISA_REDS
};
enum isa_pool { ISA_POOL_MAX = 1, ISA_POOL_AVG, ISA_POOL_AVGPAD, ISA_POOL_SUM };
enum isa_when { ISA_AT_START, ISA_AT_READ, ISA_AT_DONE };
enum isa_cond { ISA_ALWAYS, ISA_EQ, ISA_NE, ISA_LT, ISA_LE, ISA_GT, ISA_GE };
enum isa_cpalu {
    ISA_CP_ADD, ISA_CP_SUB, ISA_CP_MUL, ISA_CP_SHL, ISA_CP_SHR, ISA_CP_AND, ISA_CP_OR,
    ISA_CP_MIN, ISA_CP_MAX, ISA_CP_CMPLT, ISA_CP_CMPEQ
};
// clang-format on

// A strided block: element (i0..i4) lies at base + reg[areg] bytes + sum(i_d * stride[d]) elements
// of dtype. size[d] >= 1, unused dimensions have size 1 and stride 0; space NONE means that the
// operand is absent (all zero, sizes 1). sreg != 0: size[1] is read from that register instead.
// In a PATC pattern: base 32 bits, size 1..65536, stride 24 bits signed. In a PATD pattern: base
// 48 bits, size 1..2^24, stride 40 bits signed.
struct isa_pat {
    int64_t space, dtype, areg, sreg, base;
    int64_t size[ISA_DIMS], stride[ISA_DIMS];
};

// Stage: acc = op(acc, a, b); save != 0 then also keeps the result as TMP.
struct isa_stage {
    int64_t op, a, b, save;
};
// imm holds the bits of a binary32, or an i32 for integer chains (isa_chain_is_int).
struct isa_chain {
    struct isa_stage st[ISA_STAGES];
    int64_t imm[ISA_IMMS];
};

// clang-format off
struct isa_header {
#define ISA_HEADER(f, width, kind, doc) int64_t f;
#include "isa/header.def"
};

enum isa_op {
#define ISA_INSN(N, opcode, text, cls, since, ...) ISA_OP_##N = (opcode),
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N)
#include "isa/insn.def"
};

#define ISA_INSN(N, opcode, text, cls, since, ...) struct isa_##N { char none_;
#define ISA_FIELD(N, f, width, kind, doc) int64_t f;
#define ISA_PATC(N, f, access, doc) struct isa_pat f;
#define ISA_PATD(N, f, access, doc) struct isa_pat f;
#define ISA_CHAIN(N, f, doc) struct isa_chain f;
#define ISA_END(N) };
#include "isa/insn.def"

// h.opcode and h.length are filled by isa_init() and the decoder; the encoder computes the length
// itself.
struct isa_insn {
    struct isa_header h;
    union {
#define ISA_INSN(N, opcode, text, cls, since, ...) struct isa_##N N;
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N)
#include "isa/insn.def"
    } u;
};
// clang-format on

// One encoded bit field. offset is that of the int64_t member in struct isa_insn; of a reserved
// field inside a pattern or chain it is that of h.rsv0 (always zero). Patterns and chains are runs
// of such fields; text names are "a.base", "chain.s0.op".
enum isa_kind {
    ISA_KIND_UINT,
    ISA_KIND_SINT,
    ISA_KIND_SIZE,
    ISA_KIND_REG,
    ISA_KIND_F32,
    ISA_KIND_RSV
};
struct isa_field_desc {
    const char *name, *doc;
    uint16_t lo, offset;
    uint8_t width;
    enum isa_kind kind;
};

// One operand pattern of an instruction, in the order of insn.def.
enum isa_access { ISA_R = 1, ISA_W = 2, ISA_RW = 3 };
struct isa_pat_desc {
    const char *name, *doc;
    enum isa_access access;
    bool dram; // a PATD pattern
    uint16_t offset;
};

struct isa_insn_desc {
    const char *name, *text, *summary, *semantics, *timing, *faults, *example;
    enum isa_op op;
    enum isa_class cls;
    bool implemented;
    const struct isa_field_desc *field; // payload fields, reserved ones included
    int nfield;
    const struct isa_pat_desc *pat;
    int npat;
    int chain_offset; // offset of its struct isa_chain in struct isa_insn, or -1
    int bits;         // header and untrimmed payload
};

extern const struct isa_insn_desc isa_insns[];
extern const int isa_ninsn;
extern const struct isa_field_desc isa_header_fields[];
extern const int isa_nheader_field;

/// NULL when there is no such opcode.
const struct isa_insn_desc *isa_find(unsigned opcode);
const struct isa_insn_desc *isa_find_text(const char *text, size_t len);

/// Zeroes *in, sets opcode, pattern sizes to 1 and SIZE fields to 1, engine to the first one of the
/// instruction's class (CP for SYNC).
void isa_init(struct isa_insn *in, enum isa_op op);

/// k-th operand pattern of `in` (order of insn.def).
struct isa_pat *isa_pat_at(struct isa_insn *in, int k);
const struct isa_pat *isa_pat_get(const struct isa_insn *in, int k);

/// Its chain, NULL when the instruction has none.
struct isa_chain *isa_chain_at(struct isa_insn *in);
const struct isa_chain *isa_chain_get(const struct isa_insn *in);

/// The chain computes in integers: out and every input present have integer types (a running
/// reduction's result does not count).
bool isa_chain_is_int(const struct isa_insn *in);

/// Whether a value can be stored in the field.
bool isa_field_fits(const struct isa_field_desc *f, int64_t value);

/// Encodes into out[ISA_MAX_GRANULES * 16]. Returns the granules written, or 0 with *field = name
/// of the field whose value does not fit.
int isa_encode(const struct isa_insn *in, uint8_t *out, const char **field);

/// Decodes the instruction at code[0..size). Returns its granules, or 0 with *why: "truncated",
/// "unknown opcode", "reserved bits", "length not canonical", "engine of another class",
/// "semaphore bits without semaphore", "signal of 0", "bits of an absent operand".
int isa_decode(const uint8_t *code, size_t size, struct isa_insn *out, const char **why);

/// Small facts from the tables. Bits of an unknown code: 0.
int isa_dtype_bits(int dtype);
const char *isa_dtype_name(int dtype); // NULL when unknown, as for all names below
int isa_dtype_parse(const char *text); // 0 when unknown
bool isa_dtype_is_float(int dtype);
bool isa_dtype_is_int(int dtype);  // SINT, UINT and BOOL
bool isa_dtype_on_chip(int dtype); // engines take it
const char *isa_engine_name(int engine);
enum isa_class isa_engine_class(int engine); // ISA_CLASS_ANY when unknown
const char *isa_class_name(enum isa_class cls);
const char *isa_space_name(int space);
const char *isa_vop_name(int vop);
int isa_vop_parse(const char *text); // -1 when unknown
int isa_vop_operands(int vop);       // 0 when unknown
bool isa_vop_is_sf(int vop);
const char *isa_src_name(int src);
const char *isa_red_name(int red);
const char *isa_cond_name(int cond);
const char *isa_cpalu_name(int func);
const char *isa_pool_name(int kind);
const char *isa_when_name(int when);

/// Elements of a pattern (product of sizes, at most 2^60).
int64_t isa_pat_elems(const struct isa_pat *p);

/// Lowest and one past the highest byte touched, relative to nothing: base included, registers not.
/// Clamped to +-2^62.
void isa_pat_extent(const struct isa_pat *p, int64_t *lo, int64_t *hi);

#endif
