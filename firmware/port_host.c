// SPDX-License-Identifier: Apache-2.0
//
// Register block in an array of words. Access rights come from mmio.def, expanded into one table
// with an entry per word; what a write sets in motion is in write_core and fw_host_write.

#include "firmware/port_host.h"

#include <string.h>

enum access { NONE, RO, RW, WO, W1C, NA };

struct rule {
    uint8_t host, core; // enum access
};

enum { WORDS = MMIO_BYTES / 4 };

// Rights of one word; NONE for a word that is no register.
static struct rule rule_of(uint32_t offset) {
#define MMIO_REG(NAME, at, host, core, reset, meaning) \
    if (offset == (at)) return (struct rule){host, core};
#define MMIO_BLOCK(NAME, at, stride, count, host, core, meaning) \
    if (offset >= (at) && offset < (at) + (stride) * (count)) return (struct rule){host, core};
#include "isa/mmio.def"
    return (struct rule){NONE, NONE};
}

static uint32_t *word(struct fw_host *h, uint32_t offset) {
    return &h->reg[offset / 4];
}

static bool inside(uint32_t offset) {
    return offset % 4 == 0 && offset < MMIO_BYTES;
}

static uint64_t get64(struct fw_host *h, uint32_t offset) {
    return (uint64_t)*word(h, offset + 4) << 32 | *word(h, offset);
}

static void set64(struct fw_host *h, uint32_t offset, uint64_t value) {
    *word(h, offset) = (uint32_t)value;
    *word(h, offset + 4) = (uint32_t)(value >> 32);
}

static uint32_t read_word(struct fw_host *h, uint32_t offset, enum access access) {
    if (access == NONE || access == NA || access == WO) return 0;
    if (offset == MMIO_CYCLES_LO) set64(h, MMIO_CYCLES_LO, h->owner.cycles(h->owner.context));
    return *word(h, offset);
}

// Stores according to the rights; false when nothing was stored.
static bool write_word(struct fw_host *h, uint32_t offset, uint32_t value, enum access access) {
    if (access == W1C) *word(h, offset) &= ~value;
    if (access == RW) *word(h, offset) = value;
    return access == W1C || access == RW || access == WO;
}

uint32_t fw_host_read(struct fw_host *h, uint32_t offset) {
    if (!inside(offset)) return 0;
    return read_word(h, offset, (enum access)rule_of(offset).host);
}

void fw_host_write(struct fw_host *h, uint32_t offset, uint32_t value) {
    if (!inside(offset) || !write_word(h, offset, value, (enum access)rule_of(offset).host)) return;
    if (offset == MMIO_RING_TAIL || offset == MMIO_RING_CONTROL)
        *word(h, MMIO_CORE_IRQ_STATUS) |= MMIO_CORE_IRQ_STATUS_RING;
}

static void start(struct fw_host *h) {
    if (!(*word(h, MMIO_STATUS) & MMIO_STATUS_IDLE)) return;
    struct fw_host_job job = {
        .code_base = get64(h, MMIO_CODE_BASE_LO),
        .code_size = *word(h, MMIO_CODE_SIZE),
        .entry = *word(h, MMIO_ENTRY),
        .dram_base = get64(h, MMIO_DRAM_BASE_LO),
        .dram_bytes = get64(h, MMIO_DRAM_SIZE_LO),
    };
    for (uint32_t i = 0; i < MMIO_DOORBELL_COUNT; i++)
        job.doorbell[i] = get64(h, MMIO_DOORBELL + i * MMIO_DOORBELL_STRIDE);
    *word(h, MMIO_STATUS) = MMIO_STATUS_BUSY;
    memset(word(h, MMIO_FAULT_CODE), 0, 4 * sizeof(uint32_t)); // code, pc, engine, tag
    memset(word(h, MMIO_ENGINE), 0, (size_t)MMIO_ENGINE_STRIDE * MMIO_ENGINE_COUNT);
    h->owner.start(h->owner.context, &job);
}

static void control(struct fw_host *h, uint32_t value) {
    if (value & MMIO_CONTROL_RESET) {
        h->owner.reset(h->owner.context);
        if (*word(h, MMIO_STATUS) & MMIO_STATUS_BUSY) *word(h, MMIO_STATUS) = MMIO_STATUS_IDLE;
    }
    if (value & MMIO_CONTROL_ACK)
        *word(h, MMIO_STATUS) &= ~(uint32_t)(MMIO_STATUS_DONE | MMIO_STATUS_FAULT);
    if (value & MMIO_CONTROL_START) start(h);
}

