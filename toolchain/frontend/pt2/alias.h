// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: tensors as torch has them, where several may be views of one storage. The
// graph has values only, so a write makes a new value of the storage, and views of it are taken
// anew when they are next read:
//
//     y = x.view(-1); y[0] += 1          write(y[0]): y' = y with row 0 replaced, x' = y' reshaped
#ifndef NPU_FRONTEND_PT2_ALIAS_H
#define NPU_FRONTEND_PT2_ALIAS_H

#include "toolchain/frontend/common/build.h"

enum view_kind {
    VIEW_SAME,
    VIEW_RESHAPE, // dims: of the result
    VIEW_PERMUTE, // perm
    VIEW_SLICE,   // starts, steps, dims: one per dimension
    VIEW_EXPAND,  // dims; written through only where it repeats nothing
};

struct view {
    enum view_kind kind;
    int rank; // of the result
    int64_t dims[GRAPH_MAX_RANK];
    int64_t perm[GRAPH_MAX_RANK];
    int64_t starts[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
};

struct pt2_tensor {
    struct graph_value *v;     // as of version `seen` of the storage; read it by tensor_read
    struct pt2_tensor *parent; // what it is a view of; NULL: it is a storage
    struct view view;
    int64_t seen;
    int64_t version;   // of a storage: writes so far
    const char *state; // of a storage: the name under which its last value leaves; NULL: nowhere
    struct graph_value *kept;  // of a buffer that is written to: its value before the run, a state
    bool buffer;               // of a storage: a buffer, which would have to be kept
    struct pt2_tensor *beside; // of a storage: a ring of those that may be the same memory
    const char *lost;          // of a storage: where one of them was written to; NULL: nowhere
    enum isa_dtype file;       // its type in the archive
};

// A storage of its own with that value.
struct pt2_tensor *tensor_new(struct arena *a, struct graph_value *v);
// A view, with its value.
NPU_MUST_USE npu_status tensor_view(const struct build *b, struct pt2_tensor *of,
                                    const struct view *view, struct pt2_tensor **out);
// The value now.
NPU_MUST_USE npu_status tensor_read(const struct build *b, struct pt2_tensor *t,
                                    struct graph_value **out);
// Replaces the value, seen by all views of the storage. v has the type and shape of t. UNSUPPORTED
// through an expanded view, and where it may change a value that leaves the model.
NPU_MUST_USE npu_status tensor_write(const struct build *b, struct pt2_tensor *t,
                                     struct graph_value *v);

// They may be the same memory, in an order that is not followed: after a write into one of them the
// other cannot be read any more (UNSUPPORTED).
void tensor_beside(struct pt2_tensor *a, struct pt2_tensor *b);

// x with the elements that starts, steps and the dimensions of part choose replaced by part.
NPU_MUST_USE npu_status replace_slice(const struct build *b, struct graph_value *x,
                                      const int64_t *starts, const int64_t *steps,
                                      struct graph_value *part, struct graph_value **out);

#endif
