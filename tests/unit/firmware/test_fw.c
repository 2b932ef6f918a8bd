// SPDX-License-Identifier: Apache-2.0
//
// The command loop over the hosted register block, with a fake device whose jobs end when the test
// says.

#include "firmware/fw.h"

#include <criterion/criterion.h>
#include <string.h>

#include "firmware/port_host.h"

enum { MEMORY_BYTES = 64 * 1024, RING_AT = 4096, DONE_AT = 32768 };

static struct {
    struct fw_host host;
    struct fw fw;
    uint8_t memory[MEMORY_BYTES];
    uint64_t cycles;
    int started, resets;
    struct fw_host_job job; // the last one started
} dev;

static bool inside(uint64_t address, uint32_t bytes) {
    return address <= MEMORY_BYTES && bytes <= MEMORY_BYTES - address;
}

static bool memory_read(void *context, uint64_t address, void *out, uint32_t bytes) {
    (void)context;
    if (!inside(address, bytes)) return false;
    memcpy(out, dev.memory + address, bytes);
    return true;
}

static bool memory_write(void *context, uint64_t address, const void *bytes, uint32_t size) {
    (void)context;
    if (!inside(address, size)) return false;
    memcpy(dev.memory + address, bytes, size);
    return true;
}

static uint64_t cycles(void *context) {
    (void)context;
    return dev.cycles;
}

static void start(void *context, const struct fw_host_job *job) {
    (void)context;
    dev.started++;
    dev.job = *job;
}

static void reset(void *context) {
    (void)context;
    dev.resets++;
}

static void wait_nothing(void *context) {
    (void)context;
}

static void step(void) {
    for (int i = 0; !fw_step(&dev.fw); i++)
        cr_assert_lt(i, 1000, "the loop does not come to rest");
}

static void set(uint32_t offset, uint32_t value) {
    fw_host_write(&dev.host, offset, value);
}

static uint32_t get(uint32_t offset) {
    return fw_host_read(&dev.host, offset);
}

static void power_on(void) {
    static const struct fw_host_owner owner = {NULL,  memory_read, memory_write, cycles,
                                               start, reset,       wait_nothing};
    fw_host_init(&dev.host, &owner);
    fw_init(&dev.fw, &dev.host.port);
    dev.resets = 0;
}

static void enable_ring(uint32_t size) {
    set(MMIO_RING_CONTROL, 0);
    step();
    set(MMIO_RING_BASE_LO, RING_AT);
    set(MMIO_COMPLETION_BASE_LO, DONE_AT);
    set(MMIO_RING_SIZE, size);
    set(MMIO_RING_TAIL, 0);
    set(MMIO_RING_CONTROL, MMIO_RING_CONTROL_ENABLE);
    step();
}

static struct ring_desc good_desc(uint64_t cookie) {
    struct ring_desc d = {.version = RING_DESC_VERSION,
                          .size = RING_DESC_BYTES,
                          .flags = RING_FLAG_IRQ,
                          .cookie = cookie,
                          .dram_base = 0x1000000040,
                          .dram_bytes = 0x10000,
                          .code_base = 0x100,
                          .code_bytes = 0x200,
                          .code_offset = 0x30};
    for (unsigned i = 0; i < 16; i++)
        d.doorbell[i] = cookie << 32 | i;
    return d;
}

static void submit(const struct ring_desc *d) {
    uint32_t tail = get(MMIO_RING_TAIL);
    ring_desc_encode(d, dev.memory + RING_AT + (tail & (dev.fw.size - 1)) * RING_DESC_BYTES);
    set(MMIO_RING_TAIL, tail + 1);
}

static struct ring_done completion(uint32_t job) {
    struct ring_done done;
    ring_done_decode(dev.memory + DONE_AT + (job & (dev.fw.size - 1)) * RING_DONE_BYTES, &done);
    return done;
}

TestSuite(fw, .init = power_on);

