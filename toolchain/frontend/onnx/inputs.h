// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/onnx: the model's inputs with static shapes.
#ifndef NPU_FRONTEND_ONNX_INPUTS_H
#define NPU_FRONTEND_ONNX_INPUTS_H

#include "toolchain/frontend/onnx/import.h"

// Adds every input that is no initializer to the graph or, where the options bind it, as a
// constant. Open dimensions are taken from the options; all that stay open are reported together,
// each with the option that would fix it.
NPU_MUST_USE npu_status inputs_import(struct importer *m, struct scope *s);

#endif
