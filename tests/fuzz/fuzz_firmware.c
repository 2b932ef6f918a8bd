// SPDX-License-Identifier: Apache-2.0
//
// Any host against the firmware: the bytes are a script of register writes, writes to host memory
// and ends of jobs. Whatever the host does, the loop must come to rest, touch only the memory it
// was given (the device checks), and never start a job while one runs.
//
// links: npu_firmware

#include <stdlib.h>
#include <string.h>

#include "firmware/fw.h"
#include "firmware/port_host.h"
#include "tests/fuzz/fuzz.h"

enum { MEMORY_BYTES = 16384 };

static struct {
    uint8_t memory[MEMORY_BYTES];
    bool running;
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
    return 0;
}

static void start(void *context, const struct fw_host_job *job) {
    (void)context;
    // The contract of fw_check_desc, seen from the device.
    if (dev.running || job->entry >= job->code_size || job->code_base < job->dram_base ||
        job->code_base - job->dram_base > job->dram_bytes ||
        (uint64_t)job->code_size * 16 > job->dram_bytes - (job->code_base - job->dram_base))
        abort();
    dev.running = true;
}

static void reset(void *context) {
    (void)context;
    dev.running = false;
}

static void wait_nothing(void *context) {
    (void)context;
}

static void rest(struct fw *fw) {
    for (int i = 0; !fw_step(fw); i++)
        if (i > 10000) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct fw_host_owner owner = {NULL,  memory_read, memory_write, cycles,
                                               start, reset,       wait_nothing};
    static struct fw_host host;
    static struct fw fw;
    memset(&dev, 0, sizeof dev);
    fw_host_init(&host, &owner);
    fw_init(&fw, &host.port);
    // Records of 8 bytes: operation, 3 bytes of place, 4 bytes of value.
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t place = data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16;
        uint32_t value =
            data[4] | (uint32_t)data[5] << 8 | (uint32_t)data[6] << 16 | (uint32_t)data[7] << 24;
        switch (data[0] % 8) {
        case 0:
        case 1:
        case 2: fw_host_write(&host, place, value); break;
        case 3:
        case 4: (void)memory_write(NULL, place, data + 4, 4); break;
        case 5:
            dev.running = false;
            fw_host_job_done(&host, place, value);
            break;
        case 6:
            dev.running = false;
            fw_host_job_fault(&host, 0, place, value, 1, 2, 3);
            break;
        default: rest(&fw); break;
        }
    }
    rest(&fw);
    return 0;
}
