// SPDX-License-Identifier: Apache-2.0
// From a planned, synchronised tile program to machine code and a program image.
#ifndef NPU_CODEGEN_CODEGEN_H
#define NPU_CODEGEN_CODEGEN_H

#include <stddef.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/container.h"
#include "toolchain/tile/tile.h"

struct codegen_options {
    bool loops; // roll repeated instructions into hardware loops
    const char *program_name;
    const char *producer;
    const char *target; // preset name or description file
    const char *dtype_mode;
    const struct npu_image_record *record;   // without results, which are added; NULL: none
    const struct npu_image_launch *launches; // of an eager program; lent
    size_t nlaunches;                        // 0: the program is one submission
    uint32_t views;                          // npu_image_entry.views
};

// A stream of instructions with final addresses, HALT at the end.
struct codegen_stream {
    struct isa_insn *insn;
    int n;
};

// Replaces buffers by addresses, in the operations of one launch; 0 is all of a program that has no
// others.
void codegen_select(const struct tile_program *p, int launch, struct codegen_stream *out);

// Rolls runs of instructions that repeat but for constant steps of their addresses into LOOP ...
// ENDL. The dynamic sequence of instructions with their effective addresses stays the same.
void codegen_roll(struct arena *a, struct codegen_stream *s);

// Stores stretches of instructions that occur again, with other bases and tags, once, and calls
// them. The dynamic sequence of the engines' instructions, with their effective addresses
// and tags, stays the same.
// cycles: about how long the run takes.
void codegen_call(struct arena *a, const struct hw *hw, double cycles, struct codegen_stream *s);

// What a run of the stream fetches from DRAM: bytes of code, and how often it needs a block that it
// did not ask for ahead.
struct codegen_fetch {
    int64_t bytes, misses;
};
struct codegen_fetch codegen_fetched(struct arena *a, const struct hw *hw,
                                     const struct codegen_stream *s);

// Machine code in the arena. A field that does not fit is our fault, not the user's: NPU_ASSERT.
struct span codegen_encode(struct arena *a, const struct codegen_stream *s);

// Everything that goes into the .npu. Constants are lent from the tile program.
struct npu_program_image *codegen_image(struct tile_program *p, const struct graph *g,
                                        struct span code, const struct codegen_options *o);

#endif
