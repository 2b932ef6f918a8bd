// SPDX-License-Identifier: Apache-2.0
// Constants as the program stores them, made while it is written.
//
// A weight buffer is described by blocks: strided parts of the model's own elements and where they
// go. Nothing is converted or rearranged before tile_fill() does it for one buffer:
//
//   zero what no block writes; for each block
//       merge neighbouring dimensions that are one on both sides, innermost first
//       contiguous on both sides: copy, or convert, run by run
//       else line by line; where the two sides have different innermost dimensions, in squares of
//       both, so that each cache line of either side is used while it is there
#include "toolchain/tile/tile.h"

#include <string.h>

#include "isa/numeric.h"

#define SQUARE 64

int tile_add_weight(struct tile_program *p, const char *name, int64_t bytes,
                    const struct tile_block *blocks, int n) {
    int id = tile_add_dram(p, name, TILE_WEIGHT, bytes, NULL, NULL);
    tile_set_blocks(p, id, blocks, n);
    return id;
}

void tile_set_blocks(struct tile_program *p, int buf, const struct tile_block *blocks, int n) {
    p->bufs[buf]->blocks = arena_copy(p->arena, blocks, (size_t)n * sizeof *blocks);
    p->bufs[buf]->nblock = n;
}

static int64_t elems(const struct tile_block *b) {
    int64_t n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= b->size[d];
    return n;
}

const void *tile_lent(const struct tile_buf *b) {
    if (!b->nblock) return b->data;
    const struct tile_block *k = &b->blocks[0];
    int64_t bits = isa_dtype_bits((int)k->dtype), n = 1;
    if (b->nblock > 1 || k->from_dtype != k->dtype || k->to_at || bits < 8 ||
        elems(k) * bits / 8 != b->bytes)
        return NULL;
    for (int d = k->rank - 1; d >= 0; d--) {
        if (k->size[d] > 1 && (k->from_stride[d] != n || k->to_stride[d] != n)) return NULL;
        n *= k->size[d];
    }
    return (const uint8_t *)k->from + k->from_at * bits / 8;
}

// Drops dimensions of size 1 and joins those that are one.
static void merge(struct tile_block *b) {
    int n = 0;
    for (int d = 0; d < b->rank; d++) {
        int64_t size = b->size[d];
        if (size == 1) continue;
        if (n && b->from_stride[n - 1] == b->from_stride[d] * size &&
            b->to_stride[n - 1] == b->to_stride[d] * size) {
            size *= b->size[--n];
        }
        b->size[n] = size;
        b->from_stride[n] = b->from_stride[d];
        b->to_stride[n++] = b->to_stride[d];
    }
    b->rank = n;
}

#define LINE(TYPE)                  \
    for (int64_t i = 0; i < n; i++) \
    memcpy(to + i * ts * (int64_t)sizeof(TYPE), from + i * fs * (int64_t)sizeof(TYPE), sizeof(TYPE))

// n elements, fs and ts elements apart.
static void line(const struct tile_block *b, const uint8_t *from, int64_t fs, uint8_t *to,
                 int64_t ts, int64_t n) {
    int64_t bytes = isa_dtype_bits((int)b->dtype) / 8;
    if (b->from_dtype == b->dtype) {
        if (fs == 1 && ts == 1)
            memcpy(to, from, (size_t)(n * bytes));
        else if (bytes == 2)
            LINE(uint16_t);
        else if (bytes == 4)
            LINE(uint32_t);
        else if (bytes == 8)
            LINE(uint64_t);
        else
            LINE(uint8_t);
        return;
    }
    float wide[256];
    for (int64_t at = 0; at < n; at += 256) {
        size_t part = n - at < 256 ? (size_t)(n - at) : 256;
        num_read_f32((int)b->from_dtype, from, at * fs, fs, wide, part);
        num_write_f32((int)b->dtype, to, at * ts, ts, wide, part);
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// The last two dimensions, that of the shorter steps in memory innermost on either side.
static void plane(const struct tile_block *b, const uint8_t *from, uint8_t *to) {
    int o = b->rank - 2, i = b->rank - 1;
    int64_t fb = isa_dtype_bits((int)b->from_dtype) / 8, tb = isa_dtype_bits((int)b->dtype) / 8;
    bool crossed = b->from_stride[o] < b->from_stride[i];
    int64_t wide = crossed ? SQUARE : b->size[i];
    for (int64_t i0 = 0; i0 < b->size[i]; i0 += wide)
        for (int64_t k = 0; k < b->size[o]; k++)
            line(b, from + (k * b->from_stride[o] + i0 * b->from_stride[i]) * fb, b->from_stride[i],
                 to + (k * b->to_stride[o] + i0 * b->to_stride[i]) * tb, b->to_stride[i],
                 least(wide, b->size[i] - i0));
}

static void fill_block(const struct tile_block *given, uint8_t *to) {
    struct tile_block b = *given;
    merge(&b);
    while (b.rank < 2) { // in front
        for (int d = b.rank; d > 0; d--) {
            b.size[d] = b.size[d - 1];
            b.from_stride[d] = b.from_stride[d - 1];
            b.to_stride[d] = b.to_stride[d - 1];
        }
        b.size[0] = 1;
        b.from_stride[0] = b.to_stride[0] = 0;
        b.rank++;
    }
    int64_t fb = isa_dtype_bits((int)b.from_dtype) / 8, tb = isa_dtype_bits((int)b.dtype) / 8;
    int64_t at[TILE_BLOCK_DIMS] = {0};
    for (int d = 0; d >= 0;) {
        int64_t f = b.from_at, t = b.to_at;
        for (int k = 0; k < b.rank - 2; k++) {
            f += at[k] * b.from_stride[k];
            t += at[k] * b.to_stride[k];
        }
        plane(&b, (const uint8_t *)b.from + f * fb, to + t * tb);
        for (d = b.rank - 3; d >= 0; d--) {
            if (++at[d] < b.size[d]) break;
            at[d] = 0;
        }
    }
}

void tile_fill(const struct tile_buf *b, uint8_t *to) {
    const void *lent = tile_lent(b);
    if (lent) {
        memcpy(to, lent, (size_t)b->bytes);
        return;
    }
    int64_t bits = 0;
    for (int i = 0; i < b->nblock; i++)
        bits += elems(&b->blocks[i]) * isa_dtype_bits((int)b->blocks[i].dtype);
    if (bits < 8 * b->bytes) memset(to, 0, (size_t)b->bytes);
    for (int i = 0; i < b->nblock; i++)
        fill_block(&b->blocks[i], to);
}
