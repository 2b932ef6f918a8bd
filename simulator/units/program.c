// SPDX-License-Identifier: Apache-2.0
//
// Records from the functional pass: one per dynamic instruction, in order of dispatch, and beside
// them the transfers of DMA instructions, rows of gathers and the set of tags.
#include <string.h>

#include "runtime/base/alloc.h"
#include "simulator/units/record.h"

struct units_program *units_program_new(const struct hw *hw) {
    struct units_program *p = base_alloc(sizeof *p);
    if (p) p->hw = *hw;
    return p;
}

void units_program_free(struct units_program *p) {
    if (!p) return;
    base_free(p->rec);
    base_free(p->transfer);
    base_free(p->row);
    base_free(p->tag);
    base_free(p->slot);
    base_free(p);
}

void units_program_clear(struct units_program *p) {
    p->count = p->ntransfer = p->nrow = p->ntag = 0;
    if (p->slot) memset(p->slot, 0, (size_t)p->nslot * sizeof *p->slot);
    memset(p->per_engine, 0, sizeof p->per_engine);
    memset(p->signaller, 0, sizeof p->signaller);
    memset(p->waiter, 0, sizeof p->waiter);
    memset(p->recent, 0, sizeof p->recent);
}

void units_program_code(struct units_program *p, uint64_t address, uint64_t bytes) {
    p->code_address = address;
    p->code_bytes = bytes;
}

uint64_t units_program_count(const struct units_program *p) {
    return p->count;
}

