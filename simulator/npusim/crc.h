// SPDX-License-Identifier: Apache-2.0
// --crc and --crc-against: one CRC-32 per write of an instruction, as a file, and the first
// instruction whose output differs from such a file.
#ifndef NPUSIM_CRC_H
#define NPUSIM_CRC_H

#include "simulator/npusim/tensors.h"
#include "simulator/npusim/writes.h"

// Writes the file: a line for each write, in the order of execution. IO.
NPU_MUST_USE npu_status crc_write(const struct npu_program_image *image, const struct writes *w,
                                  const char *path);

// Compares with a file that crc_write made of this program or another and prints how many writes
// are the same. The same code: instruction by instruction. Other code: the n-th write of a tag on
// an engine with the n-th. DIFFER names the first instruction, in the order of this run, whose
// bytes or whose place differ. BAD_INPUT when the file is no such file, IO.
NPU_MUST_USE npu_status crc_compare(struct npusim *s, const struct writes *w,
                                    const struct trace_log *log, const char *path);

// The same with another run of which nothing is written: `their` program and what it wrote.
// *first is the index in `w` of the first that differs, SIZE_MAX: none; *theirs its counterpart
// in `v`, SIZE_MAX: it has none. NO_MEMORY.
NPU_MUST_USE npu_status crc_first_difference(const struct npu_program_image *image,
                                             const struct writes *w,
                                             const struct npu_program_image *their_image,
                                             const struct writes *v, size_t *first, size_t *theirs);

#endif
