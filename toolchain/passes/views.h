// SPDX-License-Identifier: Apache-2.0
// Values that are another value with its elements in other places: chains of RESHAPE, TRANSPOSE and
// EXPAND read as one. Each dimension of the result is a list of atoms, outermost first: a number of
// steps and the distance that one step goes in the row-major elements of the root; distance 0 is a
// repetition. Atoms of size 1 are not kept.
#ifndef NPU_PASSES_VIEWS_H
#define NPU_PASSES_VIEWS_H

#include "toolchain/graph/graph.h"

#define VIEW_ATOMS 32
#define VIEW_PATH 24

struct view {
    struct graph_value *root;
    int rank;
    int first[GRAPH_MAX_RANK + 1]; // dimension d has the atoms first[d] .. first[d + 1] - 1
    int64_t size[VIEW_ATOMS], stride[VIEW_ATOMS];
    // The values between the root and what was traced, from that one on; root last.
    struct graph_value *path[VIEW_PATH];
    int npath;
};

// v itself: one atom for each dimension.
struct view view_of(struct graph_value *v);

// Follows v back through RESHAPE, TRANSPOSE, EXPAND (repeats: only when `repeats`) and, where
// `through` is not NULL, through other nodes for which it gives the input that stands for the
// output, of the same shape (NULL: stop).
struct view view_trace(struct graph_value *v, bool repeats,
                       struct graph_value *(*through)(struct graph_node *n, void *arg), void *arg);

// The view of a RESHAPE's, TRANSPOSE's or EXPAND's result, from that of its input; false: none.
bool view_apply(struct view *v, const struct graph_node *n);

// What the ops do to a view; false when the result is none (then *v is as before).
bool view_reshape(struct view *v, int rank, const int64_t *dims);
void view_transpose(struct view *v, const int64_t *perm);
bool view_expand(struct view *v, int rank, const int64_t *dims);
void view_swap_last(struct view *v); // the last two dimensions change places

int64_t view_dim(const struct view *v, int d);
bool view_repeats(const struct view *v, int d);     // dimension d has only repetitions (or size 1)
bool view_has_repeats(const struct view *v, int d); // has some
// The innermost atoms of dimension d that are repetitions: their number. The rest is no repetition
// (-1: it has some).
int64_t view_inner_repeats(const struct view *v, int d);
// Removes the repetitions of dimension d.
void view_drop_repeats(struct view *v, int d);

// All elements of the root in their order: a reshape.
bool view_in_order(const struct view *v);
// One TRANSPOSE of the root; perm gets its attribute.
bool view_is_transpose(const struct view *v, int64_t perm[GRAPH_MAX_RANK]);

// A value with the view's elements and dimensions, which has no repetitions: one on the view's path
// where it is there already, else RESHAPE, TRANSPOSE, RESHAPE of the root, as many as are needed,
// placed before `before` under names made from `name`.
npu_status view_emit(struct graph *g, const struct view *v, const char *name,
                     struct graph_node *before, struct graph_value **out);

#endif
