// SPDX-License-Identifier: Apache-2.0
// The rows of noise.def by number and by word.
#include "simulator/noise/noise.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *key;
    enum noise_kind kind;
    const char *drawn, *parameters;
} rows[NOISE_SOURCES] = {
#define NOISE_SOURCE(NAME, key, kind, drawn, parameters) {key, NOISE_##kind, drawn, parameters},
#include "simulator/noise/noise.def"
};

#define NOISE_SOURCE(NAME, key, kind, drawn, parameters) key ","
_Static_assert(sizeof(
#include "simulator/noise/noise.def"
                   ) <= NOISE_TEXT_BYTES,
               "the longest list fits its buffer");

const char *noise_key(enum noise_source source) {
    return rows[source].key;
}

enum noise_kind noise_kind(enum noise_source source) {
    return rows[source].kind;
}

const char *noise_drawn(enum noise_source source) {
    return rows[source].drawn;
}

const char *noise_parameters(enum noise_source source) {
    return rows[source].parameters;
}

// Number of the row of a word, -1 when there is none.
static int find(const char *word, size_t length) {
    for (int i = 0; i < NOISE_SOURCES; i++)
        if (strlen(rows[i].key) == length && !memcmp(rows[i].key, word, length)) return i;
    return -1;
}

static npu_status unknown(const char *text, const char *word, size_t length, const char *what) {
    char list[NOISE_TEXT_BYTES];
    return npu_fail(USAGE, "--noise %s: '%.*s' %s; accepted are off, all, or some of %s", text,
                    (int)length, word, what, noise_text(NOISE_ALL, list));
}

npu_status noise_parse(const char *text, unsigned *sources) {
    *sources = NOISE_OFF;
    if (!strcmp(text, "off")) return NULL;
    if (!strcmp(text, "all")) {
        *sources = NOISE_ALL;
        return NULL;
    }
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, ",");
        const int source = find(word, length);
        if (source < 0) return unknown(text, word, length, "is no source of noise");
        if (*sources >> source & 1U) return unknown(text, word, length, "is named twice");
        *sources |= 1U << source;
        word += length;
        if (!*word) return NULL;
    }
}

const char *noise_text(unsigned sources, char out[NOISE_TEXT_BYTES]) {
    size_t used = 0;
    snprintf(out, NOISE_TEXT_BYTES, "off");
    for (int i = 0; i < NOISE_SOURCES; i++)
        if (sources >> i & 1U)
            used += (size_t)snprintf(out + used, NOISE_TEXT_BYTES - used, "%s%s", used ? "," : "",
                                     rows[i].key);
    return out;
}