// Room for `more` items of `size` bytes in a growing array.
static bool reserve(void *array, uint64_t count, uint64_t *capacity, uint64_t more, size_t size) {
    if (more <= *capacity - count) return true;
    uint64_t wanted = *capacity ? *capacity * 2 : 1024;
    if (wanted < count + more) wanted = count + more;
    if (wanted > SIZE_MAX / size) return false;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = base_realloc(old, (size_t)wanted * size);
    if (!grown) return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

static void trim(void *array, uint64_t count, uint64_t *capacity, size_t size) {
    void *old;
    memcpy(&old, array, sizeof old);
    if (count == *capacity || !old) return;
    void *less = base_realloc(old, (size_t)(count ? count : 1) * size);
    if (!less) return; // it stays as large as it is
    memcpy(array, &less, sizeof less);
    *capacity = count ? count : 1;
}

void units_program_trim(struct units_program *p) {
    trim(&p->rec, p->count, &p->capacity, sizeof *p->rec);
    trim(&p->transfer, p->ntransfer, &p->transfer_capacity, sizeof *p->transfer);
    trim(&p->row, p->nrow, &p->row_capacity, sizeof *p->row);
    trim(&p->tag, p->ntag, &p->tag_capacity, sizeof *p->tag);
}

uint64_t units_program_bytes(const struct units_program *p) {
    return sizeof *p + p->capacity * sizeof *p->rec + p->transfer_capacity * sizeof *p->transfer +
           p->row_capacity * sizeof *p->row + p->tag_capacity * sizeof *p->tag +
           p->nslot * sizeof *p->slot;
}

static uint64_t tag_slot(const struct units_program *p, uint32_t tag) {
    uint64_t s = (tag * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (p->nslot - 1);
    while (p->slot[s] && p->tag[p->slot[s] - 1] != tag)
        s = (s + 1) & (p->nslot - 1);
    return s;
}

static bool grow_slots(struct units_program *p) {
    const uint64_t n = p->nslot ? p->nslot * 2 : 256;
    uint32_t *slot = base_alloc_array((size_t)n, sizeof *slot);
    if (!slot) return false;
    base_free(p->slot);
    p->slot = slot;
    p->nslot = n;
    for (uint64_t i = 0; i < p->ntag; i++)
        p->slot[tag_slot(p, p->tag[i])] = (uint32_t)i + 1;
    return true;
}

// Index of a tag, a new one for a new tag; UINT32_MAX: out of memory.
static uint32_t tag_index(struct units_program *p, uint32_t tag) {
    if (2 * (p->ntag + 1) > p->nslot && !grow_slots(p)) return UINT32_MAX;
    const uint64_t s = tag_slot(p, tag);
    if (p->slot[s]) return p->slot[s] - 1;
    if (!reserve(&p->tag, p->ntag, &p->tag_capacity, 1, sizeof *p->tag)) return UINT32_MAX;
    p->tag[p->ntag++] = tag;
    p->slot[s] = (uint32_t)p->ntag;
    return p->slot[s] - 1;
}

bool units_program_add(struct units_program *p, const struct units_rec *r) {
    if (!reserve(&p->rec, p->count, &p->capacity, 1, sizeof *p->rec)) return false;
    const uint32_t index = tag_index(p, r->tag);
    if (index == UINT32_MAX) return false;
    p->rec[p->count] = *r;
    p->rec[p->count++].tag_index = index;
    p->per_engine[r->engine]++;
    for (int i = 0; i < 2; i++) {
        if (r->sig_sem[i]) p->signaller[r->sig_sem[i]] = (uint8_t)(r->engine + 1);
        if (r->wait_sem[i]) p->waiter[r->wait_sem[i]] = (uint8_t)(r->engine + 1);
    }
    return true;
}

uint32_t units_program_transfer(struct units_program *p, const struct units_transfer *t) {
    if (p->ntransfer >= UINT32_MAX ||
        !reserve(&p->transfer, p->ntransfer, &p->transfer_capacity, 1, sizeof *p->transfer))
        return UINT32_MAX;
    p->transfer[p->ntransfer++] = *t;
    return (uint32_t)p->ntransfer - 1;
}

npu_status units_sink(void *ctx, const struct exec_dyn *dyn) {
    struct units_program *p = ctx;
    const struct isa_header *h = &dyn->insn->h;
    NPU_ASSERT(dyn->seq == p->count);
    struct units_rec r = {
        .tag = dyn->tag,
        .pc = dyn->pc_granule,
        .engine = (uint8_t)dyn->engine,
        .opcode = (uint8_t)h->opcode,
        .granules = (uint8_t)dyn->granules,
        .flags = dyn->skipped ? UNITS_SKIPPED : 0,
        .wait_sem = {(uint8_t)h->wait0_sem, (uint8_t)h->wait1_sem},
        .wait_value = {(uint16_t)h->wait0_value, (uint16_t)h->wait1_value},
        .sig_sem = {(uint8_t)h->sig0_sem, (uint8_t)h->sig1_sem},
        .sig_inc = {(uint8_t)h->sig0_inc, (uint8_t)h->sig1_inc},
        .sig_when = {(uint8_t)h->sig0_when, (uint8_t)h->sig1_when},
        .acquire = (uint8_t)h->acquire,
    };
    if (!units_cost(p, dyn, &r) || !units_program_add(p, &r))
        return npu_fail(NO_MEMORY, "no memory for the record of instruction %llu",
                        (unsigned long long)dyn->seq);
    return NULL;
}

npu_status units_rows_sink(void *ctx, uint64_t seq, const int64_t *row, int64_t nrow) {
    struct units_program *p = ctx;
    NPU_ASSERT(seq < p->count && nrow >= 0);
    if (p->rec[seq].flags & UNITS_SKIPPED) return NULL;
    struct units_transfer *t = &p->transfer[p->rec[seq].extra];
    if (!t->gather) return NULL;
    if (!reserve(&p->row, p->nrow, &p->row_capacity, (uint64_t)nrow, sizeof *p->row))
        return npu_fail(NO_MEMORY, "no memory for the rows of instruction %llu",
                        (unsigned long long)seq);
    t->first_row = p->nrow;
    t->nrow = (uint64_t)nrow;
    uint64_t read = 0;
    for (int64_t i = 0; i < nrow; i++) {
        p->row[p->nrow++] = row[i];
        read += row[i] >= 0;
    }
    t->read_bytes = t->src_dram ? read * t->src.run : 0;
    return NULL;
}
