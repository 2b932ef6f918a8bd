// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/onnx: what an importer sees. An importer turns one ONNX node into core nodes:
//
//     npu_status import_gemm(struct onnx_node *n) {
//         struct graph_value *y;
//         NPU_TRY(onnx_matmul(n, n->in[0], n->in[1], trans_a, trans_b, &y));
//         return onnx_bind(n, 0, y);
//     }
//
// Everything it emits whose inputs are constants is computed at once (when small), so shape
// arithmetic needs no special care. Intermediate values are named after the node's first output;
// onnx_bind() gives a result its name of the model.
#ifndef NPU_FRONTEND_ONNX_IMPORT_H
#define NPU_FRONTEND_ONNX_IMPORT_H

#include "runtime/base/diag.h"
#include "toolchain/frontend/common/build.h"
#include "toolchain/frontend/onnx/onnx.h"
#include "toolchain/frontend/onnx/reader.h"

enum { ONNX_OPSET_MIN = 1, ONNX_OPSET_MAX = 24 };

struct importer {
    struct reader *r;
    struct arena *arena;
    struct arena *temp; // reset after every folded node
    struct graph *g;
    const struct import_options *options;
    struct map functions;    // "domain:name" -> Onnx__FunctionProto *
    struct diag unsupported; // gathered
    int64_t nodes;           // expanded so far, against models that expand without end
    int depth;               // of functions and subgraphs
};

// Names of one graph or function body. Lookups go on in `outer` (subgraphs see their surroundings,
// functions do not).
struct scope {
    struct map values; // name -> struct graph_value *
    const struct scope *outer;
    struct onnx_node *call; // function body: the node that called it, for attribute references
    const Onnx__FunctionProto *function; // and the function, for attribute defaults
    int64_t opset;                       // of the default domain
    int64_t contrib_opset;               // of com.microsoft
    const char *prefix;                  // of node names
};

// Stands for the result of a node that cannot be imported: what depends on it is passed over.
extern struct graph_value onnx_missing;

struct onnx_node {
    struct build b;
    struct importer *m;
    struct scope *s;
    const Onnx__NodeProto *p;
    const char *name; // for people
    const char *op;
    const char *label; // names of intermediate values start with it
    int64_t opset;
    int nin, nout;
    struct graph_value **in; // NULL: left out
    int first_value;         // ids from here on were made by this node
    npu_status failed;       // an attribute of the wrong type, found by a getter
};

typedef npu_status onnx_importer(struct onnx_node *n);

// ---- attributes: the value, or `otherwise` when the node has none; references in function bodies
// are followed ----------------
const Onnx__AttributeProto *onnx_attr(struct onnx_node *n, const char *name);
bool onnx_has(struct onnx_node *n, const char *name);
int64_t onnx_int(struct onnx_node *n, const char *name, int64_t otherwise);
double onnx_float(struct onnx_node *n, const char *name, double otherwise);
const char *onnx_string(struct onnx_node *n, const char *name, const char *otherwise);
// Number of items, -1 when absent.
int onnx_ints(struct onnx_node *n, const char *name, const int64_t **items);
// The attribute as at most `room` items, -1 when absent; more than room is an error.
int onnx_ints_into(struct onnx_node *n, const char *name, int64_t *items, int room);

// ---- inputs ----------------------------------------------------------------------------------
bool onnx_given(const struct onnx_node *n, int k);
// At least `least` inputs, all of the first `least` given.
NPU_MUST_USE npu_status onnx_need(struct onnx_node *n, int least, int most);
bool onnx_used(const struct onnx_node *n, int k); // output k has a name
// The elements of a constant integer input, at most `room`; UNSUPPORTED when it is computed at run
// time.
NPU_MUST_USE npu_status onnx_const_ints(struct onnx_node *n, int k, int64_t *items, int room,
                                        int *count);
// The elements of a constant input as f32.
NPU_MUST_USE npu_status onnx_const_floats(struct onnx_node *n, int k, float *items, int room,
                                          int *count);