static uint32_t read_core(void *context, uint32_t offset) {
    struct fw_host *h = context;
    if (!inside(offset)) return 0;
    return read_word(h, offset, (enum access)rule_of(offset).core);
}

static void write_core(void *context, uint32_t offset, uint32_t value) {
    struct fw_host *h = context;
    if (!inside(offset) || !write_word(h, offset, value, (enum access)rule_of(offset).core)) return;
    if (offset == MMIO_CONTROL) control(h, value);
    if (offset == MMIO_IRQ_RAISE) *word(h, MMIO_IRQ_STATUS) |= value;
}

static bool read_host(void *context, uint64_t address, void *out, uint32_t bytes) {
    struct fw_host *h = context;
    return h->owner.read(h->owner.context, address, out, bytes);
}

static bool write_host(void *context, uint64_t address, const void *bytes, uint32_t size) {
    struct fw_host *h = context;
    return h->owner.write(h->owner.context, address, bytes, size);
}

// One thread: program order is enough.
static void barrier(void *context) {
    (void)context;
}

static void wait_for_interrupt(void *context) {
    struct fw_host *h = context;
    if (!fw_host_core_irq(h)) h->owner.wait(h->owner.context);
}

void fw_host_init(struct fw_host *h, const struct fw_host_owner *owner) {
    *h = (struct fw_host){.owner = *owner};
    h->port = (struct fw_port){h,          read_core, write_core,        read_host,
                               write_host, barrier,   wait_for_interrupt};
#define MMIO_REG(NAME, offset, host, core, reset, meaning) h->reg[(offset) / 4] = (reset);
#include "isa/mmio.def"
}

static void end_job(struct fw_host *h, uint32_t how, uint64_t start_cycle, uint64_t end_cycle) {
    set64(h, MMIO_JOB_START_LO, start_cycle);
    set64(h, MMIO_JOB_END_LO, end_cycle);
    *word(h, MMIO_STATUS) = MMIO_STATUS_IDLE | how;
    *word(h, MMIO_CORE_IRQ_STATUS) |= MMIO_CORE_IRQ_STATUS_JOB;
}

void fw_host_job_done(struct fw_host *h, uint64_t start_cycle, uint64_t end_cycle) {
    if (*word(h, MMIO_STATUS) & MMIO_STATUS_BUSY)
        end_job(h, MMIO_STATUS_DONE, start_cycle, end_cycle);
}

void fw_host_job_fault(struct fw_host *h, uint64_t start_cycle, uint64_t end_cycle, uint32_t code,
                       uint32_t pc, uint32_t engine, uint32_t tag) {
    if (!(*word(h, MMIO_STATUS) & MMIO_STATUS_BUSY)) return;
    *word(h, MMIO_FAULT_CODE) = code;
    *word(h, MMIO_FAULT_PC) = pc;
    *word(h, MMIO_FAULT_ENGINE) = engine;
    *word(h, MMIO_FAULT_TAG) = tag;
    end_job(h, MMIO_STATUS_FAULT, start_cycle, end_cycle);
}

void fw_host_set_engine(struct fw_host *h, uint32_t engine, uint64_t instructions, uint64_t busy,
                        uint64_t wait, uint64_t stall) {
    if (engine >= MMIO_ENGINE_COUNT) return;
    uint32_t at = MMIO_ENGINE + engine * MMIO_ENGINE_STRIDE;
    set64(h, at + MMIO_ENGINE_INSTRUCTIONS_LO, instructions);
    set64(h, at + MMIO_ENGINE_BUSY_LO, busy);
    set64(h, at + MMIO_ENGINE_WAIT_LO, wait);
    set64(h, at + MMIO_ENGINE_STALL_LO, stall);
}

void fw_host_program_irq(struct fw_host *h) {
    *word(h, MMIO_IRQ_STATUS) |= MMIO_IRQ_STATUS_PROGRAM;
}

bool fw_host_irq(const struct fw_host *h) {
    return (h->reg[MMIO_IRQ_STATUS / 4] & h->reg[MMIO_IRQ_MASK / 4]) != 0;
}

bool fw_host_core_irq(const struct fw_host *h) {
    return (h->reg[MMIO_CORE_IRQ_STATUS / 4] & h->reg[MMIO_CORE_IRQ_MASK / 4]) != 0;
}

_Static_assert(MMIO_FAULT_TAG == MMIO_FAULT_CODE + 12, "the fault registers are cleared together");
_Static_assert(WORDS * 4 == MMIO_BYTES, "whole words");
