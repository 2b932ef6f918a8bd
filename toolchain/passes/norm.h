// SPDX-License-Identifier: Apache-2.0
// Parts of the pass `norm`.
#ifndef NPU_PASSES_NORM_H
#define NPU_PASSES_NORM_H

#include "toolchain/passes/pass.h"

// Makes GROUPNORM of layer normalisations over reshaped images.
NPU_MUST_USE npu_status pass_norm_groups(struct pass_context *c);

#endif