NPU_MUST_USE npu_status onnx_need_const(struct onnx_node *n, int k);
// Whether a zero point, say, does nothing: left out, or a constant of zeros.
bool onnx_all_zero(const struct graph_value *v);
// A dimension number of a tensor of that rank, negative ones counted from the end.
NPU_MUST_USE npu_status onnx_axis(struct onnx_node *n, int64_t axis, int rank, int *out);
// A set of dimensions, sorted; *mask has their bits.
NPU_MUST_USE npu_status onnx_axes(struct onnx_node *n, const int64_t *axes, int count, int rank,
                                  int64_t *sorted, unsigned *mask);

// ---- results ---------------------------------------------------------------------------------
// Output k of the node is v. Unnamed outputs are ignored.
NPU_MUST_USE npu_status onnx_bind(struct onnx_node *n, int k, struct graph_value *v);

// ---- emitting core nodes: frontend/common/build.h for a node of ONNX -------------------------
#define onnx_core(n, ...) build_core(&(n)->b, __VA_ARGS__)
#define onnx_emit(n, ...) build_emit(&(n)->b, __VA_ARGS__)
#define onnx_map(n, ...) build_map(&(n)->b, __VA_ARGS__)
#define onnx_map1(n, ...) build_map1(&(n)->b, __VA_ARGS__)
#define onnx_map2(n, ...) build_map2(&(n)->b, __VA_ARGS__)
#define onnx_cast(n, ...) build_cast(&(n)->b, __VA_ARGS__)
#define onnx_reshape(n, ...) build_reshape(&(n)->b, __VA_ARGS__)
#define onnx_transpose(n, ...) build_transpose(&(n)->b, __VA_ARGS__)
#define onnx_expand(n, ...) build_expand(&(n)->b, __VA_ARGS__)
#define onnx_slice(n, ...) build_slice(&(n)->b, __VA_ARGS__)
#define onnx_concat(n, ...) build_concat(&(n)->b, __VA_ARGS__)
#define onnx_gather(n, ...) build_gather(&(n)->b, __VA_ARGS__)
#define onnx_reduce(n, ...) build_reduce(&(n)->b, __VA_ARGS__)
#define onnx_matmul(n, ...) build_matmul(&(n)->b, __VA_ARGS__)
#define onnx_pad(n, ...) build_pad(&(n)->b, __VA_ARGS__)
#define onnx_softmax(n, ...) build_softmax(&(n)->b, __VA_ARGS__)
#define onnx_new_const(n, ...) build_new_const(&(n)->b, __VA_ARGS__)
#define onnx_new_ints(n, ...) build_new_ints(&(n)->b, __VA_ARGS__)
#define onnx_new_scalar(n, ...) build_new_scalar(&(n)->b, __VA_ARGS__)

NPU_MUST_USE npu_status onnx_tensor_const(struct onnx_node *n, const Onnx__TensorProto *p,
                                          struct graph_value **out);

// Imports a subgraph in place: its inputs are args, results become its first outputs. Node names in
// it start with the prefix. A result may be &onnx_missing.
NPU_MUST_USE npu_status onnx_call_graph(struct onnx_node *n, const Onnx__GraphProto *sub,
                                        const char *prefix, int nargs,
                                        struct graph_value *const *args, int nresult,
                                        struct graph_value **results);

// The row that imports a node, NULL: none. *chain is set instead for ops that are one chain.
struct onnx_row;
const struct onnx_row *onnx_find_row(const char *domain, const char *op, int64_t opset,
                                     bool *known_op);
NPU_MUST_USE npu_status onnx_run_row(const struct onnx_row *row, struct onnx_node *n);
NPU_MUST_USE npu_status onnx_import_chain(struct onnx_node *n, enum isa_dtype dtype, int nin,
                                          const char *attrs, const char *chain);

// Every importer named by a row.
#define ONNX_OP(op, since, until, importer, meaning) onnx_importer import_##importer;
#define ONNX_CHAIN(op, since, until, inputs, type, attrs, chain)
#include "toolchain/frontend/onnx/onnx_ops.def"

#endif
