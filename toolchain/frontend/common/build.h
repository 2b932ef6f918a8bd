// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/: emitting core nodes, for every front end. Whatever has only constants as inputs
// and is small is computed at once, so shape arithmetic needs no special care. A front end's node
// embeds a struct build; importers hand it on:
//
//     NPU_TRY(build_matmul(b, x, weights, false, true, &y));
//     NPU_TRY(build_map2(b, "add in1", y, bias, &y));
#ifndef NPU_FRONTEND_COMMON_BUILD_H
#define NPU_FRONTEND_COMMON_BUILD_H

#include "toolchain/graph/graph.h"

// Where emitted nodes go and what they are called. Everything is lent.
struct build {
    struct graph *g;
    struct arena *arena; // lives as long as the graph
    struct arena *temp;  // reset after every folded node
    const char *name;    // of the model's node: name and origin of what is emitted
    const char *label;   // names of intermediate values start with it
};

// The type that the graph computes in: f64 becomes f32, u64 becomes i64.
enum isa_dtype build_dtype(enum isa_dtype file);

// A node at the end of the graph, without attributes and outputs yet.
struct graph_node *build_core(const struct build *b, enum graph_op op, int nin,
                              struct graph_value *const *in);
// Infers, folds when everything is constant and small; *out is the result.
NPU_MUST_USE npu_status build_emit(const struct build *b, struct graph_node *node,
                                   struct graph_value **out);

// A MAP from a chain in words: stages separated by ';', each an operation and its operands: acc in0
// in1 in2 tmp, a number, or $0..$7 for params[]; "=tmp" after a stage saves its result. dtype NONE:
// the inputs' promoted type. Small constant operands become immediates.
//     build_map(b, ISA_F32, "mul $0 =tmp; mov in0; lt 0; sel tmp in0", (double[]){alpha}, 1, &x,
//     &y)
NPU_MUST_USE npu_status build_map(const struct build *b, enum isa_dtype dtype, const char *chain,
                                  const double *params, int nin, struct graph_value *const *in,
                                  struct graph_value **out);
NPU_MUST_USE npu_status build_map1(const struct build *b, const char *chain, struct graph_value *x,
                                   struct graph_value **out);
NPU_MUST_USE npu_status build_map2(const struct build *b, const char *chain, struct graph_value *x,
                                   struct graph_value *y, struct graph_value **out);
NPU_MUST_USE npu_status build_cast(const struct build *b, struct graph_value *x, enum isa_dtype to,
                                   struct graph_value **out);

// Moves; those that would change nothing give x itself.
NPU_MUST_USE npu_status build_reshape(const struct build *b, struct graph_value *x, int rank,
                                      const int64_t *dims, struct graph_value **out);
NPU_MUST_USE npu_status build_transpose(const struct build *b, struct graph_value *x,
                                        const int64_t *perm, struct graph_value **out);
NPU_MUST_USE npu_status build_expand(const struct build *b, struct graph_value *x, int rank,
                                     const int64_t *dims, struct graph_value **out);
NPU_MUST_USE npu_status build_slice(const struct build *b, struct graph_value *x,
                                    const int64_t *starts, const int64_t *sizes,
                                    const int64_t *steps, struct graph_value **out);
NPU_MUST_USE npu_status build_concat(const struct build *b, int count,
                                     struct graph_value *const *in, int axis,
                                     struct graph_value **out);
// Notes at the inputs of the graph that the index comes from how large it may be. BAD_INPUT: a
// known index out of range.
NPU_MUST_USE npu_status build_gather(const struct build *b, struct graph_value *x,
                                     struct graph_value *index, int axis, struct graph_value **out);
// BAD_INPUT: integers that are known, of which one is not within -size .. size - 1.
NPU_MUST_USE npu_status build_check_index(const struct graph_value *index, int64_t size);
NPU_MUST_USE npu_status build_pad(const struct build *b, struct graph_value *x,
                                  const int64_t *before, const int64_t *after, const char *mode,
                                  double value, struct graph_value **out);

// Arithmetic.
NPU_MUST_USE npu_status build_reduce(const struct build *b, struct graph_value *x, const char *mode,
                                     int count, const int64_t *axes, bool keepdims,
                                     struct graph_value **out);
NPU_MUST_USE npu_status build_matmul(const struct build *b, struct graph_value *x,
                                     struct graph_value *y, bool tx, bool ty,
                                     struct graph_value **out);
NPU_MUST_USE npu_status build_softmax(const struct build *b, struct graph_value *x, int axis,
                                      bool logarithm, struct graph_value **out);

// New constants; data is copied.
struct graph_value *build_new_const(const struct build *b, enum isa_dtype dtype, int rank,
                                    const int64_t *dims, const void *data);
struct graph_value *build_new_ints(const struct build *b, int rank, const int64_t *dims,
                                   const int64_t *items);
// A scalar of a type.
struct graph_value *build_new_scalar(const struct build *b, enum isa_dtype dtype, double v);

#endif
