// SPDX-License-Identifier: Apache-2.0
// insn.def and header.def as arrays of fields with their bit positions. The C compiler does the
// packing: in struct isa_bits_N every bit of the encoding is one char, so offsetof is a bit number,
// two fields cannot overlap, and what must not be is a compile error.
#include "isa/insn.h"

#include <string.h>

// clang-format off
#define PATC_BITS 256
#define PATD_BITS 384
#define CHAIN_BITS 256
#define HEADER_BITS 128

struct isa_bits_header {
#define ISA_HEADER(f, width, kind, doc) char f[width];
#include "isa/header.def"
};
_Static_assert(sizeof(struct isa_bits_header) == HEADER_BITS, "the header is one granule");
_Static_assert(HEADER_BITS == 8 * ISA_GRANULE_BYTES, "a granule");
_Static_assert(CHAIN_BITS == ISA_STAGES * 16 + ISA_IMMS * 32, "stages and immediates");

#define ISA_INSN(N, opcode, text, cls, since, ...) \
    struct isa_bits_##N { char header_[HEADER_BITS];
#define ISA_FIELD(N, f, width, kind, doc) char f[width];
#define ISA_PATC(N, f, access, doc) char f[PATC_BITS];
#define ISA_PATD(N, f, access, doc) char f[PATD_BITS];
#define ISA_CHAIN(N, f, doc) char f[CHAIN_BITS];
#define ISA_END(N) };
#include "isa/insn.def"