Test(fw, runs_a_job_and_reports_it) {
    enable_ring(8);
    struct ring_desc d = good_desc(77);
    submit(&d);
    cr_expect(fw_host_core_irq(&dev.host));
    step();
    cr_assert_eq(dev.started, 1);
    cr_expect_eq(dev.job.code_base, 0x1000000140);
    cr_expect_eq(dev.job.code_size, 0x20);
    cr_expect_eq(dev.job.entry, 3);
    cr_expect_eq(dev.job.dram_base, 0x1000000040);
    cr_expect_eq(dev.job.dram_bytes, 0x10000);
    cr_expect_eq(memcmp(dev.job.doorbell, d.doorbell, sizeof d.doorbell), 0);
    cr_expect_eq(get(MMIO_STATUS), MMIO_STATUS_BUSY);
    cr_expect_eq(completion(0).sequence, 0);
    set(MMIO_IRQ_MASK, MMIO_IRQ_STATUS_COMPLETION);
    fw_host_job_done(&dev.host, 0x100000005, 0x100000105);
    cr_expect(fw_host_core_irq(&dev.host));
    cr_expect_not(fw_host_irq(&dev.host));
    step();
    struct ring_done done = completion(0);
    cr_expect_eq(done.version, RING_DONE_VERSION);
    cr_expect_eq(done.size, RING_DONE_BYTES);
    cr_expect_eq(done.status, RING_STATUS_DONE);
    cr_expect_eq(done.cookie, 77);
    cr_expect_eq(done.sequence, 1);
    cr_expect_eq(done.start_cycle, 0x100000005);
    cr_expect_eq(done.end_cycle, 0x100000105);
    cr_expect_eq(done.fault_code, 0);
    cr_expect_eq(get(MMIO_RING_HEAD), 1);
    cr_expect_eq(get(MMIO_STATUS), MMIO_STATUS_IDLE);
    cr_expect(fw_host_irq(&dev.host));
    set(MMIO_IRQ_STATUS, MMIO_IRQ_STATUS_COMPLETION);
    cr_expect_not(fw_host_irq(&dev.host));
    cr_expect_not(fw_host_core_irq(&dev.host));
}

Test(fw, jobs_run_in_order_around_the_ring) {
    enable_ring(4);
    uint32_t submitted = 0;
    for (uint32_t finished = 0; finished < 23; finished++) {
        while (submitted < 23 && submitted - finished < 4) {
            struct ring_desc d = good_desc(1000 + submitted++);
            submit(&d);
        }
        step();
        cr_assert_eq(dev.started, (int)finished + 1);
        cr_expect_eq(dev.job.doorbell[3], (uint64_t)(1000 + finished) << 32 | 3);
        fw_host_job_done(&dev.host, finished, finished + 1);
        step();
        struct ring_done done = completion(finished);
        cr_expect_eq(done.sequence, finished + 1);
        cr_expect_eq(done.cookie, 1000 + finished);
    }
    cr_expect_eq(get(MMIO_RING_HEAD), 23);
    cr_expect_eq(get(MMIO_RING_ERROR), 0);
}

Test(fw, counters_wrap_at_2_to_32) {
    enable_ring(4);
    dev.fw.fetched = dev.fw.completed = UINT32_MAX - 1;
    set(MMIO_RING_TAIL, UINT32_MAX - 1);
    for (int i = 0; i < 4; i++) {
        struct ring_desc d = good_desc((uint64_t)i);
        submit(&d);
        step();
        fw_host_job_done(&dev.host, 1, 2);
        step();
    }
    cr_expect_eq(get(MMIO_RING_HEAD), 2);
    cr_expect_eq(completion(1).sequence, 2);
    cr_expect_eq(completion(UINT32_MAX).sequence, 0);
    cr_expect_eq(completion(UINT32_MAX).cookie, 1);
    cr_expect_eq(dev.started, 4);
}

Test(fw, a_fault_ends_only_its_job) {
    enable_ring(8);
    for (uint64_t i = 0; i < 3; i++) {
        struct ring_desc d = good_desc(i);
        d.flags = 0;
        submit(&d);
    }
    step();
    fw_host_job_fault(&dev.host, 10, 20, 5, 12, 6, 0xabc);
    int before = dev.resets;
    step();
    struct ring_done done = completion(0);
    cr_expect_eq(done.status, RING_STATUS_FAULT);
    cr_expect_eq(done.fault_code, 5);
    cr_expect_eq(done.fault_pc, 12);
    cr_expect_eq(done.fault_engine, 6);
    cr_expect_eq(done.fault_tag, 0xabc);
    cr_expect_eq(done.end_cycle, 20);
    cr_expect_eq(dev.resets, before + 1);
    cr_expect_eq(get(MMIO_IRQ_STATUS), 0);
    cr_expect_eq(dev.started, 2);
    fw_host_job_done(&dev.host, 30, 40);
    step();
    cr_expect_eq(completion(1).status, RING_STATUS_DONE);
    cr_expect_eq(completion(1).fault_tag, 0);
    cr_expect_eq(dev.started, 3);
}

struct refusal {
    size_t field; // position in struct ring_desc
    uint64_t value;
    uint32_t status;
    uint32_t detail;
};
#define REFUSAL(field, value, STATUS)                                     \
    {                                                                     \
        offsetof(struct ring_desc, field), (value), RING_STATUS_##STATUS, \
            offsetof(struct ring_desc_wire, field)                        \
    }

