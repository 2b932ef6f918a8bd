// SPDX-License-Identifier: Apache-2.0
// Catching what layers store.
#include "simulator/npusim/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

static int by_first_tag(const void *a, const void *b) {
    const struct snapshot *x = a, *y = b;
    if (x->result->first_tag != y->result->first_tag)
        return x->result->first_tag < y->result->first_tag ? -1 : 1;
    return x->result < y->result ? -1 : x->result > y->result;
}

npu_status snapshots_init(struct snapshots *s, const struct npu_image_record *record,
                          const struct hw *hw) {
    *s = (struct snapshots){0};
    s->item = base_alloc_array(record->nresults + 1, sizeof *s->item);
    if (!s->item) return npu_fail(NO_MEMORY, "the list of results");
    for (size_t i = 0; i < record->nresults; i++) {
        const struct npu_image_result *r = &record->results[i];
        struct snapshot *to = &s->item[s->n++];
        int64_t last = 0;
        for (int d = 0; d < r->rank; d++)
            last += (r->dims[d] - 1) * r->strides[d];
        *to = (struct snapshot){.result = r, .lo = (int64_t)r->address};
        to->hi = to->lo + (last + 1) * (isa_dtype_bits(r->dtype) / 8);
        if (r->space == ISA_SPM && to->hi > hw->spm_bytes)
            return npu_fail(BAD_INPUT,
                            "record: result '%s' ends at 0x%" PRIx64
                            ", outside the machine's scratchpad",
                            r->name, (uint64_t)to->hi);
        to->bytes = pages_new(to->hi - to->lo);
        if (!to->bytes || !bits_init(&to->seen, to->hi - to->lo))
            return npu_fail(NO_MEMORY, "%" PRId64 " bytes for result '%s'", to->hi - to->lo,
                            r->name);
        if (r->last_tag - r->first_tag > s->reach) s->reach = r->last_tag - r->first_tag;
    }
    qsort(s->item, s->n, sizeof *s->item, by_first_tag);
    return NULL;
}

void snapshot_drop(struct snapshot *s) {
    if (s->bytes) pages_free(s->bytes, s->hi - s->lo);
    s->bytes = NULL;
    bits_deinit(&s->seen);
}

void snapshots_deinit(struct snapshots *s) {
    for (size_t i = 0; i < s->n; i++)
        snapshot_drop(&s->item[i]);
    base_free(s->item);
    *s = (struct snapshots){0};
}

// The part of each run that lies on the result.
static void take(struct snapshot *s, const struct exec_foot *foot, const uint8_t *bytes) {
    struct exec_foot_walk w;
    if (foot->hi <= s->lo || foot->lo >= s->hi) return;
    foot_first(foot, &w);
    do {
        const int64_t lo = w.lo > s->lo ? w.lo : s->lo, hi = w.hi < s->hi ? w.hi : s->hi;
        if (lo >= hi) continue;
        memcpy(s->bytes + (lo - s->lo), bytes + (lo - foot->lo), (size_t)(hi - lo));
        bits_set(&s->seen, lo - s->lo, hi - s->lo);
    } while (foot_next(foot, &w));
}

void snapshots_write(void *ctx, const struct exec_place *at, int space,
                     const struct exec_foot *foot, const uint8_t *bytes) {
    struct snapshots *s = ctx;
    const uint32_t tag = at->tag;
    size_t low = 0, high = s->n; // the first whose first tag is beyond `tag`
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->item[middle].result->first_tag > tag)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low > 0 && tag - s->item[low - 1].result->first_tag <= s->reach; low--) {
        struct snapshot *to = &s->item[low - 1];
        if (tag <= to->result->last_tag && space == to->result->space && to->bytes)
            take(to, foot, bytes);
    }
}

// Elements along the last dimension, from `from` bytes on. `whole`: all of them were written.
static uint64_t unpack_row(const struct snapshot *s, bool whole, int64_t from, int64_t count,
                           int64_t step, uint8_t *out) {
    const size_t size = (size_t)isa_dtype_bits(s->result->dtype) / 8;
    uint64_t missing = 0;
    if (whole && step == (int64_t)size) {
        memcpy(out, s->bytes + from, (size_t)count * size);
        return 0;
    }
    for (int64_t i = 0; i < count; i++, from += step, out += size) {
        memcpy(out, s->bytes + from, size);
        missing += !whole && bits_first_clear(&s->seen, from, from + (int64_t)size) >= 0;
    }
    return missing;
}

uint64_t snapshot_unpack(const struct snapshot *s, void *out) {
    const struct npu_image_result *r = s->result;
    const int64_t size = isa_dtype_bits(r->dtype) / 8;
    const int inner = r->rank - 1;
    const int64_t count = inner >= 0 ? r->dims[inner] : 1,
                  step = inner >= 0 ? r->strides[inner] * size : size;
    const bool whole = bits_first_clear(&s->seen, 0, s->hi - s->lo) < 0;
    int64_t at[CONTAINER_MAX_RANK] = {0}, from = 0;
    uint8_t *to = out;
    uint64_t missing = 0;
    for (;;) {
        missing += unpack_row(s, whole, from, count, step, to);
        to += count * size;
        int d = inner - 1;
        for (; d >= 0; d--) {
            from += r->strides[d] * size;
            if (++at[d] < r->dims[d]) break;
            from -= r->strides[d] * size * r->dims[d];
            at[d] = 0;
        }
        if (d < 0) return missing;
    }
}
