// SPDX-License-Identifier: Apache-2.0
// --dump: a piece of a memory as a typed tensor, printed or written as .npy.
#ifndef NPUSIM_DUMP_H
#define NPUSIM_DUMP_H

#include "simulator/npusim/tensors.h"

struct dump {
    const char *text;                                        // as given, without the file
    const char *file;                                        // NULL: printed
    int space;                                               // enum isa_space: SPM, PSUM, DRAM
    int dtype;                                               // enum isa_dtype; 0: plain bytes
    int rank;                                                // plain bytes: 1
    int64_t dims[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX]; // strides in elements
    int64_t address;                                         // bytes
};

// Takes the text of a --dump apart:
//
//   SPACE:ADDR:DTYPE[SHAPE]       a dense tensor: spm:0x1000:f16[4,64]; without [SHAPE] one element
//   SPACE:DTYPE+ADDR[SIZE:STRIDE,...]   as instructions are printed: spm:f16+0x1000[4:128,64:1]
//   SPACE:FIRST-LAST, SPACE:ADDR+BYTES  plain bytes; with :DTYPE a row of elements
//   result:NAME                   a layer's result, where the program's record says that it lies
//
// each with =FILE.npy behind it. `image` NULL: only the form is looked at. USAGE says what is
// accepted.
NPU_MUST_USE npu_status dump_parse(struct arena *a, const char *text,
                                   const struct npu_program_image *image, struct dump *out);

// Prints or writes every --dump. USAGE: one lies outside its memory. IO, NO_MEMORY.
NPU_MUST_USE npu_status dumps_show(struct npusim *s);

// The same as a check only, before the run.
NPU_MUST_USE npu_status dumps_check(struct npusim *s);

#endif
