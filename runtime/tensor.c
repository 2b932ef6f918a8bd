// SPDX-License-Identifier: Apache-2.0
//
// Element types of the API and conversion between them. The arithmetic is isa/numeric.h's; here are
// the rules of what may become what: floats round, integers must fit, the two kinds do not mix.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "isa/numeric.h"
#include "runtime/api.h"

// The API's numbers are those of dtype.def: npu.h stands alone and spells them out.
#define ISA_DTYPE(N, text, code, bits, kind, on_chip, doc) \
    _Static_assert((int)NPU_##N == (code), "npu.h: " #N);
#include "isa/dtype.def"
_Static_assert((int)NPU_MAX_RANK == (int)CONTAINER_MAX_RANK, "npu.h: NPU_MAX_RANK");
#define CONTAINER_ROLE(NAME, text, code, meaning) \
    _Static_assert((int)NPU_##NAME == (code), "npu.h: role " #NAME);
#include "isa/container.def"

const char *npu_dtype_name(enum npu_dtype dtype) {
    const char *name = isa_dtype_bits((int)dtype) > 0 ? isa_dtype_name((int)dtype) : NULL;
    return name ? name : "?";
}

enum npu_dtype npu_dtype_parse(const char *name) {
    return (enum npu_dtype)isa_dtype_parse(name);
}

int npu_dtype_bits(enum npu_dtype dtype) {
    return isa_dtype_bits((int)dtype);
}

uint64_t npu_dtype_bytes(enum npu_dtype dtype, uint64_t elements) {
    uint64_t bits = (uint64_t)npu_dtype_bits(dtype);
    if (bits < 8) return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
    return elements * (bits / 8);
}

// f64 to f32, inexact results with an odd last bit: rounding that once more to a narrower type
// gives what rounding the f64 itself gives.
static float round_to_odd(double value) {
    float f = (float)value;
    if (isnan(value) || (double)f == value) return f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(value)) bits--; // towards zero; from infinity to the largest
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void convert_from_f64(int to, void *out, const void *in, uint64_t elements) {
    for (uint64_t i = 0; i < elements; i++) {
        double value;
        memcpy(&value, (const char *)in + i * sizeof value, sizeof value);
        num_store_f32(to, out, (int64_t)i, to == ISA_F32 ? (float)value : round_to_odd(value));
    }
}

// Element of a u64 buffer.
static uint64_t get_u64(const void *in, uint64_t index) {
    uint64_t value;
    memcpy(&value, (const char *)in + index * sizeof value, sizeof value);
    return value;
}

// Integers: each is stored, loaded again and compared; what changed did not fit.
static npu_status convert_integers(int to, void *out, int from, const void *in, uint64_t elements) {
    for (uint64_t i = 0; i < elements; i++) {
        int64_t value = num_load_i64(from, in, (int64_t)i);
        bool large = from == ISA_U64 && get_u64(in, i) > INT64_MAX; // beyond what i64 carries
        if (large && to != ISA_BOOL)
            return npu_fail(BAD_INPUT, "element %" PRIu64 " is %" PRIu64 ", which %s cannot hold",
                            i, get_u64(in, i), isa_dtype_name(to));
        num_store_i64(to, out, (int64_t)i, value);
        if (to != ISA_BOOL && num_load_i64(to, out, (int64_t)i) != value)
            return npu_fail(BAD_INPUT, "element %" PRIu64 " is %" PRId64 ", which %s cannot hold",
                            i, value, isa_dtype_name(to));
    }
    return NULL;
}

npu_status npu_convert(enum npu_dtype to, void *out, enum npu_dtype from, const void *in,
                       uint64_t elements) {
    int t = (int)to, f = (int)from;
    if (isa_dtype_bits(t) == 0 || isa_dtype_bits(f) == 0)
        return npu_fail(USAGE, "unknown element type %d", isa_dtype_bits(t) == 0 ? t : f);
    if (isa_dtype_is_float(t) != isa_dtype_is_float(f))
        return npu_fail(UNSUPPORTED, "%s given for %s, accepted: %s", isa_dtype_name(f),
                        isa_dtype_name(t), isa_dtype_is_float(t) ? "floats" : "integers and bool");
    if (elements == 0) return NULL;
    if (t == f && f != ISA_BOOL) {
        memcpy(out, in, (size_t)npu_dtype_bytes(to, elements));
    } else if (!isa_dtype_is_float(t)) {
        return convert_integers(t, out, f, in, elements);
    } else if (f == ISA_F64) {
        convert_from_f64(t, out, in, elements);
    } else {
        num_convert(t, out, f, in, (size_t)elements);
    }
    return NULL;
}
