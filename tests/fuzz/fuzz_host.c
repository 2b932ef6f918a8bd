// SPDX-License-Identifier: Apache-2.0
//
// Host models: any bytes are refused or give a model whose draws are durations.
//
// links: npu_noise npu_base

#include <stdlib.h>

#include "simulator/noise/host.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct host_model *m;
    npu_status st = host_model_parse((const char *)data, size, "fuzz.json", &m);
    if (!st) {
        struct host_run run;
        host_run_begin(m, (struct noise){.sources = 1U << NOISE_HOST, .seed = size}, 1, &run);
        uint64_t most = UINT64_C(1) << 60; // 1 s x 100 x 10^4, in picoseconds
        for (int c = 0; c < HOST_CLASS_COUNT; c++)
            for (uint64_t e = 0; e < 4; e++)
                if (host_launch_ps(&run, c, e) > most) abort();
        if (host_submit_ps(&run) + host_finish_ps(&run) > most) abort();
        for (int i = 0; i < host_model_nmeasured(m); i++)
            if (!(host_model_measured(m, i).cv >= 0)) abort();
        host_model_free(m);
    }
    npu_status_free(st);
    return 0;
}
