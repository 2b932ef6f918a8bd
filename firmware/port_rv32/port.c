// SPDX-License-Identifier: Apache-2.0
//
// Registers by volatile access, host memory by the copy engine (the core's own bus reaches 32 bits
// of address only), fences for order, wfi for waiting.

#include "firmware/port_rv32/port.h"

extern volatile uint32_t __npu_mmio[MMIO_BYTES / 4]; // placed by the linker script

static uint32_t read32(void *context, uint32_t offset) {
    (void)context;
    return __npu_mmio[offset / 4];
}

static void write32(void *context, uint32_t offset, uint32_t value) {
    (void)context;
    __npu_mmio[offset / 4] = value;
}

static void barrier(void *context) {
    (void)context;
    __asm__ volatile("fence iorw, iorw" ::: "memory");
}

static bool copy(uint64_t host, const void *local, uint32_t bytes, uint32_t direction) {
    barrier(NULL);
    write32(NULL, MMIO_COPY_HOST_LO, (uint32_t)host);
    write32(NULL, MMIO_COPY_HOST_HI, (uint32_t)(host >> 32));
    write32(NULL, MMIO_COPY_LOCAL, (uint32_t)(uintptr_t)local);
    write32(NULL, MMIO_COPY_BYTES, bytes);
    write32(NULL, MMIO_COPY_CONTROL, direction);
    uint32_t status;
    do {
        status = read32(NULL, MMIO_COPY_STATUS);
    } while (status & MMIO_COPY_STATUS_BUSY);
    barrier(NULL);
    return !(status & MMIO_COPY_STATUS_ERROR);
}

static bool read_host(void *context, uint64_t address, void *out, uint32_t bytes) {
    (void)context;
    return copy(address, out, bytes, MMIO_COPY_CONTROL_READ);
}

static bool write_host(void *context, uint64_t address, const void *bytes, uint32_t size) {
    (void)context;
    return copy(address, bytes, size, MMIO_COPY_CONTROL_WRITE);
}

static void wait_for_interrupt(void *context) {
    (void)context;
    __asm__ volatile("wfi" ::: "memory");
}

const struct fw_port rv32_port = {NULL,       read32,  write32,           read_host,
                                  write_host, barrier, wait_for_interrupt};

void rv32_trapped(uint32_t cause, uint32_t pc) {
    write32(NULL, MMIO_FW_TRAP_CAUSE, cause);
    write32(NULL, MMIO_FW_TRAP_PC, pc);
    write32(NULL, MMIO_FW_STATUS, 2);
}
