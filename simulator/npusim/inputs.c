// SPDX-License-Identifier: Apache-2.0
// Inputs: from files, converted by the runtime (floats to nearest even), else from the seed. A
// drawn element depends on the seed, the tensor's name and its position alone: floats are uniform
// in [-1, 1), integers that index something are uniform in its range, other integers and booleans
// are 1.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/diag.h"
#include "runtime/base/str.h"
#include "runtime/base/text.h"
#include "simulator/npusim/tensors.h"

// Into the session, and kept when layers are to be compared.
static npu_status write_values(struct npusim *s, enum npu_role role, struct npusim_tensor *t,
                               enum npu_dtype dtype, const void *values, size_t bytes) {
    NPU_TRY(npu_session_write(s->session, role, t->index, dtype, values, bytes));
    if (!s->o->check_layers) return NULL;
    void *own = arena_alloc(s->a, (size_t)npu_dtype_bytes(t->info.dtype, t->info.elements));
    t->values = own;
    return npu_convert(t->info.dtype, own, dtype, values, t->info.elements);
}

static npu_status write_file(struct npusim *s, enum npu_role role, struct npusim_tensor *t,
                             const char *path) {
    struct tensor_data file;
    t->source = path;
    NPU_TRY(npusim_read_file(s->a, path, &file));
    npu_status st = npusim_check_shape(t, &file);
    if (!st) st = write_values(s, role, t, (enum npu_dtype)file.dtype, file.data, file.size_bytes);
    return st ? npu_note(st, "%s for '%s'", path, t->info.name) : NULL;
}

// Finalizer of splitmix64: a bijection that spreads every bit.
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void say(const struct npusim *s, const struct npusim_tensor *t) {
    struct str name = {0};
    if (s->o->quiet) return;
    str_shown(&name, t->info.name);
    fprintf(stderr, "npusim: input '%s' is not given: %s\n", str_text(&name), t->source);
    str_free(&name);
}

static npu_status draw(struct npusim *s, struct npusim_tensor *t) {
    const uint64_t n = t->info.elements;
    const int64_t limit = t->info.index_limit;
    uint64_t key = mix(s->o->seed);
    for (const char *c = t->info.name; *c; c++)
        key = mix(key ^ (uint8_t)*c);
    if (isa_dtype_is_float((int)t->info.dtype)) {
        float *v = ARENA_ARRAY(s->a, float, n);
        for (uint64_t i = 0; i < n; i++)
            v[i] = (float)(int32_t)(mix(key + i) >> 40) / 8388608.0f - 1.0f;
        t->source = arena_printf(s->a, "drawn from -1 to 1, seed %" PRIu64, s->o->seed);
        say(s, t);
        return write_values(s, NPU_INPUT, t, NPU_F32, v, n * sizeof *v);
    }
    int64_t *v = ARENA_ARRAY(s->a, int64_t, n);
    for (uint64_t i = 0; i < n; i++)
        v[i] = limit > 0 ? (int64_t)(mix(key + i) % (uint64_t)limit) : 1;
    t->source = limit > 0 ? arena_printf(s->a, "indices drawn from 0 to %" PRId64 ", seed %" PRIu64,
                                         limit - 1, s->o->seed)
                          : "all ones";
    say(s, t);
    return write_values(s, NPU_INPUT, t, NPU_I64, v, n * sizeof *v);
}

// --input NAME=FILE: inputs first, then state.
static npu_status set_named(struct npusim *s, const struct npusim_pair *p, bool *given,
                            bool *given_state) {
    size_t i;
    enum npu_role role = NPU_INPUT;
    npu_status st = npusim_tensors_find(&s->in, "input", p->name, &i);
    if (st) {
        for (i = 0; i < s->state.n && strcmp(s->state.item[i].info.name, p->name) != 0;)
            i++;
        if (i == s->state.n) return st;
        npu_status_free(st);
        role = NPU_STATE;
        given = given_state;
    }
    struct npusim_tensor *t = role == NPU_INPUT ? &s->in.item[i] : &s->state.item[i];
    if (given[i])
        return npu_fail(USAGE, "--input %s=%s: '%s' is given twice, but it takes one file", p->name,
                        p->value, t->info.name);
    given[i] = true;
    return write_file(s, role, t, p->value);
}

// What states are before the run, kept when layers are to be compared.
static npu_status keep_states(struct npusim *s) {
    for (size_t i = 0; i < s->state.n && s->o->check_layers; i++) {
        struct npusim_tensor *t = &s->state.item[i];
        const size_t bytes = (size_t)npu_dtype_bytes(t->info.dtype, t->info.elements);
        void *own = arena_alloc(s->a, bytes ? bytes : 1);
        NPU_TRY(npu_session_read(s->session, NPU_STATE, t->index, t->info.dtype, own, bytes));
        t->values = own;
    }
    return NULL;
}

npu_status npusim_set_inputs(struct npusim *s) {
    struct diag faults = {0};
    bool *given = ARENA_ARRAY(s->a, bool, s->in.n),
         *given_state = ARENA_ARRAY(s->a, bool, s->state.n);
    if (s->o->inputs) {
        NPU_TRY(npusim_tensors_distinct(&s->in, "input"));
        NPU_TRY(npusim_check_folder("inputs", s->o->inputs));
    }
    for (int i = 0; i < s->o->input.n; i++)
        diag_add(&faults, set_named(s, &s->o->input.item[i], given, given_state));
    size_t found = 0;
    for (size_t i = 0; i < s->in.n; i++) {
        if (given[i]) continue;
        struct npusim_tensor *t = &s->in.item[i];
        const char *path =
            s->o->inputs ? npusim_find_file(s->a, s->o->inputs, t, i, "in_", NULL, "input") : NULL;
        found += path != NULL;
        diag_add(&faults, path ? write_file(s, NPU_INPUT, t, path) : draw(s, t));
    }
    if (s->o->inputs && !found && s->in.n && !faults.count)
        diag_add(
            &faults,
            npu_fail(
                USAGE,
                "--inputs %s: no file in it belongs to an input (%s.npy, in_%s.npy, input_0.pb)",
                s->o->inputs, s->in.item[0].file, s->in.item[0].file));
    diag_add(&faults, keep_states(s));
    return diag_finish(&faults);
}

npu_status npusim_set_scalars(struct npusim *s) {
    for (int i = 0; i < s->o->scalar.n; i++) {
        const struct npusim_pair *p = &s->o->scalar.item[i];
        uint64_t index;
        int64_t value;
        if (!text_parse_u64(p->name, &index) || index > 15 || !text_parse_i64(p->value, &value))
            return npu_fail(USAGE,
                            "--scalar %s=%s: expected K=VALUE with K from 0 to 15 and an integer",
                            p->name, p->value);
        NPU_TRY(npu_session_set_scalar(s->session, (unsigned)index, (uint64_t)value));
    }
    return NULL;
}