#define LO(N, f) offsetof(struct isa_bits_##N, f)
#define ALIGNED(N, f) \
    _Static_assert(LO(N, f) % HEADER_BITS == 0, #N "." #f ": not at a granule");
#define ONE_WORD(N, f, width) \
    _Static_assert(LO(N, f) / 64 == (LO(N, f) + (width) - 1) / 64, #N "." #f ": crosses a word");

#define ISA_HEADER(f, width, kind, doc) ONE_WORD(header, f, width)
#include "isa/header.def"

#define ISA_INSN(N, opcode, text, cls, since, ...) \
    _Static_assert((opcode) > 0 && (opcode) < 256, #N ": opcode is 8 bits"); \
    _Static_assert(sizeof(struct isa_bits_##N) <= ISA_MAX_GRANULES * HEADER_BITS, #N ": too long");
#define ISA_FIELD(N, f, width, kind, doc) ONE_WORD(N, f, width)
#define ISA_PATC(N, f, access, doc) ALIGNED(N, f)
#define ISA_PATD(N, f, access, doc) ALIGNED(N, f)
#define ISA_CHAIN(N, f, doc) ALIGNED(N, f)
#define ISA_END(N)
#include "isa/insn.def"
_Static_assert(sizeof(struct isa_insn) < UINT16_MAX, "offsets are 16 bits");

// Field rows: {name, doc, first bit, offset in struct isa_insn, width, kind}.
#define ROW(text, doc, lo, member, width, kind) \
    {text, doc, (uint16_t)(lo), (uint16_t)offsetof(struct isa_insn, member), (width), \
     ISA_KIND_##kind}
#define PAT_SIZE_DOC "elements of the dimension"
#define PAT_STRIDE_DOC "elements from one index to the next; 0 repeats"
#define PAT_HEAD(N, f, base_width) \
    ROW(#f ".space", "memory: enum isa_space; 0: operand absent, all its bits are zero", \
        LO(N, f), u.N.f.space, 3, UINT), \
    ROW(#f ".dtype", "element type: dtype.def", LO(N, f) + 3, u.N.f.dtype, 5, UINT), \
    ROW(#f ".areg", "register added to base, bytes", LO(N, f) + 8, u.N.f.areg, 4, REG), \
    ROW(#f ".sreg", "register that replaces size1; r0: none", LO(N, f) + 12, u.N.f.sreg, 4, REG)
#define DIM_ROW(N, f, lo, which, d, width, kind, doc) \
    ROW(#f "." #which #d, doc, LO(N, f) + (lo), u.N.f.which[d], width, kind)
#define PATC_ROWS(N, f) \
    PAT_HEAD(N, f, 32), DIM_ROW(N, f, 16, size, 4, 16, SIZE, PAT_SIZE_DOC), \
    ROW(#f ".base", "bytes", LO(N, f) + 32, u.N.f.base, 32, UINT), \
    DIM_ROW(N, f, 64, stride, 0, 24, SINT, PAT_STRIDE_DOC), \
    DIM_ROW(N, f, 88, stride, 1, 24, SINT, PAT_STRIDE_DOC), \
    DIM_ROW(N, f, 112, size, 0, 16, SIZE, PAT_SIZE_DOC), \
    DIM_ROW(N, f, 128, stride, 2, 24, SINT, PAT_STRIDE_DOC), \
    DIM_ROW(N, f, 152, stride, 3, 24, SINT, PAT_STRIDE_DOC), \
    DIM_ROW(N, f, 176, size, 1, 16, SIZE, PAT_SIZE_DOC), \
    DIM_ROW(N, f, 192, stride, 4, 24, SINT, PAT_STRIDE_DOC), \
    DIM_ROW(N, f, 216, size, 2, 16, SIZE, PAT_SIZE_DOC), \
    DIM_ROW(N, f, 232, size, 3, 16, SIZE, PAT_SIZE_DOC), \
    ROW(#f ".rsv", "", LO(N, f) + 248, h.rsv0, 8, RSV)
#define PATD_DIM(N, f, d) \
    DIM_ROW(N, f, 64 + 64 * (d), size, d, 24, SIZE, PAT_SIZE_DOC), \
    DIM_ROW(N, f, 88 + 64 * (d), stride, d, 40, SINT, PAT_STRIDE_DOC)
#define PATD_ROWS(N, f) \
    PAT_HEAD(N, f, 48), ROW(#f ".base", "bytes", LO(N, f) + 16, u.N.f.base, 48, UINT), \
    PATD_DIM(N, f, 0), PATD_DIM(N, f, 1), PATD_DIM(N, f, 2), PATD_DIM(N, f, 3), PATD_DIM(N, f, 4)
#define STAGE(N, f, i) \
    ROW(#f ".s" #i ".op", "operation: vop.def", LO(N, f) + 16 * (i), u.N.f.st[i].op, 6, UINT), \
    ROW(#f ".s" #i ".a", "first operand: enum isa_src", LO(N, f) + 16 * (i) + 6, \
        u.N.f.st[i].a, 4, UINT), \
    ROW(#f ".s" #i ".b", "second operand", LO(N, f) + 16 * (i) + 10, u.N.f.st[i].b, 4, UINT), \
    ROW(#f ".s" #i ".save", "1: the result is also kept as tmp", LO(N, f) + 16 * (i) + 14, \
        u.N.f.st[i].save, 1, UINT), \
    ROW(#f ".s" #i ".rsv", "", LO(N, f) + 16 * (i) + 15, h.rsv0, 1, RSV)
#define IMM(N, f, i) \
    ROW(#f ".imm" #i, "bits of a binary32, or an i32 in an integer chain", \
        LO(N, f) + 128 + 32 * (i), u.N.f.imm[i], 32, F32)
#define CHAIN_ROWS(N, f) \
    STAGE(N, f, 0), STAGE(N, f, 1), STAGE(N, f, 2), STAGE(N, f, 3), STAGE(N, f, 4), \
    STAGE(N, f, 5), STAGE(N, f, 6), STAGE(N, f, 7), \
    IMM(N, f, 0), IMM(N, f, 1), IMM(N, f, 2), IMM(N, f, 3)

const struct isa_field_desc isa_header_fields[] = {
#define ISA_HEADER(f, width, kind, doc) \
    {#f, doc, (uint16_t)offsetof(struct isa_bits_header, f), \
     (uint16_t)offsetof(struct isa_insn, h.f), (width), ISA_KIND_##kind},
#include "isa/header.def"
};
const int isa_nheader_field = (int)(sizeof isa_header_fields / sizeof isa_header_fields[0]);

// The last row only closes arrays of instructions without payload; it is not counted.
#define CLOSING {NULL, NULL, 0, 0, 0, ISA_KIND_RSV}
#define ISA_INSN(N, opcode, text, cls, since, ...) \
    static const struct isa_field_desc fields_##N[] = {
#define ISA_FIELD(N, f, width, kind, doc) ROW(#f, doc, LO(N, f), u.N.f, width, kind),
#define ISA_PATC(N, f, access, doc) PATC_ROWS(N, f),
#define ISA_PATD(N, f, access, doc) PATD_ROWS(N, f),
#define ISA_CHAIN(N, f, doc) CHAIN_ROWS(N, f),
#define ISA_END(N) CLOSING };
#include "isa/insn.def"

#define ISA_INSN(N, opcode, text, cls, since, ...) \
    static const struct isa_pat_desc pats_##N[] = {
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc) \
    {#f, doc, ISA_##access, false, (uint16_t)offsetof(struct isa_insn, u.N.f)},
#define ISA_PATD(N, f, access, doc) \
    {#f, doc, ISA_##access, true, (uint16_t)offsetof(struct isa_insn, u.N.f)},
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N) {NULL, NULL, ISA_R, false, 0} };
#include "isa/insn.def"

// Where an instruction's chain lies in struct isa_insn, -1 without one.
#define ISA_INSN(N, opcode, text, cls, since, ...) enum { chain_of_##N = -1
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc) + 1 + (int)offsetof(struct isa_insn, u.N.f)
#define ISA_END(N) };
#include "isa/insn.def"

// Position of each instruction in isa_insns, and a duplicate opcode as a duplicate case label.
enum {
#define ISA_INSN(N, opcode, text, cls, since, ...) INDEX_##N,
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N)
#include "isa/insn.def"
    INSNS
};

static int index_of(unsigned opcode) {
    switch (opcode) {
#define ISA_INSN(N, opcode, text, cls, since, ...) \
    case (opcode): return INDEX_##N;
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N)
#include "isa/insn.def"
    default: return -1;
    }
}

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]) - 1)
const struct isa_insn_desc isa_insns[] = {
#define ISA_INSN(N, opcode, text, cls, since, sum, sem, time, faults, ex) \
    {#N, text, sum, sem, time, faults, ex, ISA_OP_##N, ISA_CLASS_##cls, (since) != 0, \
     fields_##N, COUNT(fields_##N), pats_##N, COUNT(pats_##N), chain_of_##N, \
     (int)sizeof(struct isa_bits_##N)},
#define ISA_FIELD(N, f, width, kind, doc)
#define ISA_PATC(N, f, access, doc)
#define ISA_PATD(N, f, access, doc)
#define ISA_CHAIN(N, f, doc)
#define ISA_END(N)
#include "isa/insn.def"
};
// clang-format on
const int isa_ninsn = INSNS;

const struct isa_insn_desc *isa_find(unsigned opcode) {
    const int i = index_of(opcode);
    return i < 0 ? NULL : &isa_insns[i];
}

const struct isa_insn_desc *isa_find_text(const char *text, size_t len) {
    for (int i = 0; i < isa_ninsn; i++)
        if (strlen(isa_insns[i].text) == len && memcmp(isa_insns[i].text, text, len) == 0)
            return &isa_insns[i];
    return NULL;
}
