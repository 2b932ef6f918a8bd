// SPDX-License-Identifier: Apache-2.0
// Stretches of code that occur again but for their bases and tags: bodies of hardware calls.
#ifndef NPU_CODEGEN_BODY_H
#define NPU_CODEGEN_BODY_H

#include "toolchain/codegen/codegen.h"

#define BODY_FIRST_REG 7 // of those that hold differences; roll.c has the ones below
#define BODY_WAYS 9      // such registers
#define BODY_LOOP_REGS 6 // registers of a LOOP

// One occurrence.
struct place {
    int at;                   // its first instruction
    int64_t value[BODY_WAYS]; // of the registers: by how much its bases differ from the first one's
    int64_t tagbase;          // and its tags
};

struct body {
    int first, length; // of the first occurrence, instructions
    struct place *place;
    int count;
    int nway;    // registers in use
    int *way_of; // by pattern, in order: the register that it gets, counted from 1; 0: it keeps its
                 // own
    int64_t granules, saved; // of an occurrence; by the body
};

struct bodies {
    struct arena *a;
    const struct isa_insn *in;
    int n;
    int *symbol;  // the instruction without its bases and tag
    int *loop;    // LOOP around the instruction; -1: none
    int *call;    // body + 1 whose occurrence begins here; -1: inside of one; 0: neither
    int *which;   // and which of its places
    int *next;    // the first instruction from this one on that is in a body
    int *pattern; // number of the instruction's first pattern among all
    int64_t *base,
        *step;       // of each pattern: its base, and its step per iteration of the loop around
    int64_t *weight; // granules of the instructions before
    struct body **body;
    int count;
    int64_t work; // instructions compared
};

// Finds bodies that do not overlap and save code. Everything lies in the arena; the stream is lent.
struct bodies *bodies_find(struct arena *a, const struct codegen_stream *s);

// Fills symbol, loop, next, pattern, base, step and weight.
void bodies_name(struct bodies *c, struct arena *scratch);

#endif
