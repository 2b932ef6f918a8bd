// SPDX-License-Identifier: Apache-2.0
//
// List of faults: joined statuses and their number.

#include "runtime/base/diag.h"

void diag_add(struct diag *d, npu_status status) {
    if (!status) return;
    d->first = npu_status_join(d->first, status);
    d->count++;
}

npu_status diag_finish(struct diag *d) {
    npu_status all = d->first;
    *d = (struct diag){0};
    return all;
}
