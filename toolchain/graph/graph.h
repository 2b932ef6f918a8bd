// SPDX-License-Identifier: Apache-2.0
// The graph IR: values and nodes of one model with static shapes, all in one arena, never freed one
// by one.
//
// Invariants (graph_verify checks them): nodes stand in an order in which every value is defined
// before use; each value has one producer (node, input or constant); names of values are unique;
// shapes and types agree with the op's shape rule; a chain obeys the limits of the vector engine
// (ISA_STAGES, ISA_IMMS, one special function).
#ifndef NPU_GRAPH_GRAPH_H
#define NPU_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/insn.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"

#define GRAPH_MAX_RANK 8
#define GRAPH_ALIGNED_BYTES 65536

enum graph_trait { GRAPH_CHAIN = 1, GRAPH_VIEW = 2, GRAPH_COMM = 4 };

enum graph_op {
#define GRAPH_OP(N, text, min_in, max_in, outs, traits, shape, ref, doc) GRAPH_##N,
#include "toolchain/graph/ops.def"
    GRAPH_OPS
};
enum graph_attr_key {
#define GRAPH_ATTR(N, text, kind, doc) GRAPH_ATTR_##N,
#include "toolchain/graph/attr.def"
    GRAPH_ATTRS
};
enum graph_attr_kind { GRAPH_INT, GRAPH_FLOAT, GRAPH_INTS, GRAPH_FLOATS, GRAPH_WORD };

struct graph_attr {
    enum graph_attr_key key;
    int64_t i; // INT
    double f;  // FLOAT
    int n;     // INTS, FLOATS
    const int64_t *ints;
    const double *floats;
    const char *word; // WORD
};

// How a value lies in memory: dims_order[0] is the outermost logical dimension in storage. NULL
// order = row-major (identity).
struct graph_value {
    int id;           // index in graph.values
    const char *name; // the model's own name where it has one
    enum isa_dtype dtype;
    int rank;                     // 0 for a scalar
    int64_t dims[GRAPH_MAX_RANK]; // outermost first, each >= 0 (0 only before folding)
    const void *data; // constant: row-major elements (i4/u4 packed), borrowed or in the arena; else
                      // NULL. Aligned for their type, but for those borrowed from a file that take
                      // more than GRAPH_ALIGNED_BYTES: read them by num_read_f32, memcpy
    enum isa_dtype data_dtype; // of the elements at data where it is not dtype: each is rounded to
                               // dtype when it is used (graph_constant); else ISA_DTYPE_NONE
    const char *source;        // constant borrowed from a mapped file: its path; else NULL
    int64_t source_offset;     // and the offset in it, bytes
    struct graph_node *producer; // NULL for inputs and constants
    bool is_input, is_output;
    bool has_order;            // storage order differs from row-major
    int order[GRAPH_MAX_RANK]; // storage order: order[0] = logical dimension that is outermost in
                               // memory
    int64_t index_limit; // inputs of integer type that index a dimension: its size (0 unknown)
    enum isa_dtype file_dtype; // inputs and outputs: the type in the model's file
    const char *file_name;     // outputs, states: their name in the file where an input has it too;
                               // else NULL
    bool is_state;             // inputs: kept from run to run, the host gives none
    const struct graph_value *initial; // states: the constant they start as, which no node need
                                       // read; NULL: zero
    struct graph_value *state; // outputs: the state whose next value this is, of its shape; the
                               // host does not see this output. Else NULL
};

// A node. inputs[0..nin) are the op's own inputs, then the chain's extra operands: chain_in[k] is
// the index in inputs of the chain's IN<k> (-1: absent). For MAP chain_in = {0, 1, 2} as present.
// For other ops IN0 is the op's own result and chain_in[0] = -1.
struct graph_node {
    int id;
    enum graph_op op;
    const char *name; // the model's node name, or made from it
    struct graph_value **inputs;
    int nin;
    int nown; // inputs of the op itself; the chain's extra operands follow
    struct graph_value **outputs;
    int nout;
    struct graph_attr *attrs;
    int nattr;
    bool has_chain;
    struct isa_chain chain;
    int chain_in[3];
    const char **origins; // model node names that this node stands for (grows with fusion)
    int norigin;
    int call;           // the model's own node that it is a part of: index in graph.calls + 1; 0:
                        // not known. Passes over the whole graph do not keep it
    const char *kernel; // kernel name shown in reports, set by passes and lowering; NULL before
    struct graph_node *prev, *next;
};

