// SPDX-License-Identifier: Apache-2.0
//
// One step of the loop:
//     acknowledge interrupts          (before looking: what happens later sets them again)
//     follow RING_CONTROL.ENABLE
//     fetch and check descriptors     until FW_STAGED wait or the ring is empty
//     if a job runs and has ended:    write its completion
//     if none runs:                   start the oldest; one that may not run completes with its
//     status
// Jobs complete in the order of the ring. A fault ends its own job only: the command processor is
// reset and the next job starts.

#include "firmware/fw.h"

static uint32_t read32(const struct fw *fw, uint32_t offset) {
    return fw->port->read32(fw->port->context, offset);
}

static void write32(const struct fw *fw, uint32_t offset, uint32_t value) {
    fw->port->write32(fw->port->context, offset, value);
}

static uint64_t read64(const struct fw *fw, uint32_t offset_lo) {
    uint32_t lo = read32(fw, offset_lo);
    return (uint64_t)read32(fw, offset_lo + 4) << 32 | lo;
}

static void write64(const struct fw *fw, uint32_t offset_lo, uint64_t value) {
    write32(fw, offset_lo, (uint32_t)value);
    write32(fw, offset_lo + 4, (uint32_t)(value >> 32));
}

static void barrier(const struct fw *fw) {
    fw->port->barrier(fw->port->context);
}

// Stops the ring: it is of no use until the host sets it up again.
static void fail_ring(struct fw *fw, uint32_t error) {
    if (fw->running) write32(fw, MMIO_CONTROL, MMIO_CONTROL_RESET | MMIO_CONTROL_ACK);
    fw->enabled = fw->running = false;
    fw->staged_count = 0;
    write32(fw, MMIO_RING_ERROR, error);
    write32(fw, MMIO_IRQ_RAISE, MMIO_IRQ_STATUS_ERROR);
}

void fw_init(struct fw *fw, const struct fw_port *port) {
    fw->port = port;
    fw->enabled = fw->running = false;
    fw->size = fw->fetched = fw->completed = 0;
    fw->ring_base = fw->completion_base = 0;
    fw->staged_count = 0;
    write32(fw, MMIO_RING_HEAD, 0);
    write32(fw, MMIO_RING_ERROR, RING_ERROR_NONE);
    write32(fw, MMIO_FW_VERSION, FW_VERSION);
    if (read32(fw, MMIO_ID) != MMIO_RESET_ID ||
        read32(fw, MMIO_VERSION) >> 16 != MMIO_RESET_VERSION >> 16) {
        fail_ring(fw, RING_ERROR_BAD_DEVICE);
        return;
    }
    write32(fw, MMIO_CONTROL, MMIO_CONTROL_RESET | MMIO_CONTROL_ACK);
    write32(fw, MMIO_CORE_IRQ_MASK, MMIO_CORE_IRQ_STATUS_JOB | MMIO_CORE_IRQ_STATUS_RING);
    write32(fw, MMIO_FW_STATUS, 1);
}

static uint32_t refuse(uint32_t status, size_t position, uint32_t *detail) {
    *detail = (uint32_t)position;
    return status;
}

