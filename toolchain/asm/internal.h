// SPDX-License-Identifier: Apache-2.0
//
// Shared by the assembler's files: the state of one assembly and the scanner of a line.
#ifndef TOOLCHAIN_ASM_INTERNAL_H
#define TOOLCHAIN_ASM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "toolchain/asm/asm.h"

/// A line being read: `p` moves towards `end`.
struct asm_line {
    const char *start, *p, *end;
    int number; // from 1
};

/// A place that waits for a label's address.
struct asm_fixup {
    struct asm_line line; // the instruction, or the directive's label
    size_t granule;       // of the instruction
    uint64_t *bytes;      // of a directive: where the address goes; else NULL
};

/// Rows that fixups write through: they stay where they are while the lists grow.
struct asm_entry {
    struct npu_image_entry *row;
};
struct asm_launch {
    struct npu_image_launch *row;
    size_t entry; // number of the entry point that it belongs to
};

VEC_TYPE(asm_bytes, uint8_t);

struct asm_state {
    struct arena *arena;
    const char *where;
    bool code_only;
    struct diag faults;
    struct asm_bytes code;
    struct map labels; // value: const size_t *, its granule
    VEC(struct asm_fixup) fixups;
    VEC(struct npu_image_tensor) tensors;
    VEC(struct npu_image_segment) segments;
    VEC(struct asm_entry) entries;
    VEC(struct asm_launch) launches;
    VEC(struct npu_image_weights) weights;
    VEC(struct npu_image_tag) tags;
    VEC(struct npu_image_span) spans;
    VEC(struct npu_image_buffer) buffers;
    VEC(struct npu_image_stat) stats;
    VEC(struct npu_image_option) options;
    VEC(struct npu_image_result) results;
    struct npu_image_record record;
    VEC(const char *) sets;
    struct str yaml;
    struct asm_bytes hex; // the chunk that .hex lines are filling
    uint64_t weights_at;  // next byte of the constants
    bool have_dram, have_hash, have_record, code_bytes_given;
    uint64_t hash[2];
    struct npu_program_image image;
};

/// Adds "WHERE:LINE:COLUMN: message"; `at` is in the line.
void asm_fault(struct asm_state *s, const struct asm_line *line, const char *at, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

/// Scanner. Each skips blanks first; false after a fault was added.
void asm_blank(struct asm_line *line);
bool asm_end(struct asm_state *s, struct asm_line *line);
bool asm_eat(struct asm_line *line, char c);
size_t asm_word(struct asm_line *line, const char **at); // letters, digits, '_'; may be 0
bool asm_u64(struct asm_state *s, struct asm_line *line, uint64_t *out);
bool asm_i64(struct asm_state *s, struct asm_line *line, int64_t *out);
bool asm_string(struct asm_state *s, struct asm_line *line, const char **out, size_t *len);

/// One "key=value" that a directive may have.
enum asm_arg_type {
    ASM_U64,
    ASM_U32,
    ASM_I64,
    ASM_TEXT,
    ASM_DTYPE,
    ASM_ADDRESS,
    ASM_U32S,
    ASM_TEXTS
};
struct asm_arg {
    const char *key;
    enum asm_arg_type type;
    void *out;     // of the type; ASM_ADDRESS: uint64_t *; lists: pointer, and `count`
    size_t *count; // of lists
    bool given;
};

/// Reads arguments up to the end of the line; an unknown or repeated key is a fault.
bool asm_args(struct asm_state *s, struct asm_line *line, struct asm_arg *args, size_t nargs);

/// A directive's line, its name already read.
void asm_directive(struct asm_state *s, struct asm_line *line, const char *name, size_t len);

/// Fills s->image from what was read; the last step.
npu_status asm_finish(struct asm_state *s, const struct asm_machine *given);

/// CRC-32 as zlib's.
uint32_t asm_crc(struct span bytes);

#endif
