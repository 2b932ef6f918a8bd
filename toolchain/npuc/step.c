// SPDX-License-Identifier: Apache-2.0
// The rows of steps.def as a table.
#include "toolchain/npuc/step.h"

#include <string.h>

#include "toolchain/npuc/options.h"

const struct step_desc steps[STEP_COUNT] = {
#define STEP(name, level, eager, doc) {#name, doc, level, eager},
#include "toolchain/npuc/steps.def"
};

int step_find(const char *name) {
    for (int i = 0; i < STEP_COUNT; i++)
        if (!strcmp(steps[i].name, name)) return i;
    return -1;
}

bool npuc_step(const struct npuc_options *o, enum step_id id) {
    return steps[id].level <= o->pass.level && !o->skip_step[id] &&
           (steps[id].eager || !o->pass.eager);
}