static const struct refusal refusals[] = {
    REFUSAL(version, 0, BAD_VERSION),
    REFUSAL(version, 2, BAD_VERSION),
    REFUSAL(size, 64, BAD_SIZE),
    REFUSAL(flags, 2, BAD_FLAGS),
    REFUSAL(reserved, 1, BAD_FLAGS),
    REFUSAL(dram_base, 32, BAD_ALIGNMENT),
    REFUSAL(code_base, 8, BAD_ALIGNMENT),
    REFUSAL(code_bytes, 0x1f8, BAD_ALIGNMENT),
    REFUSAL(code_offset, 1, BAD_ALIGNMENT),
    REFUSAL(dram_bytes, UINT64_MAX, BAD_RANGE),
    REFUSAL(code_base, 0x10010, BAD_RANGE),
    REFUSAL(code_base, UINT64_MAX - 15, BAD_RANGE),
    REFUSAL(code_bytes, 0, BAD_RANGE),
    REFUSAL(code_bytes, 0xff10, BAD_RANGE),
    REFUSAL(code_bytes, UINT64_MAX - 15, BAD_RANGE),
    REFUSAL(code_offset, 0x200, BAD_RANGE),
};

Test(fw, bad_descriptors_complete_without_running) {
    enable_ring(32);
    size_t count = sizeof refusals / sizeof *refusals;
    for (size_t i = 0; i < count; i++) {
        struct ring_desc d = good_desc(i);
        memcpy((uint8_t *)&d + refusals[i].field, &refusals[i].value, 8);
        submit(&d);
    }
    struct ring_desc d = good_desc(99);
    submit(&d);
    step();
    for (size_t i = 0; i < count; i++) {
        struct ring_done done = completion((uint32_t)i);
        cr_expect_eq(done.status, refusals[i].status, "case %zu", i);
        cr_expect_eq(done.detail, refusals[i].detail, "case %zu", i);
        cr_expect_eq(done.cookie, i);
        cr_expect_eq(done.sequence, i + 1);
        cr_expect_eq(done.end_cycle, 0);
    }
    cr_expect_eq(dev.started, 1);
    cr_expect_eq(dev.job.doorbell[0], (uint64_t)99 << 32);
}

Test(fw, code_larger_than_the_register_is_refused) {
    struct ring_desc d = good_desc(1);
    uint32_t detail;
    cr_expect_eq(fw_check_desc(&d, &detail), 0);
    d.dram_bytes = (uint64_t)1 << 40;
    d.code_bytes = (uint64_t)1 << 36;
    cr_expect_eq(fw_check_desc(&d, &detail), RING_STATUS_BAD_RANGE);
    d.code_bytes -= 16;
    cr_expect_eq(fw_check_desc(&d, &detail), 0);
}

static void expect_ring_error(uint32_t error) {
    cr_expect_eq(get(MMIO_RING_ERROR), error);
    cr_expect(get(MMIO_IRQ_STATUS) & MMIO_IRQ_STATUS_ERROR);
    cr_expect_eq(dev.started, 0);
    // The ring stays stopped until the host has taken ENABLE away and set it up again.
    set(MMIO_IRQ_STATUS, MMIO_IRQ_STATUS_ERROR);
    step();
    cr_expect_eq(get(MMIO_RING_ERROR), error);
    set(MMIO_RING_BASE_HI, 0);
    set(MMIO_COMPLETION_BASE_HI, 0);
    enable_ring(4);
    cr_expect_eq(get(MMIO_RING_ERROR), 0);
    struct ring_desc d = good_desc(1);
    submit(&d);
    step();
    cr_expect_eq(dev.started, 1);
}

Test(fw, ring_of_no_power_of_two) {
    enable_ring(6);
    expect_ring_error(RING_ERROR_BAD_RING);
}

Test(fw, ring_too_large) {
    enable_ring(8192);
    expect_ring_error(RING_ERROR_BAD_RING);
}

Test(fw, ring_not_aligned) {
    set(MMIO_RING_CONTROL, 0);
    set(MMIO_RING_SIZE, 4);
    set(MMIO_RING_BASE_LO, 0x1020);
    set(MMIO_RING_CONTROL, MMIO_RING_CONTROL_ENABLE);
    step();
    expect_ring_error(RING_ERROR_BAD_RING);
}

Test(fw, tail_beyond_the_ring) {
    enable_ring(4);
    set(MMIO_RING_TAIL, 5);
    step();
    expect_ring_error(RING_ERROR_OVERRUN);
}

Test(fw, completions_that_cannot_be_written) {
    set(MMIO_COMPLETION_BASE_HI, 1);
    enable_ring(4);
    struct ring_desc d = good_desc(1);
    d.version = 0; // completes at once
    submit(&d);
    step();
    expect_ring_error(RING_ERROR_UNWRITABLE);
}

