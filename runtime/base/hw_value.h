// SPDX-License-Identifier: Apache-2.0
//
// One value of a hardware parameter from text. Inside runtime/base: hw_yaml.c and hw_value.c.
#ifndef RUNTIME_BASE_HW_VALUE_H
#define RUNTIME_BASE_HW_VALUE_H

#include "isa/hw.h"
#include "runtime/base/str.h"

/// Reads a value of the parameter; false with what is wrong (and what is accepted) in `why`.
bool hw_read_value(const struct hw_param_desc *p, const char *text, int64_t *out, struct str *why);

/// Says that there is no parameter of this name, and which one may be meant.
void hw_explain_unknown(const char *key, struct str *why);

#endif
