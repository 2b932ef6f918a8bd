// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: what an importer sees. An importer turns one call of an ATen operator into
// core nodes:
//
//     npu_status aten_mm(struct pt2_node *n) {
//         struct graph_value *y;
//         NPU_TRY(build_matmul(&n->b, pt2_in(n, "self"), pt2_in(n, "mat2"), false, false, &y));
//         return pt2_bind(n, 0, y);
//     }
//
// Arguments are asked for by name; what the export left out has the default of the row in
// aten_ops.def. A getter that meets the wrong type notes it in n->failed and gives something
// harmless; the driver looks there after the importer returned, so importers need not.
#ifndef NPU_FRONTEND_PT2_IMPORT_H
#define NPU_FRONTEND_PT2_IMPORT_H

#include "runtime/base/diag.h"
#include "toolchain/frontend/common/build.h"
#include "toolchain/frontend/pt2/alias.h"
#include "toolchain/frontend/pt2/pt2.h"
#include "toolchain/frontend/pt2/schema.h"

struct importer {
    struct archive archive;
    struct schema schema;
    struct symbols symbols;
    struct arena *arena;
    struct arena *temp; // reset after every folded node
    struct graph *g;
    const struct import_options *options;
    struct map rows;         // target -> const struct pt2_row *
    struct map weights;      // place and layout in the archive -> struct pt2_tensor *
    struct map buffers;      // name -> struct pt2_tensor *
    struct map *written;     // buffers that the model writes to, by name: states
    struct map reported;     // targets that are not supported, said once
    struct diag unsupported; // gathered
    int64_t nodes;           // imported so far, loops unrolled
    int depth;               // of subgraphs
};

// What a name of a graph stands for: a tensor or a number.
struct pt2_name {
    struct pt2_tensor *tensor; // NULL: a number
    double number;
    bool is_int; // the number, then below 2^53
};

// Names of one graph.
struct scope {
    struct map names; // name -> struct pt2_name *
    struct map read;  // names that an argument or an output has
    const json_t *tensor_values;
    const char *prefix; // of names of values: "" or "cond/true/"
};

// Stands for a result that cannot be imported: what depends on it is passed over.
extern struct pt2_name pt2_missing;

struct pt2_row;
struct pt2_node {
    struct build b;
    struct importer *m;
    struct scope *s;
    const json_t *json;
    const json_t *inputs; // arguments
    const struct pt2_row *row;
    const char *target; // "conv2d.default"
    const char **out;   // names of the results, lists of tensors flattened
    int nout;
    bool in_place;     // results replace the value of the first argument
    npu_status failed; // found by a getter
};

typedef npu_status pt2_importer(struct pt2_node *n);

// ---- arguments -------------------------------------------------------------------------------
// Given, and not None; the row's default counts.
bool pt2_given(struct pt2_node *n, const char *name);
// A tensor; a number becomes a scalar constant. NULL only for None.
struct graph_value *pt2_in(struct pt2_node *n, const char *name);
// A tensor, never NULL: None is noted as wrong.
struct graph_value *pt2_need(struct pt2_node *n, const char *name);
// With the storage it is a view of; NULL when it is a number or None.
struct pt2_tensor *pt2_tensor(struct pt2_node *n, const char *name);
// A list of tensors, entries NULL for None; 0 for None.
int pt2_tensors(struct pt2_node *n, const char *name, struct graph_value ***list);
// Item k of such a list with its storage; NULL when it is none.
struct pt2_tensor *pt2_listed(struct pt2_node *n, const char *name, size_t k);
int64_t pt2_int(struct pt2_node *n, const char *name);
bool pt2_bool(struct pt2_node *n, const char *name);
double pt2_float(struct pt2_node *n, const char *name);
// NULL for None.
const char *pt2_string(struct pt2_node *n, const char *name);
// At most `room` items; -1 for None. A single number is a list of one.
int pt2_ints(struct pt2_node *n, const char *name, int64_t *items, int room);
int pt2_floats(struct pt2_node *n, const char *name, double *items, int room);
// A list of exactly `count`, a single item repeated, None as `otherwise`.
void pt2_repeated(struct pt2_node *n, const char *name, int count, int64_t otherwise,
                  int64_t *items);
// A type argument as the graph has it, `otherwise` for None.
enum isa_dtype pt2_dtype(struct pt2_node *n, const char *name, enum isa_dtype otherwise);
// A dimension number, negative ones counted from the end; 0 for scalars.
int pt2_axis(struct pt2_node *n, const char *name, int rank);
// Dimension numbers, sorted; None and an empty list are all. Returns how many.
int pt2_axes(struct pt2_node *n, const char *name, int rank, int64_t *sorted);
// A subgraph argument by position: {"name", "graph"}. NULL is noted as wrong.
const json_t *pt2_graph(struct pt2_node *n, size_t position);
// The operand list of a higher-order operator by position; count -1 when there is none.
int pt2_operands(struct pt2_node *n, size_t position, struct graph_value ***list);
// A constant's elements as integers, at most room.
NPU_MUST_USE npu_status pt2_need_const(const struct graph_value *v, const char *name);

