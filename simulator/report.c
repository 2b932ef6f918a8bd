// SPDX-License-Identifier: Apache-2.0
// The cycle report of the installed library: what npusim --report writes, of a session's device.
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <string.h>
#include <zlib.h>

#include "runtime/api.h"
#include "runtime/base/alloc.h"
#include "runtime/include/npu/simulator.h"
#include "simulator/device.h"
#include "simulator/view.h"

// Tensors of a role that the session's entry point uses; their infos in the arena.
static struct npu_tensor_info *tensors(const struct npu_session *s, enum npu_role role,
                                       struct arena *a, size_t **index, size_t *count,
                                       uint64_t *bytes) {
    const struct npu_program *program = npu_session_program(s);
    const size_t all = npu_program_tensor_count(program, role);
    struct npu_tensor_info *info = ARENA_ARRAY(a, struct npu_tensor_info, all + 1);
    *index = ARENA_ARRAY(a, size_t, all + 1);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (!npu_session_uses(s, role, i)) continue;
        npu_status_free(npu_program_tensor(program, role, i, &info[*count])); // it exists
        *bytes += info[*count].bytes;
        (*index)[(*count)++] = i;
    }
    return info;
}

// Outputs that can be read: a run that ended with a fault may have left some unwritten.
static void add_outputs(struct npu_session *s, const struct npu_tensor_info *info,
                        const size_t *index, size_t count, struct arena *a, struct trace_run *run) {
    struct trace_output *out = ARENA_ARRAY(a, struct trace_output, count + 1);
    run->output = out;
    for (size_t i = 0; i < count; i++) {
        void *data = arena_alloc(a, (size_t)info[i].bytes + 1);
        npu_status st =
            npu_session_read(s, NPU_OUTPUT, index[i], info[i].dtype, data, (size_t)info[i].bytes);
        if (!st)
            out[run->noutput++] =
                (struct trace_output){.name = info[i].name,
                                      .dtype = npu_dtype_name(info[i].dtype),
                                      .rank = info[i].rank,
                                      .shape = info[i].dims,
                                      .crc32 = (uint32_t)crc32_z(0, data, (size_t)info[i].bytes)};
        npu_status_free(st);
    }
}

static npu_status report(struct npu_session *s, struct sim_device *d, struct arena *a,
                         struct sim_view *v, struct str *text) {
    size_t *in_index, *out_index, nin, nout;
    struct sim_traffic traffic = {0};
    struct npu_tensor_info *in = tensors(s, NPU_INPUT, a, &in_index, &nin, &traffic.in_bytes);
    struct npu_tensor_info *out = tensors(s, NPU_OUTPUT, a, &out_index, &nout, &traffic.out_bytes);
    NPU_TRY(sim_view_init(v, npu_session_program(s), sim_device_hw(d), sim_device_totals(d),
                          &traffic, a));
    struct trace_input *inputs = ARENA_ARRAY(a, struct trace_input, nin + 1);
    for (size_t i = 0; i < nin; i++)
        inputs[i] = (struct trace_input){in[i].name, "given"};
    v->run.input = inputs;
    v->run.ninput = nin;
    if (sim_device_values(d)) add_outputs(s, out, out_index, nout, a, &v->run);
    return trace_report_text(&v->run, text);
}

npu_status npu_simulator_begin(struct npu_device *device) {
    struct sim_device *d = sim_device_of(device);
    if (!d) return npu_fail(USAGE, "device '%s' is not the simulator", device->ops->name);
    sim_device_begin(d, NULL);
    return NULL;
}

// What outlives a jump out of an allocation.
struct making {
    struct sim_view view;
    struct str text;
    json_malloc_t json_alloc; // of the program that we are a guest of
    json_free_t json_free;
};

static npu_status guarded(struct npu_session *s, struct sim_device *d, struct making *m) {
    struct arena *a = arena_try_new();
    if (!a) return npu_fail(NO_MEMORY, "report: out of memory");
    jmp_buf oom;
    npu_status st;
    if (setjmp(oom)) {
        st = npu_fail(NO_MEMORY, "report: out of memory");
    } else {
        arena_set_oom(a, &oom);
        st = report(s, d, a, &m->view, &m->text);
    }
    arena_free(a);
    return st;
}

npu_status npu_simulator_report(struct npu_session *session, char **json) {
    struct npu_device *device = npu_session_device(session);
    struct sim_device *d = sim_device_of(device);
    *json = NULL;
    if (!d) return npu_fail(USAGE, "device '%s' is not the simulator", device->ops->name);
    if (sim_device_totals(d)->jobs == 0)
        return npu_fail(USAGE, "the device has not run anything that could be reported");
    struct making *m = base_alloc(sizeof *m);
    if (!m) return npu_fail(NO_MEMORY, "report: out of memory");
    json_get_alloc_funcs(&m->json_alloc, &m->json_free);
    npu_status st = guarded(session, d, m);
    json_set_alloc_funcs(m->json_alloc, m->json_free);
    sim_view_deinit(&m->view);
    if (!st)
        *json = m->text.data;
    else
        str_free(&m->text);
    base_free(m);
    return st;
}

void npu_simulator_report_free(char *json) {
    base_free(json);
}