#define REFUSE(STATUS, field) \
    return refuse(RING_STATUS_##STATUS, offsetof(struct ring_desc_wire, field), detail)

uint32_t fw_check_desc(const struct ring_desc *d, uint32_t *detail) {
    if (d->version != RING_DESC_VERSION) REFUSE(BAD_VERSION, version);
    if (d->size != RING_DESC_BYTES) REFUSE(BAD_SIZE, size);
    if (d->flags & ~(uint64_t)RING_FLAGS_KNOWN) REFUSE(BAD_FLAGS, flags);
    if (d->reserved != 0) REFUSE(BAD_FLAGS, reserved);
    if (d->dram_base % 64 != 0) REFUSE(BAD_ALIGNMENT, dram_base);
    if (d->code_base % 16 != 0) REFUSE(BAD_ALIGNMENT, code_base);
    if (d->code_bytes % 16 != 0) REFUSE(BAD_ALIGNMENT, code_bytes);
    if (d->code_offset % 16 != 0) REFUSE(BAD_ALIGNMENT, code_offset);
    if (d->dram_bytes > UINT64_MAX - d->dram_base) REFUSE(BAD_RANGE, dram_bytes);
    if (d->code_base > d->dram_bytes) REFUSE(BAD_RANGE, code_base);
    if (d->code_bytes == 0 || d->code_bytes > d->dram_bytes - d->code_base ||
        d->code_bytes / 16 > UINT32_MAX)
        REFUSE(BAD_RANGE, code_bytes);
    if (d->code_offset >= d->code_bytes) REFUSE(BAD_RANGE, code_offset);
    return 0;
}

static uint64_t slot_address(const struct fw *fw, uint64_t base, uint32_t job, uint32_t bytes) {
    return base + (uint64_t)(job & (fw->size - 1)) * bytes;
}

// Writes the record of the oldest job and takes that off the list.
static void complete(struct fw *fw, struct ring_done *done) {
    const struct fw_port *port = fw->port;
    const struct ring_desc *d = &fw->staged[0].desc;
    uint8_t wire[RING_DONE_BYTES];
    uint64_t address = slot_address(fw, fw->completion_base, fw->completed, RING_DONE_BYTES);
    done->version = RING_DONE_VERSION;
    done->size = RING_DONE_BYTES;
    done->cookie = d->cookie;
    done->reserved = 0;
    done->sequence = fw->completed + 1u;
    ring_done_encode(done, wire);
    const uint32_t last = RING_DONE_BYTES - 4; // the host polls this word
    bool written = port->write_host(port->context, address, wire, last);
    barrier(fw);
    written = written && port->write_host(port->context, address + last, wire + last, 4);
    if (!written) {
        fail_ring(fw, RING_ERROR_UNWRITABLE);
        return;
    }
    barrier(fw);
    bool interrupt = (d->flags & RING_FLAG_IRQ) != 0;
    fw->completed++;
    fw->staged_count--;
    for (uint32_t i = 0; i < fw->staged_count; i++)
        fw->staged[i] = fw->staged[i + 1];
    write32(fw, MMIO_RING_HEAD, fw->completed);
    if (interrupt) write32(fw, MMIO_IRQ_RAISE, MMIO_IRQ_STATUS_COMPLETION);
}

static void refuse_oldest(struct fw *fw) {
    struct ring_done done = {0};
    done.status = fw->staged[0].status;
    done.detail = fw->staged[0].detail;
    complete(fw, &done);
}

static void start_oldest(struct fw *fw) {
    const struct ring_desc *d = &fw->staged[0].desc;
    write64(fw, MMIO_CODE_BASE_LO, d->dram_base + d->code_base);
    write32(fw, MMIO_CODE_SIZE, (uint32_t)(d->code_bytes / 16));
    write32(fw, MMIO_ENTRY, (uint32_t)(d->code_offset / 16));
    write64(fw, MMIO_DRAM_BASE_LO, d->dram_base);
    write64(fw, MMIO_DRAM_SIZE_LO, d->dram_bytes);
    for (uint32_t i = 0; i < MMIO_DOORBELL_COUNT; i++)
        write64(fw, MMIO_DOORBELL + i * MMIO_DOORBELL_STRIDE, d->doorbell[i]);
    barrier(fw);
    fw->running = true;
    write32(fw, MMIO_CONTROL, MMIO_CONTROL_START);
}

static void finish_running(struct fw *fw, uint32_t status) {
    struct ring_done done = {0};
    done.status = RING_STATUS_DONE;
    done.start_cycle = read64(fw, MMIO_JOB_START_LO);
    done.end_cycle = read64(fw, MMIO_JOB_END_LO);
    uint32_t control = MMIO_CONTROL_ACK;
    if (status & MMIO_STATUS_FAULT) {
        done.status = RING_STATUS_FAULT;
        done.fault_code = read32(fw, MMIO_FAULT_CODE);
        done.fault_pc = read32(fw, MMIO_FAULT_PC);
        done.fault_engine = read32(fw, MMIO_FAULT_ENGINE);
        done.fault_tag = read32(fw, MMIO_FAULT_TAG);
        control |= MMIO_CONTROL_RESET;
    }
    write32(fw, MMIO_CONTROL, control);
    fw->running = false;
    complete(fw, &done);
}

static bool fetch(struct fw *fw) {
    bool progress = false;
    uint32_t tail = read32(fw, MMIO_RING_TAIL);
    barrier(fw); // the descriptors were written before the tail
    if (tail - fw->completed > fw->size) {
        fail_ring(fw, RING_ERROR_OVERRUN);
        return true;
    }
    for (; fw->fetched != tail && fw->staged_count < FW_STAGED; fw->fetched++) {
        struct fw_job *job = &fw->staged[fw->staged_count++];
        uint8_t wire[RING_DESC_BYTES] = {0};
        uint64_t address = slot_address(fw, fw->ring_base, fw->fetched, RING_DESC_BYTES);
        job->status = job->detail = 0;
        bool readable = fw->port->read_host(fw->port->context, address, wire, sizeof wire);
        ring_desc_decode(wire, &job->desc);
        job->status = readable ? fw_check_desc(&job->desc, &job->detail) : RING_STATUS_UNREADABLE;
        progress = true;
    }
    return progress;
}

static void enable(struct fw *fw) {
    fw->size = read32(fw, MMIO_RING_SIZE);
    fw->ring_base = read64(fw, MMIO_RING_BASE_LO);
    fw->completion_base = read64(fw, MMIO_COMPLETION_BASE_LO);
    fw->fetched = fw->completed = 0;
    fw->staged_count = 0;
    write32(fw, MMIO_RING_HEAD, 0);
    write32(fw, MMIO_RING_ERROR, RING_ERROR_NONE);
    fw->enabled = true;
    bool power_of_two = fw->size != 0 && (fw->size & (fw->size - 1)) == 0;
    if (!power_of_two || fw->size > RING_SIZE_MAX || fw->ring_base % 64 != 0 ||
        fw->completion_base % 64 != 0 ||
        fw->ring_base > UINT64_MAX - (uint64_t)fw->size * RING_DESC_BYTES ||
        fw->completion_base > UINT64_MAX - (uint64_t)fw->size * RING_DONE_BYTES)
        fail_ring(fw, RING_ERROR_BAD_RING);
}

// Clearing ENABLE drops what has not started; what runs is stopped without a record.
static void disable(struct fw *fw) {
    if (fw->running) write32(fw, MMIO_CONTROL, MMIO_CONTROL_RESET | MMIO_CONTROL_ACK);
    fw->enabled = fw->running = false;
    fw->staged_count = 0;
}

static bool follow_control(struct fw *fw) {
    bool wanted = (read32(fw, MMIO_RING_CONTROL) & MMIO_RING_CONTROL_ENABLE) != 0;
    if (!wanted) {
        bool was = fw->enabled;
        disable(fw);
        // A stopped ring becomes usable again when the host has taken ENABLE away once.
        if (!was && read32(fw, MMIO_RING_ERROR) != RING_ERROR_NONE &&
            read32(fw, MMIO_RING_ERROR) != RING_ERROR_BAD_DEVICE)
            write32(fw, MMIO_RING_ERROR, RING_ERROR_NONE);
        return was;
    }
    if (fw->enabled || read32(fw, MMIO_RING_ERROR) != RING_ERROR_NONE) return false;
    enable(fw);
    return true;
}

bool fw_step(struct fw *fw) {
    uint32_t pending = read32(fw, MMIO_CORE_IRQ_STATUS);
    if (pending) write32(fw, MMIO_CORE_IRQ_STATUS, pending);
    bool progress = follow_control(fw);
    if (!fw->enabled) return !progress;
    progress |= fetch(fw);
    if (fw->enabled && fw->running) {
        uint32_t status = read32(fw, MMIO_STATUS);
        if (status & (MMIO_STATUS_DONE | MMIO_STATUS_FAULT)) {
            finish_running(fw, status);
            progress = true;
        }
    }
    if (fw->enabled && !fw->running && fw->staged_count > 0) {
        if (fw->staged[0].status) {
            refuse_oldest(fw);
        } else {
            start_oldest(fw);
        }
        progress = true;
    }
    return !progress;
}

void fw_run(struct fw *fw) {
    for (;;)
        if (fw_step(fw)) fw->port->wait_for_interrupt(fw->port->context);
}
