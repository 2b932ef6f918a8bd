// SPDX-License-Identifier: Apache-2.0
//
// Gathers many faults before failing once, so that a user sees everything that is wrong with a
// file:
//
//     struct diag d = {0};
//     for each node: diag_add(&d, import(node));
//     return diag_finish(&d);
#ifndef RUNTIME_BASE_DIAG_H
#define RUNTIME_BASE_DIAG_H

#include <stddef.h>

#include "runtime/base/status.h"

struct diag {
    npu_status first; // joined faults, owned; NULL: none
    size_t count;
};

/// Takes over a status; NULL is no fault.
void diag_add(struct diag *d, npu_status status);

/// Adds a new fault: diag_fail(&d, UNSUPPORTED, "op '%s'", op).
#define diag_fail(d, code, ...) diag_add((d), npu_fail(code, __VA_ARGS__))

/// The faults as one status, owned by the caller, with the code of the first; NULL when there were
/// none. Leaves the list empty.
NPU_MUST_USE npu_status diag_finish(struct diag *d);

#endif
