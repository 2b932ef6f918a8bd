// SPDX-License-Identifier: Apache-2.0
//
// What the runtime asks of a device: DRAM ranges to write and read, a submission ring, registers
// and counters. The simulated device and hardware fill the same table; there is no simulator here.
//
// Every entry gets the pointer that `open` returned. The runtime calls from one thread at a time.
// Statuses: IO when the device is broken, NO_FIT when its memory is full, FAULT for a fault of the
// program that ran (the message names cycle, engine, instruction and tag). Entries said to be
// optional may be NULL.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "isa/hw.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"

struct npu_image_entry;
struct npu_program_image;

enum { NPU_DEVICE_OPS_VERSION = 1, NPU_DOORBELLS = 16 };

/// One command of the submission ring: run the program at code_offset until HALT.
struct npu_submission {
    uint64_t dram_base;               // device address of the program's DRAM, from `alloc`
    uint64_t dram_bytes;              // its size; an access outside is a fault
    uint64_t code_base;               // of the code segment, relative to dram_base
    uint64_t code_bytes;              // size of the code segment
    uint64_t code_offset;             // first instruction, relative to code_base
    uint64_t doorbell[NPU_DOORBELLS]; // what LDDB reads
    const struct npu_program_image
        *image; // lent until `wait`; names for traces and faults; may be NULL
    const struct npu_image_entry *entry; // of the image: what is run; lent; may be NULL
    size_t launch; // which of its launches; an entry without launches is submitted whole
};

/// How a submission ended.
struct npu_completion {
    uint64_t ticket;
    uint64_t start_cycle, end_cycle; // on the device's own clock
};

/// A number that the device counted since it was opened.
struct npu_device_counter {
    const char *name; // lives as long as the device: "cycles", "dram.read_bytes"
    uint64_t value;
};

struct npu_device_ops {
    unsigned version; // NPU_DEVICE_OPS_VERSION
    const char *name; // "simulator"

    /// Opens; `config` is of the type that the device documents, lent for the call; NULL: its
    /// defaults.
    npu_status (*open)(const void *config, void **device);

    /// Ends what runs and releases everything.
    void (*close)(void *device);

    /// The machine's description.
    void (*describe)(void *device, struct hw *out);

    /// Reserves a range of DRAM, contents unwritten; NO_FIT. `alignment` is a power of two.
    npu_status (*alloc)(void *device, uint64_t bytes, uint64_t alignment, uint64_t *address);

    /// Gives back a range that `alloc` returned.
    void (*release)(void *device, uint64_t address);

    /// Copies bytes to DRAM, inside one allocated range.
    npu_status (*write)(void *device, uint64_t address, struct span bytes);

    /// Optional: lets DRAM at `address` show bytes of the host, read only and lent until the range
    /// is released, without copying them. Without it the runtime writes them.
    npu_status (*map_const)(void *device, uint64_t address, struct span bytes);

    /// Optional: makes a range unwritten again, so that reading it before writing it is a fault.
    npu_status (*discard)(void *device, uint64_t address, uint64_t bytes);

    /// Copies bytes from DRAM.
    npu_status (*read)(void *device, uint64_t address, void *out, size_t bytes);

    /// Puts a command on the ring; returns at once or runs it here. Commands run in the order
    /// submitted.
    npu_status (*submit)(void *device, const struct npu_submission *submission, uint64_t *ticket);

    /// Waits until that command has ended. FAULT when it ended with a fault. Each ticket once.
    npu_status (*wait)(void *device, uint64_t ticket, struct npu_completion *out);

    /// Registers of mmio.def, by byte offset. Optional.
    npu_status (*mmio_read)(void *device, uint32_t offset, uint32_t *value);
    npu_status (*mmio_write)(void *device, uint32_t offset, uint32_t value);

    /// Counters: stores at most `capacity` of them and returns how many there are.
    size_t (*read_counters)(void *device, struct npu_device_counter *out, size_t capacity);
};

/// First-fit allocation of ranges in [0, bytes): what `alloc` and `release` of a device need. Zero
/// is a valid address. Freed neighbours join.
struct npu_ranges {
    struct npu_range *first; // ascending; owned
    uint64_t bytes;
};

/// Empty, of `bytes` in all. Release with npu_ranges_deinit.
void npu_ranges_init(struct npu_ranges *r, uint64_t bytes);
void npu_ranges_deinit(struct npu_ranges *r);

/// Lowest free range of that size (0 counts as 1) and alignment (power of two); NO_FIT, NO_MEMORY.
NPU_MUST_USE npu_status npu_ranges_alloc(struct npu_ranges *r, uint64_t bytes, uint64_t alignment,
                                         uint64_t *address);

/// Gives back a range by its address; an unknown address is ignored.
void npu_ranges_release(struct npu_ranges *r, uint64_t address);

/// Size of the allocated range that holds all of [address, address + bytes), or 0: then the access
/// is out of range.
uint64_t npu_ranges_find(const struct npu_ranges *r, uint64_t address, uint64_t bytes);

#endif
