// SPDX-License-Identifier: Apache-2.0
//
// Self-test on QEMU's virt machine: the command loop, compiled for RV32, against a command
// processor and host memory that are arrays in RAM. First the real port is checked over registers
// in RAM; then jobs are run, refused, faulted and wrapped around a ring of 4 through a port that
// plays the device. The result leaves through the serial port and the test device.

#include "firmware/port_rv32/port.h"

// Memory map of QEMU's virt machine.
static volatile uint8_t *const uart = (volatile uint8_t *)0x10000000;
static volatile uint32_t *const test_device = (volatile uint32_t *)0x100000;

volatile uint32_t fake_mmio[MMIO_BYTES / 4]; // __npu_mmio in this image

enum { SLOTS = 4, HOST_BYTES = 2048, RING_AT = 0, COMPLETIONS_AT = 1024, JOBS = 11 };
static uint8_t host[HOST_BYTES];
static uint32_t started;

static void print(const char *text) {
    for (; *text; text++)
        *uart = (uint8_t)*text;
}

static _Noreturn void leave(bool good) {
    *test_device = good ? 0x5555 : 0x13333;
    for (;;) {
    }
}

static void expect(bool good, const char *what) {
    if (good) return;
    print("selftest: wrong: ");
    print(what);
    print("\n");
    leave(false);
}

static uint32_t fake_read32(void *context, uint32_t offset) {
    (void)context;
    return fake_mmio[offset / 4];
}

// A command processor that ends each job at once; every third job faults.
static void run_job(void) {
    started++;
    bool faults = started % 3 == 0;
    fake_mmio[MMIO_JOB_START_LO / 4] = 100 * started;
    fake_mmio[MMIO_JOB_END_LO / 4] = 100 * started + 42;
    fake_mmio[MMIO_FAULT_CODE / 4] = faults ? 7 : 0;
    fake_mmio[MMIO_FAULT_TAG / 4] = faults ? fake_mmio[MMIO_DOORBELL / 4] : 0;
    fake_mmio[MMIO_STATUS / 4] =
        MMIO_STATUS_IDLE | (uint32_t)(faults ? MMIO_STATUS_FAULT : MMIO_STATUS_DONE);
}

static void fake_write32(void *context, uint32_t offset, uint32_t value) {
    (void)context;
    if (offset != MMIO_CONTROL) {
        fake_mmio[offset / 4] = value;
        return;
    }
    if (value & MMIO_CONTROL_ACK) fake_mmio[MMIO_STATUS / 4] = MMIO_STATUS_IDLE;
    if (value & MMIO_CONTROL_START) run_job();
}

static bool fake_read_host(void *context, uint64_t address, void *out, uint32_t bytes) {
    (void)context;
    if (address > HOST_BYTES || bytes > HOST_BYTES - address) return false;
    memcpy(out, host + address, bytes);
    return true;
}

static bool fake_write_host(void *context, uint64_t address, const void *bytes, uint32_t size) {
    (void)context;
    if (address > HOST_BYTES || size > HOST_BYTES - address) return false;
    memcpy(host + address, bytes, size);
    return true;
}

static void nothing(void *context) {
    (void)context;
}