// A node of the model's file in the file's order, as a framework's eager mode would call it. Nodes
// that only hold a constant are none.
struct graph_call {
    const char *name, *op; // "layers.0.attn", "linear" or "Gemm"
};

struct graph {
    struct arena *arena;
    const char *name;
    struct graph_node *first, *last;
    struct graph_value **values; // by id, NULL where removed
    int nvalue, cap_value;
    struct graph_value **inputs, **outputs;
    int ninput, noutput;
    int cap_input, cap_output;
    struct graph_call *calls;
    int ncall, cap_call;
    int next_node_id;
    struct map *names; // name -> value, of the values that exist
};

struct graph_eval;
struct graph_op_desc {
    const char *name, *text, *doc;
    int min_in, max_in, nout;
    unsigned traits;
    npu_status (*shape)(struct graph *g, struct graph_node *n);
    npu_status (*eval)(struct graph_eval *e); // eval.h
};
extern const struct graph_op_desc graph_ops[GRAPH_OPS];
struct graph_attr_desc {
    const char *text, *doc;
    enum graph_attr_kind kind;
};
extern const struct graph_attr_desc graph_attrs[GRAPH_ATTRS];
int graph_op_parse(const char *text);   // -1 when unknown
int graph_attr_parse(const char *text); // -1 when unknown

struct graph *graph_new(struct arena *a, const char *name);

// Values. Names are made unique by a suffix.
struct graph_value *graph_add_value(struct graph *g, const char *name, enum isa_dtype dtype,
                                    int rank, const int64_t *dims);
struct graph_value *graph_add_const(struct graph *g, const char *name, enum isa_dtype dtype,
                                    int rank, const int64_t *dims, const void *data);
// Type of the elements at a constant's data.
enum isa_dtype graph_data_dtype(const struct graph_value *v);
// A constant's elements in the value's own type: its data, or made from it in memory of the arena.
const void *graph_constant(const struct graph_value *v, struct arena *a);
void graph_add_input(struct graph *g, struct graph_value *v);
void graph_add_output(struct graph *g, struct graph_value *v);
// Gives the value exactly this name; another value that has it gets a suffix.
void graph_rename_value(struct graph *g, struct graph_value *v, const char *name);
// The value of that name, or NULL.
struct graph_value *graph_find_value(const struct graph *g, const char *name);
int64_t graph_value_elems(const struct graph_value *v);
int64_t graph_value_bytes(const struct graph_value *v);
// Elements between neighbours in each logical dimension, for the value's storage order.
void graph_value_strides(const struct graph_value *v, int64_t strides[GRAPH_MAX_RANK]);

// Nodes. The node is placed before `before` (NULL: at the end); outputs are made by graph_infer()
// after attributes are set:
//   n = graph_add_node(g, GRAPH_CONV, "conv1", 2, in, NULL); graph_set_ints(g, n, GRAPH_ATTR_PADS,
//   4, p); NPU_TRY(graph_infer(g, n, name));
struct graph_node *graph_add_node(struct graph *g, enum graph_op op, const char *name, int nin,
                                  struct graph_value *const *in, struct graph_node *before);
