// SPDX-License-Identifier: Apache-2.0
// Tensors as text, as NumPy prints arrays: nested brackets, columns aligned, the middle of long
// dimensions left out. What was never written is "--".
#ifndef NPUSIM_DUMP_TEXT_H
#define NPUSIM_DUMP_TEXT_H

#include "runtime/base/str.h"
#include "simulator/npusim/dump.h"

struct sim_device;

struct dump_source {
    const struct dump *dump;
    const struct sim_device *device;
};

// Bytes of element i in row-major order, into `out` (room for 8); false: it was not written.
typedef bool dump_element(void *ctx, uint64_t i, void *out);

// A line with what it is, then the values.
void dump_print(struct str *out, const struct dump *d, dump_element *get, void *ctx);

// One element: the shortest decimal that is this value in its type, or "--".
void dump_print_element(struct str *out, int dtype, const void *bytes, bool written);

#endif
