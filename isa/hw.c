// SPDX-License-Identifier: Apache-2.0
// The table of hardware parameters: find, get, set, hash. Values are plain int64_t members of
// struct hw, reached by offset.
#include "isa/hw.h"

#include <string.h>

// clang-format off
#define HW_GROUP(g, title)
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc) \
    _Static_assert((def) >= (lo) && (def) <= (hi), #g "." #name ": default out of range");
#define HW_ENUM(g, name, cls, def, words, doc)
#include "isa/hw.def"

// Titles by group name, so that each row of the table can carry its own.
enum {
#define HW_GROUP(g, title) GROUP_##g,
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc)
#define HW_ENUM(g, name, cls, def, words, doc)
#include "isa/hw.def"
    GROUPS
};
static const char *const titles[GROUPS] = {
#define HW_GROUP(g, title) title,
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc)
#define HW_ENUM(g, name, cls, def, words, doc)
#include "isa/hw.def"
};
static const unsigned char group_of[] = {
#define HW_GROUP(g, title)
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc) GROUP_##g,
#define HW_ENUM(g, name, cls, def, words, doc) GROUP_##g,
#include "isa/hw.def"
};

#define MAX_WORDS 15
const struct hw_param_desc hw_params[] = {
#define HW_GROUP(g, title)
#define HW_PARAM(g, name, unit, cls, def, lo, hi, doc) \
    {#g "." #name, NULL, doc, HW_##unit, HW_##cls, (def), (lo), (hi), \
     offsetof(struct hw, g##_##name)},
#define HW_ENUM(g, name, cls, def, words, doc) \
    {#g "." #name, words, doc, HW_WORDS, HW_##cls, (def), 0, MAX_WORDS, \
     offsetof(struct hw, g##_##name)},
#include "isa/hw.def"
};
// clang-format on
const int hw_nparam = (int)(sizeof hw_params / sizeof hw_params[0]);

const char *hw_group_title(const struct hw_param_desc *p) {
    return titles[group_of[p - hw_params]];
}

void hw_defaults(struct hw *hw) {
    for (int i = 0; i < hw_nparam; i++)
        hw_set(hw, &hw_params[i], hw_params[i].def);
}

const struct hw_param_desc *hw_find(const char *key, size_t len) {
    for (int i = 0; i < hw_nparam; i++)
        if (strlen(hw_params[i].key) == len && memcmp(hw_params[i].key, key, len) == 0)
            return &hw_params[i];
    return NULL;
}

int64_t hw_get(const struct hw *hw, const struct hw_param_desc *p) {
    int64_t v;
    memcpy(&v, (const char *)hw + p->offset, sizeof v);
    return v;
}

void hw_set(struct hw *hw, const struct hw_param_desc *p, int64_t value) {
    memcpy((char *)hw + p->offset, &value, sizeof value);
}

// Start and length of word `index` of "a|b|c"; NULL when there are fewer.
static const char *nth_word(const char *words, int index, size_t *len) {
    while (index-- > 0) {
        words = strchr(words, '|');
        if (!words) return NULL;
        words++;
    }
    const char *end = strchr(words, '|');
    *len = end ? (size_t)(end - words) : strlen(words);
    return words;
}

int hw_word(const struct hw_param_desc *p, const char *word, size_t len) {
    if (!p->words) return -1;
    for (int i = 0;; i++) {
        size_t n;
        const char *w = nth_word(p->words, i, &n);
        if (!w) return -1;
        if (n == len && memcmp(w, word, n) == 0) return i;
    }
}

const char *hw_word_text(const struct hw_param_desc *p, int64_t value, size_t *len) {
    if (!p->words || value < 0 || value > MAX_WORDS) return NULL;
    return nth_word(p->words, (int)value, len);
}

bool hw_in_range(const struct hw_param_desc *p, int64_t value) {
    size_t len;
    if (p->words) return hw_word_text(p, value, &len) != NULL;
    return value >= p->lo && value <= p->hi;
}

static uint64_t fnv(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

uint64_t hw_hash(const struct hw *hw, enum hw_class cls) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < hw_nparam; i++) {
        const struct hw_param_desc *p = &hw_params[i];
        if (p->cls != cls) continue;
        const uint64_t v = (uint64_t)hw_get(hw, p);
        unsigned char le[8];
        for (int b = 0; b < 8; b++)
            le[b] = (unsigned char)(v >> (8 * b));
        h = fnv(h, p->key, strlen(p->key) + 1);
        h = fnv(h, le, sizeof le);
    }
    return h;
}

int64_t hw_psum_row_bytes(const struct hw *hw) {
    return 4 * hw->mxu_cols;
}

int64_t hw_psum_bytes(const struct hw *hw) {
    return hw->psum_banks * hw->psum_rows * hw_psum_row_bytes(hw);
}

int64_t hw_spm_bytes_per_cycle(const struct hw *hw) {
    return hw->spm_banks * hw->spm_bank_bytes;
}

int64_t hw_dram_mega_transfers(const struct hw *hw) {
    switch ((enum hw_dram_standard)hw->dram_standard) {
    case HW_LPDDR4_2400: return 2400;
    case HW_LPDDR5_6400: return 6400;
    case HW_DDR4_3200: return 3200;
    case HW_HBM2_2000: return 2000;
    case HW_IDEAL: return 0;
    }
    return 0;
}

int64_t hw_dram_bytes_per_kcycle(const struct hw *hw) {
    const int64_t kilobytes_per_ms =
        hw_dram_mega_transfers(hw) * hw->dram_channel_bits * hw->dram_channels;
    return kilobytes_per_ms * 1000 / 8 / hw->clock_npu_mhz;
}
