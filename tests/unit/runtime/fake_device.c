// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/runtime/fake_device.h"

#include <string.h>

#include "runtime/base/alloc.h"

enum { MAX_PENDING = 64 };

struct fake_device {
    struct fake_config *config;
    struct npu_ranges ranges;
    uint8_t *dram;
    struct npu_submission pending[MAX_PENDING];
    uint64_t submitted, waited; // tickets
    uint64_t cycle;
};

uint8_t *fake_dram(struct fake_device *d, uint64_t address) {
    return d->dram + address;
}

static void fake_close(void *device) {
    struct fake_device *d = device;
    d->config->closed++;
    npu_ranges_deinit(&d->ranges);
    base_free(d->dram);
    base_free(d);
}

static npu_status fake_open(const void *config, void **device) {
    struct fake_config *c = (struct fake_config *)config;
    *device = NULL;
    if (c->fail_open) return npu_fail(IO, "the fake device is broken");
    struct fake_device *d = base_alloc(sizeof *d);
    if (!d) return npu_fail(NO_MEMORY, "out of memory");
    d->config = c;
    d->dram = base_alloc(c->dram_bytes);
    npu_ranges_init(&d->ranges, c->dram_bytes);
    if (!d->dram) {
        base_free(d);
        return npu_fail(NO_MEMORY, "out of memory");
    }
    memset(d->dram, 0xcc, c->dram_bytes);
    *device = d;
    return NULL;
}

static void fake_describe(void *device, struct hw *out) {
    *out = ((struct fake_device *)device)->config->machine;
}

static npu_status fake_alloc(void *device, uint64_t bytes, uint64_t alignment, uint64_t *address) {
    return npu_ranges_alloc(&((struct fake_device *)device)->ranges, bytes, alignment, address);
}

static void fake_release(void *device, uint64_t address) {
    struct fake_device *d = device;
    d->config->released++;
    npu_ranges_release(&d->ranges, address);
}

static npu_status in_range(struct fake_device *d, uint64_t address, uint64_t bytes) {
    if (npu_ranges_find(&d->ranges, address, bytes)) return NULL;
    return npu_fail(IO, "fake device: access outside of what was allocated");
}

static npu_status fake_write(void *device, uint64_t address, struct span bytes) {
    struct fake_device *d = device;
    NPU_TRY(in_range(d, address, bytes.size));
    d->config->written++;
    memcpy(d->dram + address, bytes.data, bytes.size);
    return NULL;
}

static npu_status fake_map_const(void *device, uint64_t address, struct span bytes) {
    struct fake_device *d = device;
    d->config->mapped++;
    d->config->map_data = bytes.data;
    return fake_write(device, address, bytes);
}

static npu_status fake_discard(void *device, uint64_t address, uint64_t bytes) {
    struct fake_device *d = device;
    NPU_TRY(in_range(d, address, bytes));
    d->config->discarded++;
    memset(d->dram + address, 0xdd, bytes);
    return NULL;
}

static npu_status fake_read(void *device, uint64_t address, void *out, size_t bytes) {
    struct fake_device *d = device;
    NPU_TRY(in_range(d, address, bytes));
    memcpy(out, d->dram + address, bytes);
    return NULL;
}

static npu_status fake_submit(void *device, const struct npu_submission *s, uint64_t *ticket) {
    struct fake_device *d = device;
    if (d->submitted - d->waited == MAX_PENDING) return npu_fail(IO, "fake device: ring is full");
    d->config->submitted++;
    d->config->last = *s;
    d->pending[d->submitted % MAX_PENDING] = *s;
    *ticket = d->submitted++;
    return NULL;
}

static npu_status fake_wait(void *device, uint64_t ticket, struct npu_completion *out) {
    struct fake_device *d = device;
    if (ticket != d->waited) return npu_fail(IO, "fake device: waited out of order");
    struct npu_submission *s = &d->pending[d->waited++ % MAX_PENDING];
    d->config->waited++;
    *out = (struct npu_completion){ticket, d->cycle, d->cycle + 100};
    d->cycle += 110;
    return d->config->run ? d->config->run(d, s) : NULL;
}

static size_t fake_counters(void *device, struct npu_device_counter *out, size_t capacity) {
    const struct fake_device *d = device;
    if (capacity > 0) out[0] = (struct npu_device_counter){"cycles", d->cycle};
    if (capacity > 1) out[1] = (struct npu_device_counter){"submissions", d->submitted};
    return 2;
}

#define ENTRIES                                                                                   \
    .version = NPU_DEVICE_OPS_VERSION, .name = "fake", .open = fake_open, .close = fake_close,    \
    .describe = fake_describe, .alloc = fake_alloc, .release = fake_release, .write = fake_write, \
    .read = fake_read, .submit = fake_submit, .wait = fake_wait, .read_counters = fake_counters

const struct npu_device_ops fake_ops = {
    ENTRIES,
    .map_const = fake_map_const,
    .discard = fake_discard,
};

const struct npu_device_ops fake_ops_bare = {ENTRIES};
