// SPDX-License-Identifier: Apache-2.0
// Outputs: read back, written as .npy, compared in f64.
//
// Integers agree when they are equal, unless tolerances were given.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/alloc.h"
#include "runtime/base/str.h"
#include "simulator/npusim/compare.h"
#include "simulator/npusim/tensors.h"

npu_status npusim_read_output(struct npusim *s, const struct npusim_tensor *t,
                              struct tensor_data *out) {
    const size_t bytes = (size_t)npu_dtype_bytes(t->info.dtype, t->info.elements);
    void *data = arena_alloc(s->a, bytes ? bytes : 1);
    *out = (struct tensor_data){.dtype = (enum isa_dtype)t->info.dtype,
                                .rank = t->info.rank,
                                .data = data,
                                .size_bytes = bytes};
    memcpy(out->dims, t->info.dims, sizeof out->dims);
    npu_status st =
        npu_session_read(s->session, t->info.role, t->index, t->info.dtype, data, bytes);
    return st ? npu_note(st, "output '%s'", t->info.name) : NULL;
}

npu_status npusim_check_outputs(struct npusim *s) {
    size_t most = 1;
    for (size_t i = 0; i < s->out.n; i++)
        if (s->out.item[i].info.bytes > most) most = (size_t)s->out.item[i].info.bytes;
    void *data = base_alloc(most);
    npu_status st = data ? NULL : npu_fail(NO_MEMORY, "an output of %zu bytes", most);
    for (size_t i = 0; i < s->out.n && !st; i++) {
        const struct npusim_tensor *t = &s->out.item[i];
        st = npu_session_read(s->session, NPU_OUTPUT, t->index, t->info.dtype, data,
                              (size_t)npu_dtype_bytes(t->info.dtype, t->info.elements));
        if (st) st = npu_note(st, "output '%s'", t->info.name);
    }
    base_free(data);
    return st;
}

// Bytes of a file name that leave room for .npy and for the name of a file that is being written.
enum { LONGEST_NAME = 240 };

// ---- writing -----------------------------------------------------------------------------------

// Types that .npy has no name for are written in the next that holds their values.
static enum npu_dtype file_type(enum npu_dtype t) {
    if (t == NPU_F8E4M3 || t == NPU_F8E5M2) return NPU_F32;
    return t == NPU_I4 ? NPU_I8 : t == NPU_U4 ? NPU_U8 : t;
}

static npu_status write_one(struct npusim *s, const struct npusim_tensor *t, const char *path) {
    struct tensor_data out;
    const enum npu_dtype type = file_type(t->info.dtype);
    NPU_TRY(npusim_read_output(s, t, &out));
    if (type != t->info.dtype) {
        const size_t bytes = (size_t)npu_dtype_bytes(type, t->info.elements);
        void *wide = arena_alloc(s->a, bytes);
        NPU_TRY(npu_convert(type, wide, t->info.dtype, out.data, t->info.elements));
        out.dtype = (enum isa_dtype)type;
        out.data = wide;
        out.size_bytes = bytes;
    }
    return npy_write(path, &out);
}

// An output by name or position, else a state by name.
static npu_status find(const struct npusim *s, const char *option, const char *name,
                       struct npusim_tensor **out) {
    size_t k;
    npu_status st = npusim_tensors_find(&s->out, option, name, &k);
    *out = st ? NULL : &s->out.item[k];
    for (k = 0; !*out && k < s->state.n; k++)
        if (strcmp(s->state.item[k].info.name, name) == 0) *out = &s->state.item[k];
    if (!*out) return st;
    npu_status_free(st);
    return NULL;
}

npu_status npusim_outputs_find(struct npusim *s) {
    struct npusim_tensor *t, *other;
    for (int i = 0; i < s->o->output.n; i++) {
        const struct npusim_pair *p = &s->o->output.item[i];
        NPU_TRY(find(s, "output", p->name, &t));
        for (int k = 0; k < i; k++) {
            NPU_TRY(find(s, "output", s->o->output.item[k].name, &other));
            if (t == other)
                return npu_fail(USAGE, "--output %s=%s: '%s' is given twice, but it takes one file",
                                p->name, p->value, t->info.name);
        }
    }
    for (int i = 0; i < s->o->expect.n; i++)
        NPU_TRY(find(s, "expect", s->o->expect.item[i].name, &t));
    if (s->o->outputs) NPU_TRY(npusim_tensors_distinct(&s->out, "output"));
    for (size_t i = 0; s->o->outputs && i < s->out.n; i++)
        if (strlen(s->out.item[i].file) > LONGEST_NAME)
            return npu_fail(USAGE,
                            "--outputs %s: the name of output %zu has %zu bytes, too many for that "
                            "of a file; --output %zu=FILE.npy names one",
                            s->o->outputs, i, strlen(s->out.item[i].file), i);
    if (s->o->expects) NPU_TRY(npusim_tensors_distinct(&s->out, "expect"));
    if (!s->o->expects) return NULL;
    NPU_TRY(npusim_check_folder("expects", s->o->expects));
    bool any = s->o->expect.n > 0;
    for (size_t i = 0; i < s->out.n; i++) {
        t = &s->out.item[i];
        t->expected = npusim_find_file(s->a, s->o->expects, t, i, "out_", s->o->tag, "output");
        any |= t->expected != NULL;
    }
    if (any) return NULL;
    return npu_fail(USAGE, "--expects %s: no file in it belongs to an output (tag '%s')",
                    s->o->expects, s->o->tag);
}

