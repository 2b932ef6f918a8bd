// SPDX-License-Identifier: Apache-2.0
//
// Hardware descriptions as text: YAML files and presets over the rows of isa/hw.def, `--set`, and
// what tools print about a machine. A description is
//
//     base: server            # optional, first: a preset to start from; else hw.def's defaults
//     mxu: {rows: 64, overlap: true}
//     spm:
//       bytes: 16 MiB         # bytes, frequencies and times carry a unit
//
// and is read strictly: an unknown, repeated, fractional or out-of-range value is BAD_INPUT
// "FILE:LINE: ...", never a guess. Presets are built into the library.
#ifndef RUNTIME_BASE_HW_YAML_H
#define RUNTIME_BASE_HW_YAML_H

#include <stddef.h>

#include "isa/hw.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

/// Loads a preset by its name, or a YAML file by its path (a name with a '/' or '.', or one that is
/// no preset). BAD_INPUT, IO.
NPU_MUST_USE npu_status hw_load(const char *name_or_path, struct hw *out);

/// Reads a description from text; `where` (a file name) starts the messages.
NPU_MUST_USE npu_status hw_parse(const char *text, size_t size, const char *where, struct hw *out);

/// Classes that hw_set_text may change.
enum hw_classes {
    HW_SET_PROGRAM = 1 << HW_PROGRAM,
    HW_SET_TIMING = 1 << HW_TIMING,
    HW_SET_ALL = HW_SET_PROGRAM | HW_SET_TIMING
};

/// Applies "GROUP.NAME=VALUE" (--set) with the same rules. USAGE, also for a parameter whose class
/// is not in `classes`.
NPU_MUST_USE npu_status hw_set_text(struct hw *hw, const char *assignment, unsigned classes);

/// The whole description as YAML; hw_parse of it gives the same values.
void hw_print_yaml(const struct hw *hw, struct str *out);

/// Derived values: peak rates, capacities, bandwidths, ridge points.
void hw_print_derived(const struct hw *hw, struct str *out);

/// Every parameter with unit, class, default, range and meaning (--list parameters).
void hw_print_parameters(struct str *out);

/// Parameters of the classes that differ, one "GROUP.NAME: A, not B" per line; returns their
/// number.
int hw_diff(const struct hw *a, const struct hw *b, unsigned classes, struct str *out);

/// One value as text with its unit: "16 MiB", "1 GHz", "ws". As hw_print_yaml writes it.
void hw_print_value(const struct hw_param_desc *p, int64_t value, struct str *out);

/// Presets, sorted by name.
struct hw_preset {
    const char *name;
    const char *text; // YAML, NUL-terminated; its first comment says what it is
    size_t size;
};
extern const struct hw_preset hw_presets[];
extern const int hw_npreset;

/// A preset by name; NULL when there is none such.
const struct hw_preset *hw_find_preset(const char *name);

/// One line per preset: name and what it is (--list targets).
void hw_print_presets(struct str *out);

#endif
