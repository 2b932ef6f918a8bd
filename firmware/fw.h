// SPDX-License-Identifier: Apache-2.0
//
// The command loop: takes job descriptors from the ring in host memory, has the command processor
// run them one after the other, and writes completion records. Freestanding, no allocation. The
// same files run on the device's RISC-V core and inside the simulated device.
#ifndef FIRMWARE_FW_H
#define FIRMWARE_FW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/mmio.h"

enum {
    FW_VERSION = 0x00010000,
    FW_STAGED = 4 // descriptors fetched and checked ahead of the one that runs
};

/// What the firmware stands on. All entries are needed.
struct fw_port {
    void *context; // handed to every call

    /// Registers of mmio.def, by byte offset.
    uint32_t (*read32)(void *context, uint32_t offset);
    void (*write32)(void *context, uint32_t offset, uint32_t value);

    /// Host memory, by host address; false when it is not accessible.
    bool (*read_host)(void *context, uint64_t address, void *out, uint32_t bytes);
    bool (*write_host)(void *context, uint64_t address, const void *bytes, uint32_t size);

    /// Orders every earlier access to registers and host memory before every later one.
    void (*barrier)(void *context);

    /// Returns when an unmasked bit of CORE_IRQ_STATUS is set, or earlier.
    void (*wait_for_interrupt)(void *context);
};

/// A descriptor taken from the ring, waiting for its turn.
struct fw_job {
    uint32_t status; // 0: may run; else the RING_STATUS with which it completes without running
    uint32_t detail; // position of the refused field
    struct ring_desc desc;
};

/// State of the loop.
struct fw {
    const struct fw_port *port;        // lent
    bool enabled;                      // the ring is in use
    bool running;                      // the job in staged[0] runs
    uint32_t size, fetched, completed; // slots; descriptors fetched and completed since enabling
    uint64_t ring_base, completion_base;
    uint32_t staged_count;
    struct fw_job staged[FW_STAGED]; // oldest first
};

/// Starts the loop: checks the device, clears the registers that the firmware owns, unmasks
/// interrupts. On a device it does not know it sets RING_ERROR BAD_DEVICE and never enables the
/// ring.
void fw_init(struct fw *fw, const struct fw_port *port);

/// Does what can be done now without waiting: takes descriptors, completes the job that ended,
/// starts the next. Returns true when nothing is left to do until the next interrupt.
bool fw_step(struct fw *fw);

/// The loop of a device: fw_step, and wait for interrupts.
_Noreturn void fw_run(struct fw *fw);

/// Whether a descriptor may run: 0, or a RING_STATUS and the position of the field that is wrong.
uint32_t fw_check_desc(const struct ring_desc *d, uint32_t *detail);

#endif
