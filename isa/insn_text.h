// SPDX-License-Identifier: Apache-2.0
// One line of text per instruction, and its exact inverse. Hosted code only (snprintf, strtof).
//
//   MNEMONIC [@ENGINE] [pred=rN] FIELD=VALUE... OPERAND=PATTERN... [chain=(...)] [immI=VALUE]
//            [wait=SEM:VALUE[:mono]]... [signal=SEM:INC:start|read|done]... [tag=N] [irq=1] [crc=1]
//            [trace=1]
//
//   PATTERN  SPACE:DTYPE+0xBASE[+rN][SIZE:STRIDE,...]   dimensions from the outermost inwards; +rN
//            adds a register to the base; SIZE*rN (dimension 1) takes the size from a register
//   chain    (OP [A [B]] [>tmp]; ...)   operands acc in0 in1 in2 tmp imm0..imm3 row col none
//   VALUE    a number (0x: hexadecimal), rN, a word where there are words (cond=lt, red=sum), a
//            decimal fraction for binary32; #xxxxxxxx gives a binary32's bits, #N any unnamed code
// Order is free after the mnemonic; what is not written is zero (sizes: 1). The engine may be left
// out where the class has one. wait takes the first free slot; wait0, wait1, signal0, signal1 name
// one.
#ifndef NPU_ISA_INSN_TEXT_H
#define NPU_ISA_INSN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/insn.h"

/// Room for the longest line.
#define ISA_TEXT_BYTES 2048

/// Writes the line, NUL-terminated and cut when `size` is too small; returns its full length as
/// snprintf does. With `label` not NULL, a branch's or call's offset is written as that word.
int isa_print(const struct isa_insn *in, const char *label, char *buf, size_t size);

struct isa_text_error {
    size_t pos;    // byte of the text at which reading stopped
    char what[96]; // what is wrong there
};

/// Gives the offset (granules) that a word at a branch's or call's offset stands for; false when
/// there is no such label.
typedef bool isa_label_fn(void *ctx, const char *word, size_t len, int64_t *offset);

/// Reads one line of `len` bytes (any bytes); `label` may be NULL: then words are refused. False
/// with *err; else *out encodes without error.
bool isa_parse(const char *text, size_t len, isa_label_fn *label, void *ctx, struct isa_insn *out,
               struct isa_text_error *err);

/// Word for a value of a field that has words (cond, func, red, space, kind), else NULL. `op` and
/// `field` as in insn.def.
const char *isa_field_word(int op, const char *field, int64_t value);

#endif
