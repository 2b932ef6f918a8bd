// SPDX-License-Identifier: Apache-2.0
//
// What users fix about a model from outside; every front end takes it.
#ifndef NPU_FRONTEND_COMMON_OPTIONS_H
#define NPU_FRONTEND_COMMON_OPTIONS_H

#include "runtime/base/npy.h"
#include "toolchain/graph/graph.h"

// --shape NAME=1,3,224,224: the whole shape of an input.
struct import_shape {
    const char *name;
    int rank;
    int64_t dims[GRAPH_MAX_RANK];
};

// --dim NAME=512: a named dimension wherever it stands.
struct import_dim {
    const char *name;
    int64_t size;
};

// --const NAME=FILE: an input that becomes a constant. The data must live as long as the graph.
struct import_const {
    const char *name;
    struct tensor_data value;
};

struct import_options {
    const struct import_shape *shapes;
    int nshape;
    const struct import_dim *dims;
    int ndim;
    const struct import_const *consts;
    int nconst;
};

#endif
