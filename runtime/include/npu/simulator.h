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

/// Starts counting anew: the next report is of what runs from here on. USAGE for a device of
/// another kind.
NPU_CHECKED npu_status npu_simulator_begin(struct npu_device *device);

/// Cycle report of what the session's device ran since it was opened or last begun, with the names
/// of the session's program and its outputs as they are now: the JSON that npusim --report writes.
/// *json is yours: npu_simulator_report_free. USAGE when nothing ran, or for a device of another
/// kind. NO_MEMORY. Reports of two devices must not be made at the same time.
NPU_CHECKED npu_status npu_simulator_report(struct npu_session *session, char **json);

/// NULL is allowed.
void npu_simulator_report_free(char *json);

#ifdef __cplusplus
}
#endif

#endif
