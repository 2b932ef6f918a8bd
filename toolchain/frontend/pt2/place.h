// SPDX-License-Identifier: Apache-2.0
//
// Inside frontend/pt2: where in the user's program a node comes from.
#ifndef NPU_FRONTEND_PT2_PLACE_H
#define NPU_FRONTEND_PT2_PLACE_H

#include <jansson.h>

#include "runtime/base/arena.h"

// "layers.7.mlp.Wi, modeling.py:312" out of a node's metadata: the module's path, then the
// innermost line that is not torch's own. Either may be missing; NULL without both. Of files only
// the name is taken, never a folder of the machine that exported.
const char *place_of(struct arena *a, const json_t *metadata);

#endif
