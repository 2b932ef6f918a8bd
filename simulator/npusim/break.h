// SPDX-License-Identifier: Apache-2.0
// --break: where a run stops, and what is shown of the machine there.
#ifndef NPUSIM_BREAK_H
#define NPUSIM_BREAK_H

#include "simulator/device.h"
#include "simulator/npusim/tensors.h"

struct breaks {
    struct core_where *where; // in the arena, one per --break
    size_t n;
};

// Whether the text of a --break could be one, whatever the program. USAGE says what is accepted.
NPU_MUST_USE npu_status break_check(const char *text);

// Looks up the places of --break in the program and lets the device stop there. USAGE: the program
// has no such layer or instruction.
NPU_MUST_USE npu_status breaks_begin(struct npusim *s, struct breaks *b);

// After the run, whether it ended well or with a fault: prints where it stopped and the state of
// the machine, then the memory that --dump asks for; notes on standard error which places were not
// reached, and that memory at a fault is shown with --break fault only. *stopped: the run ended
// there. IO, NO_MEMORY, or as dumps_show.
NPU_MUST_USE npu_status breaks_show(struct npusim *s, const struct breaks *b, bool faulted,
                                    bool *stopped);

// Scalars, loops, calls, semaphores, engines. `depth`: instructions that an engine's queue holds.
void state_print(struct str *out, const struct npu_program_image *image, int64_t depth,
                 const struct exec_state *state);

#endif
