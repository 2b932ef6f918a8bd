// SPDX-License-Identifier: Apache-2.0
// Bit maps over bytes of memory, and the lazily filled host pages that hold both maps and memories.
// A range is a partial word, whole words and a partial word.
#define _DEFAULT_SOURCE
#include "simulator/exec/bits.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *pages_new(int64_t bytes) {
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void pages_free(void *pages, int64_t bytes) {
    if (pages) munmap(pages, (size_t)bytes);
}

void pages_zero(void *pages, int64_t lo, int64_t hi) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    uint8_t *bytes = pages;
    int64_t from = (lo + page - 1) / page * page, to = hi / page * page;
    if (to - from < 16 * page) {
        memset(bytes + lo, 0, (size_t)(hi - lo));
        return;
    }
    memset(bytes + lo, 0, (size_t)(from - lo));
    memset(bytes + to, 0, (size_t)(hi - to));
    if (madvise(bytes + from, (size_t)(to - from), MADV_DONTNEED) != 0)
        memset(bytes + from, 0, (size_t)(to - from));
}

static int64_t map_bytes(int64_t bytes) {
    return (bytes + 63) / 64 * 8;
}

bool bits_init(struct exec_bits *b, int64_t bytes) {
    *b = (struct exec_bits){.bytes = bytes};
    if (bytes <= 0) return true;
    b->word = pages_new(map_bytes(bytes));
    return b->word != NULL;
}

void bits_deinit(struct exec_bits *b) {
    if (b->word) pages_free(b->word, map_bytes(b->bytes));
    *b = (struct exec_bits){0};
}

// Bits from..63 and 0..to-1.
static uint64_t from_bit(int64_t lo) {
    return ~(uint64_t)0 << (lo & 63);
}
static uint64_t to_bit(int64_t hi) {
    return hi & 63 ? ~(uint64_t)0 >> (64 - (hi & 63)) : ~(uint64_t)0;
}

void bits_set(struct exec_bits *b, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    int64_t w = lo >> 6, last = (hi - 1) >> 6;
    if (w == last) {
        b->word[w] |= from_bit(lo) & to_bit(hi);
        return;
    }
    b->word[w] |= from_bit(lo);
    memset(b->word + w + 1, 0xff, (size_t)(last - w - 1) * 8);
    b->word[last] |= to_bit(hi);
}

void bits_clear(struct exec_bits *b, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    int64_t w = lo >> 6, last = (hi - 1) >> 6;
    if (w == last) {
        b->word[w] &= ~(from_bit(lo) & to_bit(hi));
        return;
    }
    b->word[w] &= ~from_bit(lo);
    if (last > w + 1) pages_zero(b->word, (w + 1) * 8, last * 8);
    b->word[last] &= ~to_bit(hi);
}

int64_t bits_first_clear(const struct exec_bits *b, int64_t lo, int64_t hi) {
    if (lo >= hi) return -1;
    int64_t w = lo >> 6, last = (hi - 1) >> 6;
    uint64_t clear = ~b->word[w] & from_bit(lo);
    for (;;) {
        if (w == last) clear &= to_bit(hi);
        if (clear) break;
        if (w++ == last) return -1;
        clear = ~b->word[w];
    }
    int64_t at = w * 64;
    while (!(clear & 1)) {
        clear >>= 1;
        at++;
    }
    return at;
}
