// SPDX-License-Identifier: Apache-2.0
// Small facts from the tables: names and properties of element types, engines, operations; size and
// extent of patterns.
#include "isa/insn.h"

#include <string.h>

#define LIMIT (INT64_C(1) << 62)
#define ELEMS_LIMIT (INT64_C(1) << 60)

enum dtype_kind { KIND_NONE, KIND_FLOAT, KIND_SINT, KIND_UINT, KIND_BOOL };

// clang-format off
static const struct { const char *name; unsigned char bits, kind, on_chip; } dtypes[32] = {
#define ISA_DTYPE(N, text, code, bits, kind, on_chip, doc) \
    [code] = {text, bits, KIND_##kind, on_chip},
#include "isa/dtype.def"
};
static const struct { const char *name; enum isa_class cls; } engines[ISA_ENGINES] = {
#define ISA_ENGINE(N, text, number, cls, doc) [number] = {text, ISA_CLASS_##cls},
#include "isa/unit.def"
};
enum vop_kind { VOP_ALU, VOP_SF };
static const struct { const char *name; unsigned char operands, kind; } vops[64] = {
#define ISA_VOP(N, text, code, operands, kind, types, doc) [code] = {text, operands, VOP_##kind},
#include "isa/vop.def"
};
// clang-format on

static const char *const spaces[] = {"none", "spm", "psum", "dram", "l2", "rspm", "scalar", "imem"};
static const char *const srcs[ISA_SRCS] = {"none", "acc",  "in0",  "in1",  "in2", "tmp",
                                           "imm0", "imm1", "imm2", "imm3", "row", "col"};
static const char *const reds[ISA_REDS] = {"none", "sum", "max", "min", "sumsq", "argmax", "prod"};
static const char *const conds[] = {"always", "eq", "ne", "lt", "le", "gt", "ge"};
static const char *const cpalus[] = {"add", "sub", "mul", "shl",   "shr",  "and",
                                     "or",  "min", "max", "cmplt", "cmpeq"};
static const char *const pools[] = {NULL, "max", "avg", "avgpad", "sum"};
static const char *const whens[] = {"start", "read", "done"};
static const char *const classes[] = {"CP", "DMA", "MXU", "VEC", "any"};

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))
#define NAME(table, i) ((i) >= 0 && (i) < COUNT(table) ? (table)[i] : NULL)

static bool known_dtype(int dtype) {
    return dtype >= 0 && dtype < COUNT(dtypes) && dtypes[dtype].name;
}

int isa_dtype_bits(int dtype) {
    return known_dtype(dtype) ? dtypes[dtype].bits : 0;
}

const char *isa_dtype_name(int dtype) {
    return known_dtype(dtype) ? dtypes[dtype].name : NULL;
}

int isa_dtype_parse(const char *text) {
    for (int i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].name && strcmp(dtypes[i].name, text) == 0) return i;
    return 0;
}

bool isa_dtype_is_float(int dtype) {
    return known_dtype(dtype) && dtypes[dtype].kind == KIND_FLOAT;
}

bool isa_dtype_is_int(int dtype) {
    return known_dtype(dtype) && dtypes[dtype].kind != KIND_FLOAT;
}

bool isa_dtype_on_chip(int dtype) {
    return known_dtype(dtype) && dtypes[dtype].on_chip;
}

const char *isa_engine_name(int engine) {
    return engine >= 0 && engine < ISA_ENGINES ? engines[engine].name : NULL;
}

enum isa_class isa_engine_class(int engine) {
    return engine >= 0 && engine < ISA_ENGINES ? engines[engine].cls : ISA_CLASS_ANY;
}

const char *isa_class_name(enum isa_class cls) {
    return NAME(classes, (int)cls);
}

const char *isa_space_name(int space) {
    return NAME(spaces, space);
}

static bool known_vop(int vop) {
    return vop >= 0 && vop < COUNT(vops) && vops[vop].name;
}

const char *isa_vop_name(int vop) {
    return known_vop(vop) ? vops[vop].name : NULL;
}

int isa_vop_parse(const char *text) {
    for (int i = 0; i < COUNT(vops); i++)
        if (vops[i].name && strcmp(vops[i].name, text) == 0) return i;
    return -1;
}

int isa_vop_operands(int vop) {
    return known_vop(vop) ? vops[vop].operands : 0;
}

bool isa_vop_is_sf(int vop) {
    return known_vop(vop) && vops[vop].kind == VOP_SF;
}

const char *isa_src_name(int src) {
    return NAME(srcs, src);
}

const char *isa_red_name(int red) {
    return NAME(reds, red);
}

const char *isa_cond_name(int cond) {
    return NAME(conds, cond);
}

const char *isa_cpalu_name(int func) {
    return NAME(cpalus, func);
}

const char *isa_pool_name(int kind) {
    return NAME(pools, kind);
}

const char *isa_when_name(int when) {
    return NAME(whens, when);
}

int64_t isa_pat_elems(const struct isa_pat *p) {
    int64_t n = 1;
    for (int d = 0; d < ISA_DIMS; d++) {
        if (p->size[d] <= 0) return 0;
        n = n > ELEMS_LIMIT / p->size[d] ? ELEMS_LIMIT : n * p->size[d];
    }
    return n;
}

void isa_pat_extent(const struct isa_pat *p, int64_t *lo, int64_t *hi) {
    int64_t first = 0, last = 0; // elements; |stride| < 2^40 and size <= 2^24 when decoded
    for (int d = 0; d < ISA_DIMS; d++) {
        const int64_t n = p->size[d] - 1, s = p->stride[d];
        if (n <= 0 || s == 0) continue;
        const int64_t mag = s < 0 ? -s : s;
        const int64_t span = mag > ELEMS_LIMIT / 16 / n ? ELEMS_LIMIT / 16 : mag * n;
        if (s < 0)
            first -= span;
        else
            last += span;
    }
    // 5 * 2^56 elements at most; in bits that needs another 6 binary digits, so divide by cases.
    const int64_t bits = isa_dtype_bits((int)p->dtype);
    if (bits >= 8) {
        const int64_t bytes = bits / 8;
        *lo = first < -(LIMIT / bytes) ? -LIMIT : first * bytes;
        *hi = last > LIMIT / bytes - 1 ? LIMIT : (last + 1) * bytes;
    } else { // two to a byte; an odd end still touches its byte
        *lo = -((-first + 1) / 2);
        *hi = (last + 2) / 2;
    }
    *lo += p->base;
    *hi += p->base;
}
