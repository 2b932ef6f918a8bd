// SPDX-License-Identifier: Apache-2.0
//
// The simulated device for npu_device_open. Linked from the library npu_simulator (CMake:
// npu::simulator, pkg-config: npu-simulator).
#ifndef NPU_SIMULATOR_H
#define NPU_SIMULATOR_H

#include "npu/npu.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What npu_device_open takes as `config` with npu_simulator_ops. Zero-initialise; NULL fields and
/// a NULL config stand for the defaults.
struct npu_simulator_config {
    const char
        *machine; // YAML text of the machine, as from npu_program_machine; NULL: preset server
    int no_data;  // 1: cycles only; values are computed just where they feed addresses and branches
};

/// Table of the simulated device.
const struct npu_device_ops *npu_simulator_ops(void);

#ifdef __cplusplus
}
#endif

#endif
