// SPDX-License-Identifier: Apache-2.0
//
// A device for tests: DRAM is an array, a submission calls a C function instead of running code.
// Notes what the runtime asked of it, and fails where it is told to.
#ifndef TESTS_UNIT_RUNTIME_FAKE_DEVICE_H
#define TESTS_UNIT_RUNTIME_FAKE_DEVICE_H

#include "runtime/device.h"

struct fake_device;

/// What open gets as its config; the counts are updated while the device is open.
struct fake_config {
    struct hw machine;
    uint64_t dram_bytes;
    /// Called by `wait` for each submission, in order; NULL: nothing happens.
    npu_status (*run)(struct fake_device *device, const struct npu_submission *submission);
    bool fail_open;
    int mapped, written, discarded, submitted, waited, released, closed; // calls
    const uint8_t *map_data; // last bytes lent to map_const
    struct npu_submission last;
};

extern const struct npu_device_ops fake_ops;      // with map_const and discard
extern const struct npu_device_ops fake_ops_bare; // without the optional entries

/// Where DRAM address `address` lies; bytes mapped by map_const have been copied there.
uint8_t *fake_dram(struct fake_device *device, uint64_t address);

#endif
