// SPDX-License-Identifier: Apache-2.0
//
// The device's register block for a hosted device model: what mmio.def says each side may do, and
// the firmware's port over it. The owner supplies memory, a clock and what START does; the
// firmware's files then run unchanged:
//
//     fw_host_init(&h, &owner);
//     fw_init(&fw, &h.port);
//     fw_host_write(&h, MMIO_RING_TAIL, 1);       the host's side
//     while (!fw_step(&fw)) {}                    the core's side: calls owner.start
//     fw_host_job_done(&h, start, end);           when the job has ended
//     while (!fw_step(&fw)) {}                    writes the completion record
#ifndef FIRMWARE_PORT_HOST_H
#define FIRMWARE_PORT_HOST_H

#include "firmware/fw.h"

/// A job as the registers describe it at START.
struct fw_host_job {
    uint64_t code_base; // device address
    uint32_t code_size; // granules
    uint32_t entry;     // granule
    uint64_t dram_base, dram_bytes;
    uint64_t doorbell[MMIO_DOORBELL_COUNT];
};

/// What the owner supplies; entries may not be NULL.
struct fw_host_owner {
    void *context;
    bool (*read)(void *context, uint64_t address, void *out, uint32_t bytes);
    bool (*write)(void *context, uint64_t address, const void *bytes, uint32_t size);
    uint64_t (*cycles)(void *context);
    void (*start)(void *context,
                  const struct fw_host_job *job); // begins; the end is reported later
    void (*reset)(void *context); // stops a job that runs; nothing to do when none does
    void (*wait)(void *context);  // lets time pass; called by fw_run only
};

/// The register block.
struct fw_host {
    struct fw_host_owner owner;
    struct fw_port port; // the core's side
    uint32_t reg[MMIO_BYTES / 4];
};

/// Power-on values of mmio.def. Nothing to release.
void fw_host_init(struct fw_host *h, const struct fw_host_owner *owner);

/// The host's side. Offsets that are no register read 0 and ignore writes, as the block does.
uint32_t fw_host_read(struct fw_host *h, uint32_t offset);
void fw_host_write(struct fw_host *h, uint32_t offset, uint32_t value);

/// The running job has ended with HALT, at the given cycles. Ignored when none runs.
void fw_host_job_done(struct fw_host *h, uint64_t start_cycle, uint64_t end_cycle);

/// It has ended with a fault: `code` and `tag` as the owner numbers them, `pc` in granules.
void fw_host_job_fault(struct fw_host *h, uint64_t start_cycle, uint64_t end_cycle, uint32_t code,
                       uint32_t pc, uint32_t engine, uint32_t tag);

/// Sets counters of one engine; out-of-range engines are ignored.
void fw_host_set_engine(struct fw_host *h, uint32_t engine, uint64_t instructions, uint64_t busy,
                        uint64_t wait, uint64_t stall);

/// The program executed IRQ.
void fw_host_program_irq(struct fw_host *h);

/// Whether an unmasked interrupt is pending to the host or to the core.
bool fw_host_irq(const struct fw_host *h);
bool fw_host_core_irq(const struct fw_host *h);

#endif
