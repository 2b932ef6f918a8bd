// SPDX-License-Identifier: Apache-2.0
// Steps of the back end that --skip can leave out: the rows of steps.def.
#ifndef NPUC_STEP_H
#define NPUC_STEP_H

#include <stdbool.h>

enum step_id {
#define STEP(name, level, eager, doc) STEP_##name,
#include "toolchain/npuc/steps.def"
    STEP_COUNT
};

struct step_desc {
    const char *name, *doc;
    int level;
    bool eager; // taken in eager programs too
};
extern const struct step_desc steps[STEP_COUNT];

int step_find(const char *name); // -1 when there is none

#endif
