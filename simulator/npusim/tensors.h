// SPDX-License-Identifier: Apache-2.0
// The program's tensors and the files that the user has for them.
#ifndef NPUSIM_TENSORS_H
#define NPUSIM_TENSORS_H

#include "runtime/api.h"
#include "runtime/base/arena.h"
#include "runtime/base/npy.h"
#include "simulator/npusim/options.h"

// A tensor that the selected entry point uses.
struct npusim_tensor {
    struct npu_tensor_info info;
    size_t index;         // within its role, as npu.h numbers it
    const char *file;     // its name with / and : written _
    const char *source;   // inputs: where the values came from
    const void *values;   // inputs, for --check-layers: as the program reads them, in its own type
    const char *expected; // outputs: what --expects has for it, NULL: nothing
};

struct npusim_tensors {
    struct npusim_tensor *item;
    size_t n;
};

// Everything that a command works on.
struct npusim {
    const struct npusim_options *o;
    struct arena *a;
    struct npu_program *program;
    struct npu_device *device;
    struct npu_session *session;
    struct host_model *host; // that submits; NULL: it takes no time
    struct npusim_tensors in, out, state;
    const char *stopped;   // where --break stopped the run, NULL: it went to its end
    struct writes *writes; // lent: what instructions write, collected when somebody asks
};

// Tensors of an entry point (NULL: the default), in the order of the model.
NPU_MUST_USE npu_status npusim_tensors_list(struct npusim *s);

// A tensor by its name, else by its position; USAGE lists those there are. `what`: "input".
NPU_MUST_USE npu_status npusim_tensors_find(const struct npusim_tensors *t, const char *option,
                                            const char *name, size_t *out);

// USAGE when two of the tensors have the same file name: a folder cannot tell them apart.
NPU_MUST_USE npu_status npusim_tensors_distinct(const struct npusim_tensors *t, const char *option);

// IO when the path of an option is no folder.
NPU_MUST_USE npu_status npusim_check_folder(const char *option, const char *path);

// Path of the first file that exists in a folder for a tensor, NULL: none. prefix "in_" or "out_",
// tag may be NULL, numbered "input" or "output".
const char *npusim_find_file(struct arena *a, const char *folder, const struct npusim_tensor *t,
                             size_t position, const char *prefix, const char *tag,
                             const char *numbered);

// Reads .npy or a TensorProto, by content.
NPU_MUST_USE npu_status npusim_read_file(struct arena *a, const char *path,
                                         struct tensor_data *out);

// Whether a file has the tensor's shape; dimensions of 1 at the front do not count. BAD_INPUT says
// both.
NPU_MUST_USE npu_status npusim_check_shape(const struct npusim_tensor *t,
                                           const struct tensor_data *file);

// Gives every input of the session a value: from files, else from the seed. All faults of files are
// listed.
NPU_MUST_USE npu_status npusim_set_inputs(struct npusim *s);

// Gives the session's doorbells the values of --scalar. USAGE.
NPU_MUST_USE npu_status npusim_set_scalars(struct npusim *s);

// Finds what --expects has for each output. USAGE for --output or --expect of a tensor that there
// is not, and for folders that cannot tell outputs apart.
NPU_MUST_USE npu_status npusim_outputs_find(struct npusim *s);

// Where --outputs writes an output.
const char *npusim_output_path(const struct npusim *s, const struct npusim_tensor *t);

// Writes the outputs that were asked for.
NPU_MUST_USE npu_status npusim_write_outputs(struct npusim *s);

// An output or state in its own type, in the arena.
NPU_MUST_USE npu_status npusim_read_output(struct npusim *s, const struct npusim_tensor *t,
                                           struct tensor_data *out);

// FAULT when the program left a part of an output unwritten, whether anybody wants that output or
// not.
NPU_MUST_USE npu_status npusim_check_outputs(struct npusim *s);

// Compares outputs with files and prints a line each; DIFFER when one is too far away.
NPU_MUST_USE npu_status npusim_compare(struct npusim *s);

#endif