// (again after a change of inputs, attributes or chain: the outputs keep their identity, types and
// dimensions are refreshed).
npu_status graph_infer(struct graph *g, struct graph_node *n, const char *output_name);
// Appends an operand of the chain to inputs and returns the enum isa_src that names it. Ops other
// than MAP: IN1, then IN2.
int graph_add_chain_input(struct graph *g, struct graph_node *n, struct graph_value *v);
// The logical type that chain arithmetic runs in: true for i64 (the output and every input the
// chain sees are integers), else f32.
bool graph_chain_is_int(const struct graph_node *n);
// The op's own result type, before the chain and the dtype attribute: what the chain's IN0 is (MAP:
// its first input's type).
enum isa_dtype graph_own_dtype(const struct graph_node *n);
// Checks the chain alone: opcodes, operands that exist, immediates, one special function, no float
// op in an integer chain.
npu_status graph_chain_check(const struct graph_node *n);
// MAP with one chain. in[] has up to three values; stages and immediates are copied. dtype NONE:
// the promoted type of the inputs.
npu_status graph_add_map(struct graph *g, const char *name, int nin, struct graph_value *const *in,
                         const struct isa_chain *chain, enum isa_dtype dtype,
                         struct graph_node *before, struct graph_value **out);
void graph_set_int(struct graph *g, struct graph_node *n, enum graph_attr_key k, int64_t v);
void graph_set_float(struct graph *g, struct graph_node *n, enum graph_attr_key k, double v);
void graph_set_word(struct graph *g, struct graph_node *n, enum graph_attr_key k, const char *w);
void graph_set_ints(struct graph *g, struct graph_node *n, enum graph_attr_key k, int count,
                    const int64_t *v);
void graph_set_floats(struct graph *g, struct graph_node *n, enum graph_attr_key k, int count,
                      const double *v);
const struct graph_attr *graph_attr(const struct graph_node *n,
                                    enum graph_attr_key k); // NULL when absent
int64_t graph_int(const struct graph_node *n, enum graph_attr_key k, int64_t otherwise);
double graph_float(const struct graph_node *n, enum graph_attr_key k, double otherwise);
const char *graph_word(const struct graph_node *n, enum graph_attr_key k, const char *otherwise);
// ints(n, key)[i], or `otherwise` when the attribute is absent.
int64_t graph_ints_at(const struct graph_node *n, enum graph_attr_key k, int i, int64_t otherwise);

void graph_add_origin(struct graph *g, struct graph_node *n, const char *name);
void graph_add_origins(struct graph *g, struct graph_node *n, const struct graph_node *from);
// A further call; returns its number, from 1. The nodes behind `last` (NULL: all) that belong to no
// call yet belong to it.
int graph_add_call(struct graph *g, const char *name, const char *op, struct graph_node *last);
// Unlinks a node; its outputs must be unused or replaced.
void graph_remove_node(struct graph *g, struct graph_node *n);
// Every use of `old` (inputs of nodes, graph outputs keep their name and identity) becomes
// `new_value`. A graph output stays the same output under the same name: new_value takes the name
// when it can (a node's result that is no output yet), else a COPY of it is put at the end.
void graph_replace_uses(struct graph *g, struct graph_value *old, struct graph_value *new_value);
int graph_count_uses(const struct graph *g,
                     const struct graph_value *v); // graph output counts as one use
struct graph_node *graph_single_user(
    const struct graph *g, const struct graph_value *v); // NULL unless exactly one use, by a node

// Checks every invariant; the message names node and value. `stage` is put into it.
npu_status graph_verify(const struct graph *g, const char *stage);

// Text form, readable back by toolchain/frontend/text. Constants of up to 64 elements are spelled
// out, those borrowed from a file are .incbin references, other large ones only crc(...): a text
// with those cannot be read back, graph_save() writes it whole.
struct str;
void graph_print(const struct graph *g, struct str *out);
void graph_print_node(const struct graph_node *n, struct str *out);
void graph_print_type(const struct graph_value *v, struct str *out); // "f32[1,3,32,32]"
// Writes PATH so that it can be read back: large constants that are not in a file of PATH's folder
// or below go to PATH.bin, which it refers to.
npu_status graph_save(const struct graph *g, const char *path);

// Runs a node by the reference kernels. in/out: row-major buffers of the values' own dtypes.
npu_status graph_eval_node(const struct graph_node *n, const void *const *in, void *const *out,
                           struct arena *scratch);
// Runs the whole graph; inputs/outputs in graph order, row-major.
npu_status graph_eval(const struct graph *g, const void *const *inputs, void *const *outputs,
                      struct arena *scratch);

#endif
