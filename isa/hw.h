// SPDX-License-Identifier: Apache-2.0
// The hardware description: rows of hw.def as a struct, their facts as a table, derived values.
// Freestanding (hw_derived.c needs floating point).
#ifndef NPU_ISA_HW_H
#define NPU_ISA_HW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// clang-format off
struct hw {
#define HW_GROUP(g, title)
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc) int64_t g##_##name;
#define HW_ENUM(g, name, cls, def, words, doc) int64_t g##_##name;
#include "isa/hw.def"
};

enum hw_unit {
    HW_COUNT, HW_CYCLES, HW_BYTES, HW_MHZ, HW_PERCENT, HW_FLAG, HW_BITS, HW_PS, HW_WORDS
};
enum hw_class { HW_PROGRAM, HW_TIMING };
enum hw_dataflow { HW_WS, HW_OS, HW_IS, HW_DOT };
enum hw_dram_standard { HW_LPDDR4_2400, HW_LPDDR5_6400, HW_DDR4_3200, HW_HBM2_2000, HW_IDEAL };
enum hw_dram_fidelity { HW_FAST, HW_DETAILED };
// clang-format on

struct hw_param_desc {
    const char *key;   // "mxu.rows"
    const char *words; // of an HW_ENUM row: "ws|os"; else NULL
    const char *doc;
    enum hw_unit unit; // HW_WORDS for an HW_ENUM row
    enum hw_class cls;
    int64_t def, lo, hi; // an HW_ENUM row: indices; what is allowed is in words (hw_in_range)
    size_t offset;       // of the int64_t in struct hw
};
extern const struct hw_param_desc hw_params[];
extern const int hw_nparam;

/// Title of the group that a row of hw_params stands in.
const char *hw_group_title(const struct hw_param_desc *p);

/// The defaults of hw.def: preset server.
void hw_defaults(struct hw *hw);

/// The row of a key "group.name", NULL when there is none.
const struct hw_param_desc *hw_find(const char *key, size_t len);

/// Reads or writes a member; hw_set checks nothing.
int64_t hw_get(const struct hw *hw, const struct hw_param_desc *p);
void hw_set(struct hw *hw, const struct hw_param_desc *p, int64_t value);

/// Within [lo, hi], or an index of a word.
bool hw_in_range(const struct hw_param_desc *p, int64_t value);

/// Index of a word of an HW_ENUM row, -1 when there is none such.
int hw_word(const struct hw_param_desc *p, const char *word, size_t len);

/// The word of an index and its length, not NUL-terminated; NULL when there is none such.
const char *hw_word_text(const struct hw_param_desc *p, int64_t value, size_t *len);

/// 64-bit FNV-1a over key and value of all rows of a class.
uint64_t hw_hash(const struct hw *hw, enum hw_class cls);

/// Derived values.
int64_t hw_psum_row_bytes(const struct hw *hw);        // 4 C
int64_t hw_psum_bytes(const struct hw *hw);            // banks * rows * 4 C
int64_t hw_spm_bytes_per_cycle(const struct hw *hw);   // banks * bank_bytes
int64_t hw_dram_mega_transfers(const struct hw *hw);   // MT/s of a pin; 0 for ideal memory
int64_t hw_dram_bytes_per_kcycle(const struct hw *hw); // per 1000 NPU cycles; 0 for ideal memory
double hw_peak_macs_per_s(const struct hw *hw, int dtype);
double hw_dram_bytes_per_s(const struct hw *hw); // 0 for ideal memory
double hw_dram_bytes_per_cycle(const struct hw *hw);
double hw_ridge_macs_per_byte(const struct hw *hw, int dtype); // 0 for ideal memory

#endif