// ---- results ---------------------------------------------------------------------------------
// The type that the graph declares for output k; NONE: there is no such output.
enum isa_dtype pt2_out_dtype(struct pt2_node *n, int k);
// Whether somebody reads output k.
bool pt2_used(struct pt2_node *n, int k);
// Output k is v, a value of its own. Types and sizes must be those that the graph declares.
NPU_MUST_USE npu_status pt2_bind(struct pt2_node *n, int k, struct graph_value *v);
// Output k is a view of an argument.
NPU_MUST_USE npu_status pt2_bind_view(struct pt2_node *n, int k, struct pt2_tensor *of,
                                      const struct view *view);
// Output k is a value that may be in the argument's memory.
NPU_MUST_USE npu_status pt2_bind_beside(struct pt2_node *n, int k, struct pt2_tensor *of,
                                        struct graph_value *v);
// Output k is the argument itself.
NPU_MUST_USE npu_status pt2_bind_same(struct pt2_node *n, int k, struct pt2_tensor *t);
// Output k is a tensor that a subgraph of the node made.
NPU_MUST_USE npu_status pt2_bind_inner(struct pt2_node *n, int k, struct pt2_tensor *t);
// A computed size.
NPU_MUST_USE npu_status pt2_bind_number(struct pt2_node *n, double v, bool is_int);

// Imports a subgraph in place: its inputs are args, its outputs results. *missing: some part could
// not be imported.
NPU_MUST_USE npu_status pt2_call_graph(struct pt2_node *n, const json_t *sub, const char *prefix,
                                       int nargs, struct graph_value *const *args, int nresult,
                                       struct graph_value **results, bool *missing);
// The same with tensors: what the subgraph changes is changed, and results may be views.
NPU_MUST_USE npu_status pt2_call_shared(struct pt2_node *n, const json_t *sub, const char *prefix,
                                        int nargs, struct pt2_tensor *const *args, int nresult,
                                        struct pt2_tensor **results, bool *missing);
// Marks every output as not imported.
NPU_MUST_USE npu_status pt2_all_missing(struct pt2_node *n);

// ---- integers --------------------------------------------------------------------------------
// As build_map; a result of fewer than 64 bits wraps, as torch has it, instead of saturating.
NPU_MUST_USE npu_status pt2_map(struct pt2_node *n, enum isa_dtype type, const char *chain,
                                const double *params, int nin, struct graph_value *const *in,
                                struct graph_value **out);
// As build_cast; integers wrap.
NPU_MUST_USE npu_status pt2_cast(struct pt2_node *n, struct graph_value *x, enum isa_dtype to,
                                 struct graph_value **out);
// Integers in 64 bits, where sums of them do not saturate; anything else as it is.
NPU_MUST_USE npu_status pt2_widen(struct pt2_node *n, struct graph_value *x,
                                  struct graph_value **out);

// A matrix product; of integers modulo 2^64, of those of 8 bits modulo 2^32. The result may be
// wider than the operands: pt2_cast it.
NPU_MUST_USE npu_status pt2_product(struct pt2_node *n, struct graph_value *x,
                                    struct graph_value *w, struct graph_value **out);
// A running sum of integers along an axis, modulo 2^64.
NPU_MUST_USE npu_status pt2_running_sum(struct pt2_node *n, struct graph_value *x, int axis,
                                        struct graph_value **out);

// ---- the table -------------------------------------------------------------------------------
struct pt2_row {
    const char *target;
    pt2_importer *importer;   // NULL: the chain
    int tensors;              // chain: how many of the arguments are its inputs
    enum isa_dtype type;      // chain: of the result, NONE: as declared
    const char *args, *chain; // chain: of a refused one why
};
// Rows by target.
void pt2_index_rows(struct map *rows);
NPU_MUST_USE npu_status pt2_run_row(struct pt2_node *n);
// The default of an argument in the row, NULL when it has none; asserts that the row lists it.
const char *pt2_default(const struct pt2_row *row, const char *name, char *text, size_t room);

// x[.., start:end:step, ..] by Python's rules as a view; INT64_MAX: to the end.
void pt2_slice_view(const struct graph_value *x, int axis, int64_t start, int64_t end, int64_t step,
                    struct view *view);

// ---- parts of the import ---------------------------------------------------------------------
// The nodes of a graph, in order. What is not supported is gathered in m->unsupported.
NPU_MUST_USE npu_status pt2_nodes(struct importer *m, struct scope *s, const json_t *graph);
// A stored tensor by its name in the list: weights or constants.
NPU_MUST_USE npu_status pt2_weight(struct importer *m, const char *list, const char *name,
                                   struct pt2_tensor **out);
// Sizes from ranges and options, then the user's inputs.
NPU_MUST_USE npu_status pt2_inputs(struct importer *m, struct scope *s);

#define ATEN_OP(target, importer, args, meaning) pt2_importer aten_##importer;
#define ATEN_CHAIN(target, tensors, type, args, chain)
#define ATEN_REFUSED(target, why)
#include "toolchain/frontend/pt2/aten_ops.def"
// Fails with the row's reason.
pt2_importer aten_refused;

#endif