static void test_port(void) {
    rv32_port.write32(NULL, MMIO_RING_HEAD, 0x12345678);
    expect(rv32_port.read32(NULL, MMIO_RING_HEAD) == 0x12345678, "a register of the port");
    uint32_t local = 0;
    expect(rv32_port.read_host(NULL, 0x1122334455667788u, &local, 4), "a copy of the port");
    expect(fake_mmio[MMIO_COPY_HOST_LO / 4] == 0x55667788 &&
               fake_mmio[MMIO_COPY_HOST_HI / 4] == 0x11223344 &&
               fake_mmio[MMIO_COPY_LOCAL / 4] == (uint32_t)(uintptr_t)&local &&
               fake_mmio[MMIO_COPY_BYTES / 4] == 4 &&
               fake_mmio[MMIO_COPY_CONTROL / 4] == MMIO_COPY_CONTROL_READ,
           "the registers of a copy");
    fake_mmio[MMIO_COPY_STATUS / 4] = MMIO_COPY_STATUS_ERROR;
    expect(!rv32_port.write_host(NULL, 0, &local, 4), "a copy that fails");
    unsigned char overlap[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    memmove(overlap + 2, overlap, 6);
    expect(overlap[2] == 1 && overlap[7] == 6, "memmove upwards");
    memmove(overlap, overlap + 2, 6);
    expect(overlap[0] == 1 && overlap[5] == 6, "memmove downwards");
    memset((void *)fake_mmio, 0, sizeof fake_mmio);
}

static void submit(uint32_t job) {
    struct ring_desc d = {0};
    d.version = job == 5 ? 9 : RING_DESC_VERSION; // job 5 is refused
    d.size = RING_DESC_BYTES;
    d.cookie = (uint64_t)job << 40 | 5;
    d.dram_bytes = 0x200000000u;
    d.code_base = 0x100000000u;
    d.code_bytes = 64;
    d.doorbell[0] = 1000 + job;
    ring_desc_encode(&d, host + RING_AT + (job % SLOTS) * RING_DESC_BYTES);
    fake_mmio[MMIO_RING_TAIL / 4] = job + 1;
}

static void expect_completion(uint32_t job, uint32_t starts) {
    struct ring_done r;
    ring_done_decode(host + COMPLETIONS_AT + (job % SLOTS) * RING_DONE_BYTES, &r);
    expect(r.sequence == job + 1, "the sequence of a completion");
    expect(r.cookie == ((uint64_t)job << 40 | 5), "the cookie of a completion");
    if (job == 5) {
        expect(r.status == RING_STATUS_BAD_VERSION && r.end_cycle == 0, "a refused job");
    } else if (starts % 3 == 0) {
        expect(r.status == RING_STATUS_FAULT && r.fault_code == 7 && r.fault_tag == 1000 + job,
               "a job that faulted");
    } else {
        expect(r.status == RING_STATUS_DONE && r.end_cycle - r.start_cycle == 42, "a job that ran");
    }
}

void rv32_main(void) {
    static struct fw fw;
    static const struct fw_port fake = {NULL,           fake_read32,     fake_write32,
                                        fake_read_host, fake_write_host, nothing,
                                        nothing};
    print("selftest: the port\n");
    test_port();
    print("selftest: the command loop\n");
    fw_init(&fw, &fake);
    expect(fake_mmio[MMIO_RING_ERROR / 4] == RING_ERROR_BAD_DEVICE, "an unknown device");
    fake_mmio[MMIO_ID / 4] = MMIO_RESET_ID;
    fake_mmio[MMIO_VERSION / 4] = MMIO_RESET_VERSION;
    fake_mmio[MMIO_STATUS / 4] = MMIO_STATUS_IDLE;
    fw_init(&fw, &fake);
    fake_mmio[MMIO_RING_BASE_LO / 4] = RING_AT;
    fake_mmio[MMIO_COMPLETION_BASE_LO / 4] = COMPLETIONS_AT;
    fake_mmio[MMIO_RING_SIZE / 4] = SLOTS;
    fake_mmio[MMIO_RING_CONTROL / 4] = MMIO_RING_CONTROL_ENABLE;
    while (!fw_step(&fw)) {
    }
    for (uint32_t job = 0; job < JOBS; job++) {
        submit(job);
        while (!fw_step(&fw)) {
        }
        expect(fake_mmio[MMIO_RING_HEAD / 4] == job + 1, "the head of the ring");
        expect_completion(job, started);
    }
    expect(started == JOBS - 1, "the number of jobs started");
    print("selftest: passed\n");
    leave(true);
}
