// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the opaque types of npu.h; for the runtime's own files, and for programs of
// this project that need more of a program or device than the installed API shows.
#ifndef RUNTIME_API_H
#define RUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/container.h"
#include "runtime/device.h"
#include "runtime/include/npu/npu.h"

enum { NPU_ROLES = 4 }; // roles are 1..3; entry 0 is unused

struct npu_program {
    struct arena *arena;
    const struct npu_program_image *image;
    struct hw machine;            // parsed from the image's description
    uint32_t *by_role[NPU_ROLES]; // indices of image->tensors, in order
    size_t count[NPU_ROLES];
};

struct npu_device {
    const struct npu_device_ops *ops;
    void *handle;            // what ops->open returned
    uint64_t dram_alignment; // of a session's memory
};

/// Adopts an image that lives in `arena`; the program owns the arena from then on, on failure too.
NPU_MUST_USE npu_status npu_program_adopt(struct arena *arena,
                                          const struct npu_program_image *image, const char *where,
                                          struct npu_program **out);

/// The image of a program, lent.
const struct npu_program_image *npu_program_image_of(const struct npu_program *program);

/// Tensor number `index` of a role, or USAGE.
NPU_MUST_USE npu_status npu_program_tensor_of(const struct npu_program *program, enum npu_role role,
                                              size_t index, const struct npu_image_tensor **out);

/// The device a session was made on, lent.
struct npu_device *npu_session_device(const struct npu_session *session);

/// The program of a session, lent.
const struct npu_program *npu_session_program(const struct npu_session *session);

/// Whether the selected entry point uses tensor number `index` of a role, below the role's count.
bool npu_session_uses(const struct npu_session *session, enum npu_role role, size_t index);

#endif
