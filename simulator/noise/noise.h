// SPDX-License-Identifier: Apache-2.0
//
// The sources of jitter and which of them are on.
#ifndef SIMULATOR_NOISE_NOISE_H
#define SIMULATOR_NOISE_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum noise_source {
#define NOISE_SOURCE(NAME, key, kind, drawn, parameters) NOISE_##NAME,
#include "simulator/noise/noise.def"
    NOISE_SOURCES
};

enum noise_kind { NOISE_SIMULATED, NOISE_SAMPLED };

#define NOISE_OFF 0U
#define NOISE_ALL ((1U << NOISE_SOURCES) - 1U)

/// What is on and what everything is drawn from.
struct noise {
    unsigned sources; ///< bit per enum noise_source; NOISE_OFF: every run is the same
    uint64_t seed;
};

static inline bool noise_on(const struct noise *n, enum noise_source source) {
    return n && (n->sources >> source & 1U);
}

/// The word on the command line and in reports.
const char *noise_key(enum noise_source source);

/// Whether the machine's mechanism is simulated or times are sampled from a fitted model.
enum noise_kind noise_kind(enum noise_source source);

/// What is drawn, and the hardware parameters that shape it: for help and reports.
const char *noise_drawn(enum noise_source source);
const char *noise_parameters(enum noise_source source);

/// "off", "all" or a list of words parted by commas, each at most once. USAGE names the word and
/// lists those there are.
NPU_MUST_USE npu_status noise_parse(const char *text, unsigned *sources);

#define NOISE_TEXT_BYTES 64

/// The opposite: "off", or the words in the order of the rows. Returns `out`.
const char *noise_text(unsigned sources, char out[NOISE_TEXT_BYTES]);

#endif
