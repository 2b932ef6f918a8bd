// SPDX-License-Identifier: Apache-2.0
// External memory of the simulated device: a sorted array of ranges, found by bisection; each range
// reserves host address space once, so that every access inside it is one contiguous piece of host
// memory.
#include "simulator/exec/dram.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/alloc.h"

void exec_dram_init(struct exec_dram *d) {
    *d = (struct exec_dram){0};
}

static void range_deinit(struct exec_dram_range *r) {
    pages_free(r->pages, r->hi - r->lo);
    bits_deinit(&r->written);
    base_free(r->map);
}

void exec_dram_deinit(struct exec_dram *d) {
    for (int i = 0; i < d->nrange; i++)
        range_deinit(&d->range[i]);
    base_free(d->range);
    *d = (struct exec_dram){0};
}

// Index of the first range that ends after the address.
static int range_after(const struct exec_dram *d, int64_t address) {
    int lo = 0, hi = d->nrange;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (d->range[mid].hi <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

npu_status exec_dram_add(struct exec_dram *d, int64_t address, int64_t bytes) {
    if (address < 0 || bytes < 1 || bytes > INT64_MAX - address)
        return npu_fail(BAD_INPUT, "memory of %" PRId64 " bytes at 0x%" PRIx64, bytes,
                        (uint64_t)address);
    int at = range_after(d, address);
    if (at < d->nrange && d->range[at].lo < address + bytes)
        return npu_fail(BAD_INPUT, "memory at 0x%" PRIx64 " is in use", (uint64_t)address);
    if (d->nrange == d->cap) {
        int cap = d->cap ? d->cap * 2 : 8;
        struct exec_dram_range *grown = base_realloc(d->range, (size_t)cap * sizeof *grown);
        if (!grown) return npu_fail(NO_MEMORY, "table of memory ranges");
        d->range = grown;
        d->cap = cap;
    }
    struct exec_dram_range r = {.lo = address, .hi = address + bytes, .pages = pages_new(bytes)};
    if (!r.pages || !bits_init(&r.written, bytes)) {
        range_deinit(&r);
        return npu_fail(NO_MEMORY, "%" PRId64 " bytes of device memory", bytes);
    }
    memmove(d->range + at + 1, d->range + at, (size_t)(d->nrange - at) * sizeof r);
    d->range[at] = r;
    d->nrange++;
    return NULL;
}

void exec_dram_remove(struct exec_dram *d, int64_t address) {
    int at = range_after(d, address);
    if (at == d->nrange || d->range[at].lo != address) return;
    range_deinit(&d->range[at]);
    d->nrange--;
    d->version++;
    memmove(d->range + at, d->range + at + 1, (size_t)(d->nrange - at) * sizeof *d->range);
}

static struct exec_dram_range *range_of(const struct exec_dram *d, int64_t lo, int64_t hi) {
    int at = range_after(d, lo);
    if (lo > hi || at == d->nrange || d->range[at].lo > lo || d->range[at].hi < hi) return NULL;
    return &d->range[at];
}

npu_status exec_dram_map(struct exec_dram *d, int64_t address, struct span bytes) {
    if (bytes.size == 0) return NULL;
    if (bytes.size > INT64_MAX / 2 || address < 0 || address > INT64_MAX / 2)
        return npu_fail(BAD_INPUT, "constants at 0x%" PRIx64 " lie beyond the memory",
                        (uint64_t)address);
    const int64_t hi = address + (int64_t)bytes.size;
    struct exec_dram_range *r = range_of(d, address, hi);
    if (!r)
        return npu_fail(BAD_INPUT, "constants at 0x%" PRIx64 " lie outside the allocated memory",
                        (uint64_t)address);
    int at = 0;
    while (at < r->nmap && r->map[at].hi <= address)
        at++;
    if (at < r->nmap && r->map[at].lo < hi)
        return npu_fail(BAD_INPUT, "constants at 0x%" PRIx64 " overlap others", (uint64_t)address);
    struct exec_dram_map *grown = base_realloc(r->map, (size_t)(r->nmap + 1) * sizeof *grown);
    if (!grown) return npu_fail(NO_MEMORY, "table of constants");
    r->map = grown;
    memmove(r->map + at + 1, r->map + at, (size_t)(r->nmap - at) * sizeof *r->map);
    r->map[at] = (struct exec_dram_map){address, hi, bytes.data};
    r->nmap++;
    d->version++;
    return NULL;
}

bool exec_dram_find(const struct exec_dram *d, int64_t lo, int64_t hi, struct exec_dram_at *at) {
    struct exec_dram_range *r = range_of(d, lo, hi);
    if (!r) return false;
    for (int i = 0; i < r->nmap; i++) {
        const struct exec_dram_map *m = &r->map[i];
        if (m->lo <= lo && hi <= m->hi) {
            *at = (struct exec_dram_at){.const_bytes = m->bytes + (lo - m->lo)};
            return true;
        }
        if (m->lo < hi && lo < m->hi) return false;
    }
    *at = (struct exec_dram_at){.bytes = r->pages + (lo - r->lo),
                                .const_bytes = r->pages + (lo - r->lo),
                                .written = &r->written,
                                .offset = lo - r->lo};
    return true;
}

npu_status exec_dram_write(struct exec_dram *d, int64_t address, struct span bytes) {
    struct exec_dram_at at;
    if (bytes.size == 0) return NULL;
    if (address < 0 || bytes.size > INT64_MAX / 2 || address > INT64_MAX / 2 ||
        !exec_dram_find(d, address, address + (int64_t)bytes.size, &at))
        return npu_fail(BAD_INPUT,
                        "writing %zu bytes at device address 0x%" PRIx64 ": not allocated",
                        bytes.size, (uint64_t)address);
    if (!at.bytes)
        return npu_fail(BAD_INPUT, "writing constants at device address 0x%" PRIx64,
                        (uint64_t)address);
    memcpy(at.bytes, bytes.data, bytes.size);
    bits_set(at.written, at.offset, at.offset + (int64_t)bytes.size);
    return NULL;
}

npu_status exec_dram_read(const struct exec_dram *d, int64_t address, void *out, int64_t bytes) {
    uint8_t *to = out;
    struct exec_dram_range *r = address < 0 || bytes < 0 || address > INT64_MAX - bytes
                                    ? NULL
                                    : range_of(d, address, address + bytes);
    if (!r)
        return npu_fail(BAD_INPUT,
                        "reading %" PRId64 " bytes at device address 0x%" PRIx64 ": not allocated",
                        bytes, (uint64_t)address);
    memcpy(to, r->pages + (address - r->lo), (size_t)bytes);
    for (int i = 0; i < r->nmap; i++) {
        const struct exec_dram_map *m = &r->map[i];
        int64_t lo = m->lo > address ? m->lo : address,
                hi = m->hi < address + bytes ? m->hi : address + bytes;
        if (lo < hi) memcpy(to + (lo - address), m->bytes + (lo - m->lo), (size_t)(hi - lo));
    }
    return NULL;
}

npu_status exec_dram_discard(struct exec_dram *d, int64_t address, int64_t bytes) {
    if (bytes == 0) return NULL;
    struct exec_dram_range *r = address < 0 || bytes < 0 || address > INT64_MAX - bytes
                                    ? NULL
                                    : range_of(d, address, address + bytes);
    if (!r)
        return npu_fail(BAD_INPUT,
                        "discarding %" PRId64 " bytes at device address 0x%" PRIx64
                        ": not allocated",
                        bytes, (uint64_t)address);
    pages_zero(r->pages, address - r->lo, address - r->lo + bytes);
    bits_clear(&r->written, address - r->lo, address - r->lo + bytes);
    return NULL;
}

int64_t exec_dram_first_unwritten(const struct exec_dram *d, int64_t lo, int64_t hi) {
    struct exec_dram_at at;
    if (lo < 0 || lo >= hi || !exec_dram_find(d, lo, hi, &at) || !at.written) return -1;
    int64_t byte = bits_first_clear(at.written, at.offset, at.offset + (hi - lo));
    return byte < 0 ? -1 : byte - at.offset + lo;
}