Test(fw, descriptors_that_cannot_be_read) {
    set(MMIO_RING_BASE_HI, 1);
    enable_ring(4);
    set(MMIO_RING_TAIL, 2);
    step();
    cr_expect_eq(completion(0).status, RING_STATUS_UNREADABLE);
    cr_expect_eq(completion(1).status, RING_STATUS_UNREADABLE);
    cr_expect_eq(completion(1).sequence, 2);
    cr_expect_eq(dev.started, 0);
}

Test(fw, disabling_stops_the_job) {
    enable_ring(4);
    struct ring_desc d = good_desc(1);
    submit(&d);
    submit(&d);
    step();
    int before = dev.resets;
    set(MMIO_RING_CONTROL, 0);
    step();
    cr_expect_eq(dev.resets, before + 1);
    cr_expect_eq(get(MMIO_STATUS), MMIO_STATUS_IDLE);
    fw_host_job_done(&dev.host, 1, 2); // too late: ignored
    step();
    cr_expect_eq(completion(0).sequence, 0);
    cr_expect_eq(dev.started, 1);
}

Test(fw, unknown_device_is_left_alone) {
    dev.host.reg[MMIO_ID / 4] = 0;
    fw_init(&dev.fw, &dev.host.port);
    cr_expect_eq(get(MMIO_RING_ERROR), RING_ERROR_BAD_DEVICE);
    enable_ring(4);
    cr_expect_eq(get(MMIO_RING_ERROR), RING_ERROR_BAD_DEVICE);
    cr_expect_not(dev.fw.enabled);
}

Test(fw, job_that_ends_inside_start) {
    enable_ring(4);
    struct ring_desc d = good_desc(1);
    submit(&d);
    for (int i = 0; i < 3 && !dev.started; i++)
        (void)fw_step(&dev.fw);
    fw_host_job_done(&dev.host, 3, 4);
    step();
    cr_expect_eq(completion(0).status, RING_STATUS_DONE);
}

Test(registers, rights_follow_the_table) {
    power_on();
    static const struct {
        uint32_t offset, reset;
        const char *name, *host;
    } rows[] = {
#define MMIO_REG(NAME, offset, host, core, reset, meaning) {offset, reset, #NAME, #host},
#include "isa/mmio.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (i > 0)
            cr_expect_gt(rows[i].offset, rows[i - 1].offset, "%s is out of order", rows[i].name);
        const char *access = rows[i].host;
        dev.host.reg[rows[i].offset / 4] = 0xffff0000;
        set(rows[i].offset, 0x12345678);
        uint32_t now = dev.host.reg[rows[i].offset / 4];
        uint32_t wanted = strcmp(access, "RW") == 0    ? 0x12345678
                          : strcmp(access, "W1C") == 0 ? 0xedcb0000
                                                       : 0xffff0000;
        cr_expect_eq(now, wanted, "%s", rows[i].name);
        bool clock = rows[i].offset == MMIO_CYCLES_LO || rows[i].offset == MMIO_CYCLES_HI;
        if (!clock)
            cr_expect_eq(get(rows[i].offset), strcmp(access, "NA") ? now : 0, "%s", rows[i].name);
    }
    set(0x1fc, 1); // no register
    cr_expect_eq(get(0x1fc), 0);
    set(MMIO_BYTES, 1);
    cr_expect_eq(get(MMIO_BYTES), 0);
    cr_expect_eq(get(2), 0);
}

Test(registers, clock_is_latched) {
    power_on();
    dev.cycles = 0x1ffffffff;
    cr_expect_eq(get(MMIO_CYCLES_LO), 0xffffffff);
    dev.cycles++;
    cr_expect_eq(get(MMIO_CYCLES_HI), 1);
    cr_expect_eq(get(MMIO_CYCLES_LO), 0);
    cr_expect_eq(get(MMIO_CYCLES_HI), 2);
}

Test(registers, engine_counters_and_program_interrupts) {
    power_on();
    fw_host_set_engine(&dev.host, 5, 1, 2, (uint64_t)3 << 32, 4);
    fw_host_set_engine(&dev.host, 100, 9, 9, 9, 9);
    cr_expect_eq(get(MMIO_ENGINE + 5 * 32 + MMIO_ENGINE_BUSY_LO), 2);
    cr_expect_eq(get(MMIO_ENGINE + 5 * 32 + MMIO_ENGINE_WAIT_HI), 3);
    fw_host_program_irq(&dev.host);
    cr_expect_eq(get(MMIO_IRQ_STATUS), MMIO_IRQ_STATUS_PROGRAM);
}
