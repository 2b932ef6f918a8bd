// SPDX-License-Identifier: Apache-2.0
//
// Integers that overflow. PyTorch wraps them modulo 2^bits; a chain computes in 64 bits and
// saturates what leaves it. So a chain that may overflow ends with the low bits of its result,
// extended: by two shifts for signed types, a mask or a remainder for unsigned ones. The matrix
// engine multiplies integers of 8 bits only, so products and running sums of wider ones are
// additions of the vector engine.

#include "toolchain/frontend/common/functions.h"
#include "toolchain/frontend/pt2/import.h"

// Stages that leave the value of the low bits; NULL: the type has all 64, or is no integer.
static const char *wrapping(enum isa_dtype type) {
    // Immediates are whole up to 2^24, and taken as 32 bits: no mask or modulus for u32.
    static const char *const words[] = {
        [ISA_I8] = "shl 56; shr 56",  [ISA_I16] = "shl 48; shr 48",
        [ISA_I32] = "shl 32; shr 32", [ISA_U8] = "and 255",
        [ISA_U16] = "and 65535",      [ISA_U32] = "shl 32; shr 32 =tmp; lt 0; shl 32; add tmp",
    };
    return (size_t)type < sizeof words / sizeof *words ? words[type] : NULL;
}

static bool all_integers(struct graph_value *const *in, int count) {
    for (int k = 0; k < count; k++)
        if (!isa_dtype_is_int(in[k]->dtype)) return false;
    return true;
}

npu_status pt2_map(struct pt2_node *n, enum isa_dtype type, const char *chain, const double *params,
                   int nin, struct graph_value *const *in, struct graph_value **out) {
    const char *wrap = all_integers(in, nin) ? wrapping(type) : NULL;
    if (wrap) chain = arena_printf(n->m->arena, "%s; %s", chain, wrap);
    return build_map(&n->b, type, chain, params, nin, in, out);
}

npu_status pt2_cast(struct pt2_node *n, struct graph_value *x, enum isa_dtype to,
                    struct graph_value **out) {
    const char *wrap = isa_dtype_is_int(x->dtype) && x->dtype != ISA_BOOL ? wrapping(to) : NULL;
    if (!wrap || x->dtype == to) return build_cast(&n->b, x, to, out);
    return build_map(&n->b, to, wrap, NULL, 1, &x, out);
}

npu_status pt2_widen(struct pt2_node *n, struct graph_value *x, struct graph_value **out) {
    return build_cast(&n->b, x, wrapping(x->dtype) ? ISA_I64 : x->dtype, out);
}

// ---- products and running sums ---------------------------------------------------------------

npu_status pt2_product(struct pt2_node *n, struct graph_value *x, struct graph_value *w,
                       struct graph_value **out) {
    struct graph_value *in[2] = {x, w};
    bool wide = all_integers(in, 2) && isa_dtype_bits(x->dtype) > 8;
    if (!wide) return build_product(&n->b, x, w, out);
    if (!x->rank || !w->rank) return npu_fail(BAD_INPUT, "a scalar in a matrix product");
    bool row = x->rank == 1, column = w->rank == 1;
    if (row) NPU_TRY(build_reshape(&n->b, x, 2, (int64_t[]){1, x->dims[0]}, &x));
    if (column) NPU_TRY(build_reshape(&n->b, w, 2, (int64_t[]){w->dims[0], 1}, &w));
    NPU_TRY(build_integer_product(&n->b, x, w, out));
    int64_t dims[GRAPH_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < (*out)->rank; d++)
        if (!(row && d == (*out)->rank - 2) && !(column && d == (*out)->rank - 1))
            dims[rank++] = (*out)->dims[d];
    return build_reshape(&n->b, *out, rank, dims, out);
}

npu_status pt2_running_sum(struct pt2_node *n, struct graph_value *x, int axis,
                           struct graph_value **out) {
    NPU_TRY(pt2_widen(n, x, out));
    return build_cumsum(&n->b, *out, axis, false, false, out);
}
