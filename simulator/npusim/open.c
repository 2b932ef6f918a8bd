// SPDX-License-Identifier: Apache-2.0
// A program on a device of its own, with its inputs.
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/device.h"
#include "simulator/noise/host.h"
#include "simulator/npusim/runs.h"

// The program's machine with --set applied, as text for the device.
static npu_status open_device(struct npusim *s) {
    struct hw hw = s->program->machine;
    struct str yaml = {0};
    for (int i = 0; i < s->o->set.n; i++)
        NPU_TRY(hw_set_text(&hw, s->o->set.item[i].value, HW_SET_TIMING));
    NPU_TRY(noise_check(&hw));
    hw_print_yaml(&hw, &yaml);
    npu_status st = str_status(&yaml);
    const struct npu_simulator_config config = {.machine = str_text(&yaml),
                                                .no_data = s->o->no_data};
    if (!st) st = npu_device_open(npu_simulator_ops(), &config, &s->device);
    str_free(&yaml);
    return st;
}

// The host that the options ask for.
static npu_status open_host(struct npusim *s) {
    const struct npusim_options *o = s->o;
    const struct npu_program_image *image = npu_program_image_of(s->program);
    const int entry = container_find_entry(image, o->entry);
    const bool eager = entry >= 0 && image->entries[entry].nlaunches,
               asked = eager || o->versus || (o->noise >> NOISE_HOST & 1U);
    if (o->host && strcmp(o->host, "none") == 0) return NULL;
    if (o->host)
        NPU_TRY_NOTE(host_model_load(o->host, &s->host), "--host %s", o->host);
    else if (asked)
        NPU_TRY(host_model_default(&s->host));
    sim_device_set_host(sim_device_of(s->device), s->host);
    return NULL;
}

npu_status npusim_open(struct npusim *s, const char *path) {
    NPU_TRY(npu_program_load(path, &s->program));
    NPU_TRY(open_device(s));
    NPU_TRY(open_host(s));
    NPU_TRY(npu_session_new(s->device, s->program, &s->session));
    if (s->o->entry) NPU_TRY(npu_session_set_entry(s->session, s->o->entry));
    NPU_TRY(npusim_tensors_list(s));
    NPU_TRY(npusim_set_scalars(s));
    return npusim_set_inputs(s);
}

void npusim_close(struct npusim *s) {
    npu_session_free(s->session);
    npu_device_close(s->device);
    npu_program_free(s->program);
    host_model_free(s->host);
    *s = (struct npusim){0};
}
