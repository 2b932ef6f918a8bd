// SPDX-License-Identifier: Apache-2.0
//
// Opening a device through its table, and the range allocator that devices use. Ranges are a list
// in ascending order; allocation takes the first gap that is large enough.

#include "runtime/device.h"

#include <inttypes.h>

#include "runtime/api.h"
#include "runtime/base/alloc.h"

// ---- opening
// ---------------------------------------------------------------------------------------

// NULL, or the name of a required entry that is missing.
static const char *missing_entry(const struct npu_device_ops *ops) {
    if (!ops->open) return "open";
    if (!ops->close) return "close";
    if (!ops->describe) return "describe";
    if (!ops->alloc) return "alloc";
    if (!ops->release) return "release";
    if (!ops->write) return "write";
    if (!ops->read) return "read";
    if (!ops->submit) return "submit";
    if (!ops->wait) return "wait";
    if (!ops->read_counters) return "read_counters";
    return NULL;
}

npu_status npu_device_open(const struct npu_device_ops *ops, const void *config,
                           struct npu_device **out) {
    *out = NULL;
    if (!ops) return npu_fail(USAGE, "no device table given");
    if (ops->version != NPU_DEVICE_OPS_VERSION)
        return npu_fail(USAGE, "device table of version %u, this library knows %d", ops->version,
                        NPU_DEVICE_OPS_VERSION);
    const char *missing = missing_entry(ops);
    if (missing) return npu_fail(USAGE, "device '%s' has no entry '%s'", ops->name, missing);
    struct npu_device *device = base_alloc(sizeof *device);
    if (!device) return npu_fail(NO_MEMORY, "device '%s': out of memory", ops->name);
    device->ops = ops;
    device->dram_alignment = 4096;
    npu_status st = ops->open(config, &device->handle);
    if (st) {
        base_free(device);
        return npu_note(st, "opening device '%s'", ops->name);
    }
    *out = device;
    return NULL;
}

void npu_device_close(struct npu_device *device) {
    if (!device) return;
    device->ops->close(device->handle);
    base_free(device);
}

const char *npu_device_name(const struct npu_device *device) {
    return device->ops->name;
}

size_t npu_device_counters(struct npu_device *device, struct npu_counter *out, size_t capacity) {
    struct npu_device_counter *raw = NULL;
    if (capacity > 0) {
        raw = base_alloc_array(capacity, sizeof *raw);
        if (!raw) return 0;
    }
    size_t count = device->ops->read_counters(device->handle, raw, capacity);
    for (size_t i = 0; i < count && i < capacity; i++)
        out[i] = (struct npu_counter){raw[i].name, raw[i].value};
    base_free(raw);
    return count;
}

// ---- ranges
// ----------------------------------------------------------------------------------------

struct npu_range {
    struct npu_range *next;
    uint64_t start, bytes; // allocated
};

void npu_ranges_init(struct npu_ranges *r, uint64_t bytes) {
    *r = (struct npu_ranges){.bytes = bytes};
}

void npu_ranges_deinit(struct npu_ranges *r) {
    while (r->first) {
        struct npu_range *next = r->first->next;
        base_free(r->first);
        r->first = next;
    }
}

npu_status npu_ranges_alloc(struct npu_ranges *r, uint64_t bytes, uint64_t alignment,
                            uint64_t *address) {
    if (bytes == 0) bytes = 1;
    NPU_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0);
    struct npu_range **link = &r->first;
    uint64_t end = 0, largest = 0; // end of the range before the gap
    for (;; link = &(*link)->next) {
        uint64_t gap_end = *link ? (*link)->start : r->bytes;
        uint64_t skip = (alignment - end % alignment) % alignment;
        uint64_t gap = gap_end - end;
        if (gap >= skip && gap - skip >= bytes) {
            struct npu_range *range = base_alloc(sizeof *range);
            if (!range) return npu_fail(NO_MEMORY, "out of memory");
            *range = (struct npu_range){*link, end + skip, bytes};
            *link = range;
            *address = range->start;
            return NULL;
        }
        if (gap > largest) largest = gap;
        if (!*link) break;
        end = (*link)->start + (*link)->bytes;
    }
    return npu_fail(NO_FIT,
                    "%" PRIu64 " bytes of device memory are wanted; it has %" PRIu64
                    ", of which %" PRIu64 " are free in one piece",
                    bytes, r->bytes, largest);
}

void npu_ranges_release(struct npu_ranges *r, uint64_t address) {
    for (struct npu_range **link = &r->first; *link; link = &(*link)->next) {
        if ((*link)->start == address) {
            struct npu_range *range = *link;
            *link = range->next;
            base_free(range);
            return;
        }
    }
}

uint64_t npu_ranges_find(const struct npu_ranges *r, uint64_t address, uint64_t bytes) {
    for (const struct npu_range *range = r->first; range; range = range->next)
        if (address >= range->start && address - range->start <= range->bytes &&
            bytes <= range->bytes - (address - range->start))
            return range->bytes;
    return 0;
}