const char *npusim_output_path(const struct npusim *s, const struct npusim_tensor *t) {
    return arena_printf(s->a, "%s/%s.npy", s->o->outputs, t->file);
}

npu_status npusim_write_outputs(struct npusim *s) {
    for (int i = 0; i < s->o->output.n; i++) {
        struct npusim_tensor *t;
        NPU_TRY(find(s, "output", s->o->output.item[i].name, &t));
        NPU_TRY(write_one(s, t, s->o->output.item[i].value));
    }
    if (!s->o->outputs) return NULL;
    if (mkdir(s->o->outputs, 0777) != 0 && errno != EEXIST)
        return npu_fail(IO, "--outputs %s: %s", s->o->outputs, strerror(errno));
    for (size_t i = 0; i < s->out.n; i++)
        NPU_TRY(write_one(s, &s->out.item[i], npusim_output_path(s, &s->out.item[i])));
    return NULL;
}

// ---- comparing ---------------------------------------------------------------------------------

// Tolerances when none were asked for, by the output's type; the absolute one times the largest
// expected magnitude.
static void default_tolerance(enum npu_dtype t, const double *want, uint64_t n, double *rtol,
                              double *atol) {
    const double range = npusim_range(want, n);
    *rtol = t == NPU_F16 ? 4e-3 : t == NPU_BF16 ? 3e-2 : t == NPU_F32 ? 1e-4 : 0;
    *atol = (t == NPU_F16 ? 4e-3 : t == NPU_BF16 ? 3e-2 : t == NPU_F32 ? 2e-5 : 0) * range;
}

// One output against one file; the line goes to `line`. *differs is set, never cleared.
static npu_status compare_one(struct npusim *s, const struct npusim_tensor *t, const char *path,
                              struct str *line, bool *differs) {
    struct tensor_data file, out;
    double *got, *want, rtol = s->o->rtol, atol = s->o->atol;
    NPU_TRY(npusim_read_file(s->a, path, &file));
    NPU_TRY_NOTE(npusim_check_shape(t, &file), "%s for '%s'", path, t->info.name);
    NPU_TRY(npusim_read_output(s, t, &out));
    NPU_TRY_NOTE(npusim_to_f64(s->a, (enum npu_dtype)file.dtype, file.data, t->info.elements,
                               &want),
                 "%s", path);
    NPU_TRY(npusim_to_f64(s->a, t->info.dtype, out.data, t->info.elements, &got));
    if (!s->o->tolerance) default_tolerance(t->info.dtype, want, t->info.elements, &rtol, &atol);
    const struct npusim_comparison c = npusim_compare_f64(got, want, t->info.elements, rtol, atol);
    const bool far = s->o->cosine && !(c.cosine >= s->o->min_cosine);
    str_shown(line, t->info.name);
    str_printf(line, ": %s", c.wrong || far ? "differs" : "agrees");
    if (c.wrong)
        str_printf(line, ", %" PRIu64 " of %" PRIu64 " elements", c.wrong, t->info.elements);
    if (far) str_printf(line, ", cosine below %g", s->o->min_cosine);
    if (t->info.elements) {
        str_puts(line, "; worst ");
        npusim_print_index(line, t->info.dims, t->info.rank, c.worst);
        str_printf(line, " is %.9g, expected %.9g (allowed %.3g)", got[c.worst], want[c.worst],
                   atol + rtol * fabs(want[c.worst]));
    }
    str_printf(line, "; cosine %.9f, SNR %.1f dB\n", c.cosine, c.snr_db);
    *differs |= c.wrong || far;
    return NULL;
}

npu_status npusim_compare(struct npusim *s) {
    struct str line = {0};
    bool differs = false;
    npu_status st = NULL;
    bool *named = ARENA_ARRAY(s->a, bool, s->out.n ? s->out.n : 1);
    for (int i = 0; i < s->o->expect.n && !st; i++) {
        struct npusim_tensor *t = NULL;
        st = find(s, "expect", s->o->expect.item[i].name, &t);
        if (st) break;
        if (t->info.role == NPU_OUTPUT) named[t - s->out.item] = true;
        st = compare_one(s, t, s->o->expect.item[i].value, &line, &differs);
    }
    for (size_t i = 0; s->o->expects && i < s->out.n && !st; i++) {
        const char *path = named[i] ? NULL : s->out.item[i].expected;
        if (path) {
            st = compare_one(s, &s->out.item[i], path, &line, &differs);
        } else if (!named[i]) {
            str_shown(&line, s->out.item[i].info.name);
            str_printf(&line, ": not compared, %s has no file for it\n", s->o->expects);
        }
    }
    if (!st) st = str_status(&line);
    if (!st && (differs || !s->o->quiet)) fputs(str_text(&line), stdout);
    str_free(&line);
    if (!st && differs) st = npu_fail(DIFFER, "outputs differ from what was expected");
    return st;
}
