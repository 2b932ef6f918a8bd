// SPDX-License-Identifier: Apache-2.0
// --versus: the same runs of another program, on a device of its own.
#include <string.h>

#include "simulator/npusim/runs.h"

// File name without its folder; the whole path when the other program's is the same.
static const char *heading(const char *path, const char *other) {
    const char *name = strrchr(path, '/'), *second = strrchr(other, '/');
    name = name ? name + 1 : path;
    second = second ? second + 1 : other;
    return strcmp(name, second) ? name : path;
}

// Both are numbered alike and drawn with one seed: what their draws share, they share.
static npu_status compare(const struct npusim *s, struct npusim_runs *runs,
                          const struct npusim_runs *other) {
    runs->view.versus = &other->view;
    const bool related = s->host && (s->o->noise >> NOISE_HOST & 1U);
    return noise_ratios(other->view.time_us, runs->view.time_us, runs->n, related, s->o->seed,
                        &runs->view.mean_ratio, &runs->view.std_ratio);
}

npu_status npusim_versus_open(const struct npusim *s, struct npusim *other) {
    *other = (struct npusim){.o = s->o, .a = s->a};
    NPU_TRY_NOTE(npusim_open(other, s->o->versus), "--versus %s", s->o->versus);
    return NULL;
}

npu_status npusim_versus(struct npusim *s, struct npusim *other, struct npusim_runs *runs,
                         struct npusim_runs *other_runs) {
    const char *path = s->o->versus;
    sim_device_begin(sim_device_of(other->device), NULL);
    NPU_TRY_NOTE(npu_session_run(other->session, NULL), "running %s", path);
    NPU_TRY_NOTE(npusim_runs_take(other, other_runs), "runs of %s", path);
    runs->view.program = heading(s->o->program, path);
    other_runs->view.program = heading(path, s->o->program);
    runs->host_seconds += other_runs->host_seconds;
    return compare(s, runs, other_runs);
}
