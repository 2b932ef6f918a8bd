// SPDX-License-Identifier: Apache-2.0
// ONNX TensorProto files (.pb), as test cases of ONNX store them.
#ifndef NPUSIM_TENSORPROTO_H
#define NPUSIM_TENSORPROTO_H

#include "runtime/base/npy.h"

// Reads a tensor out of any bytes. Data is copied into the arena. BAD_INPUT says where the bytes
// are wrong, UNSUPPORTED for strings, complex numbers and external data.
NPU_MUST_USE npu_status tensorproto_parse(struct arena *a, struct span bytes,
                                          struct tensor_data *out);

#endif
