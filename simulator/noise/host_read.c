// SPDX-License-Identifier: Apache-2.0
//
// Reads a host model (JSON, docs/jitter.md "The model file"). Read strictly: an unknown, missing or
// repeated key, a value of another type or out of its range is BAD_INPUT "FILE: KEY: ...".

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "simulator/noise/host_model.h"

#define FORMAT "npu-host-model"
enum { VERSION = 1, MAX_QUANTILES = 2001, MAX_QUEUE = 1 << 20 };
// Of one dispatch, level, slow factor: their product in picoseconds stays below 2^63.
static const double max_us = 1e6, max_level = 100, max_factor = 1e4;
static const double max_run_us = 1e9, max_phi = 0.999;

struct reader {
    struct arena *arena;
    const char *where; // the file
};

// A value and the keys that lead to it.
struct place {
    const json_t *value;
    const char *path;
};

// ---- members ---------------------------------------------------------------------------------

static const char *type_name(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a truth value";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

static npu_status wrong_type(const struct reader *r, struct place p, const char *expected) {
    return npu_fail(BAD_INPUT, "%s: %s is %s, expected %s", r->where, p.path, type_name(p.value),
                    expected);
}

// `known`: words parted by blanks; those with a trailing '?' may be missing.
static npu_status check_keys(const struct reader *r, struct place object, const char *known) {
    if (!json_is_object(object.value)) return wrong_type(r, object, "an object");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object.value, key, value) {
        size_t n = strlen(key);
        const char *at = known;
        bool found = false;
        for (; !found && *at; at += strspn(at, " ")) {
            size_t word = strcspn(at, " ");
            found = n + (at[word - 1] == '?') == word && strncmp(at, key, n) == 0;
            at += word;
        }
        if (!found)
            return npu_fail(BAD_INPUT,
                            "%s: %s has an unknown key '%s'; known are: %s (?: may be "
                            "missing)",
                            r->where, object.path, key, known);
    }
    return NULL;
}

// A member; .value is NULL when it is missing and may be.
static npu_status member(const struct reader *r, struct place object, const char *key, bool needed,
                         struct place *out) {
    const char *dot = strcmp(object.path, "the file") == 0 ? "" : ".";
    out->value = json_object_get(object.value, key);
    out->path = *dot ? arena_printf(r->arena, "%s.%s", object.path, key) : key;
    if (out->value || !needed) return NULL;
    return npu_fail(BAD_INPUT, "%s: %s has no key '%s'", r->where, object.path, key);
}

static npu_status check_number(const struct reader *r, struct place p, double low, double high) {
    if (!json_is_number(p.value)) return wrong_type(r, p, "a number");
    double v = json_number_value(p.value);
    if (v >= low && v <= high) return NULL;
    return npu_fail(BAD_INPUT, "%s: %s is %g, expected %g to %g", r->where, p.path, v, low, high);
}

static npu_status number(const struct reader *r, struct place object, const char *key, bool needed,
                         double low, double high, double *out) {
    struct place p;
    NPU_TRY(member(r, object, key, needed, &p));
    if (!p.value) return NULL;
    NPU_TRY(check_number(r, p, low, high));
    *out = json_number_value(p.value);
    return NULL;
}

static npu_status text(const struct reader *r, struct place object, const char *key, bool needed,
                       const char **out) {
    struct place p;
    NPU_TRY(member(r, object, key, needed, &p));
    if (!p.value) return NULL;
    if (!json_is_string(p.value)) return wrong_type(r, p, "a string");
    *out = arena_strdup(r->arena, json_string_value(p.value));
    return NULL;
}

// ---- tables and processes --------------------------------------------------------------------

// A quantile function. Every value is above `less`, which is taken from it.
static npu_status table(const struct reader *r, struct place object, const char *key, double less,
                        double most, struct host_table *out) {
    struct place list;
    NPU_TRY(member(r, object, key, true, &list));
    if (!json_is_array(list.value)) return wrong_type(r, list, "a list of quantiles");
    size_t n = json_array_size(list.value);
    if (n < 2 || n > MAX_QUANTILES)
        return npu_fail(BAD_INPUT, "%s: %s has %zu values, expected 2 to %d", r->where, list.path,
                        n, MAX_QUANTILES);
    double *q = ARENA_ARRAY(r->arena, double, n), before = 0;
    for (size_t i = 0; i < n; i++) {
        struct place p = {json_array_get(list.value, i),
                          arena_printf(r->arena, "%s[%zu]", list.path, i)};
        NPU_TRY(check_number(r, p, 0, most));
        q[i] = json_number_value(p.value) - less;
        if (!(q[i] > 1e-6))
            return npu_fail(BAD_INPUT, "%s: %s is %g, expected more than %g", r->where, p.path,
                            q[i] + less, less + 1e-6);
        if (q[i] < before)
            return npu_fail(BAD_INPUT,
                            "%s: %s is %g, below the one before, %g; quantiles do not "
                            "decrease",
                            r->where, p.path, q[i] + less, before + less);
        before = q[i];
    }
    *out = (struct host_table){.q = q, .n = (int)n};
    return NULL;
}

// The 0.999 quantile beside a table, where one is given.
static npu_status tail(const struct reader *r, struct place object, double less,
                       struct host_table *t) {
    double p999 = 0;
    NPU_TRY(number(r, object, "p999_us", false, 0, max_run_us, &p999));
    if (!(p999 > 0)) return NULL;
    NPU_ASSERT(t->q);
    p999 -= less;
    int above = (int)ceil(0.999 * (t->n - 1));
    double low = t->q[above - 1], high = t->q[above];
    if (p999 < low || p999 > high)
        return npu_fail(BAD_INPUT, "%s: %s.p999_us is %g, expected %g to %g as the quantiles say",
                        r->where, object.path, p999 + less, low + less, high + less);
    t->p999 = p999;
    return NULL;
}

static npu_status process(const struct reader *r, struct place object, struct host_process *out) {
    struct place list;
    double sum = 0;
    NPU_TRY(member(r, object, "components", true, &list));
    if (!json_is_array(list.value)) return wrong_type(r, list, "a list of components");
    size_t n = json_array_size(list.value);
    if (n > HOST_MAX_COMPONENTS)
        return npu_fail(BAD_INPUT, "%s: %s has %zu entries, at most %d", r->where, list.path, n,
                        HOST_MAX_COMPONENTS);
    *out = (struct host_process){.n = (int)n};
    for (size_t i = 0; i < n; i++) {
        struct place p = {json_array_get(list.value, i),
                          arena_printf(r->arena, "%s[%zu]", list.path, i)};
        struct host_component *c = &out->component[i];
        NPU_TRY(check_keys(r, p, "weight phi"));
        NPU_TRY(number(r, p, "weight", true, 0, 1, &c->weight));
        NPU_TRY(number(r, p, "phi", true, 0, max_phi, &c->phi));
        sum += c->weight;
    }
    if (sum > 1 + 1e-9)
        return npu_fail(BAD_INPUT, "%s: the weights of %s add up to %g, expected at most 1",
                        r->where, list.path, sum);
    return NULL;
}

// ---- parts of the file -----------------------------------------------------------------------

// What statistics say of a table beside it; for readers, not used.
static npu_status moments(const struct reader *r, struct place object, bool needed, double *mean,
                          double *std) {
    NPU_TRY(number(r, object, "mean_us", needed, 0, max_run_us, mean));
    return number(r, object, "std_us", needed, 0, max_run_us, std);
}

static npu_status provenance(const struct reader *r, struct place root, struct host_model *m) {
    struct place p;
    const char *device = "", *framework = "", *host = "", *method = "";
    NPU_TRY(member(r, root, "provenance", true, &p));
    NPU_TRY(check_keys(r, p, "device framework host method?"));
    NPU_TRY(text(r, p, "device", true, &device));
    NPU_TRY(text(r, p, "framework", true, &framework));
    NPU_TRY(text(r, p, "host", true, &host));
    NPU_TRY(text(r, p, "method", false, &method));
    m->source = arena_printf(r->arena, "%s, %s, %s", device, framework, host);
    return NULL;
}

static const char *const class_text[] = {
#define HOST_CLASS(NAME, text, kin, view, meaning) text,
#include "simulator/noise/host_class.def"
};
static const enum host_class class_kin[] = {
#define HOST_CLASS(NAME, text, kin, view, meaning) HOST_##kin,
#include "simulator/noise/host_class.def"
};

static npu_status dispatch(const struct reader *r, struct place root, struct host_model *m) {
    struct place all;
    const char *known = class_text[0];
    NPU_TRY(member(r, root, "dispatch", true, &all));
    for (int c = 1; c < HOST_CLASS_COUNT; c++)
        known = arena_printf(r->arena, "%s %s", known, class_text[c]);
    NPU_TRY(check_keys(r, all, known));
    for (int c = 0; c < HOST_CLASS_COUNT; c++) {
        struct place p;
        double unused;
        NPU_TRY(member(r, all, class_text[c], class_kin[c] == (enum host_class)c, &p));
        if (!p.value) continue;
        NPU_TRY(check_keys(r, p, "calls? mean_us? std_us? p999_us? quantiles_us"));
        NPU_TRY(number(r, p, "calls", false, 1, 1e12, &unused));
        NPU_TRY(moments(r, p, false, &unused, &unused));
        NPU_TRY(table(r, p, "quantiles_us", m->timer_us, max_us, &m->fast[c]));
        NPU_TRY(tail(r, p, m->timer_us, &m->fast[c]));
    }
    for (int c = 0; c < HOST_CLASS_COUNT; c++) {
        enum host_class kin = (enum host_class)c;
        while (!m->fast[kin].q)
            kin = class_kin[kin];
        m->fast[c] = m->fast[kin];
    }
    return NULL;
}

static npu_status slow(const struct reader *r, struct place root, struct host_model *m) {
    struct place p;
    const char *unused;
    NPU_TRY(member(r, root, "slow", true, &p));
    NPU_TRY(check_keys(r, p, "fitted_on? level quantiles components"));
    NPU_TRY(text(r, p, "fitted_on", false, &unused));
    NPU_TRY(number(r, p, "level", true, 1 / max_level, max_level, &m->level));
    NPU_TRY(table(r, p, "quantiles", 0, max_factor, &m->slow));
    return process(r, p, &m->slow_process);
}

static npu_status compiled(const struct reader *r, struct place root, struct host_model *m) {
    struct place p;
    const char *unused;
    NPU_TRY(member(r, root, "compiled", true, &p));
    NPU_TRY(check_keys(r, p, "fitted_on? quantiles_us submit_share components"));
    NPU_TRY(text(r, p, "fitted_on", false, &unused));
    NPU_TRY(table(r, p, "quantiles_us", 0, max_us, &m->compiled));
    NPU_TRY(number(r, p, "submit_share", true, 0, 1, &m->submit_share));
    return process(r, p, &m->compiled_process);
}

// A whole inference: kept for reports; its calls and correlation are there for the fit.
static npu_status measured(const struct reader *r, struct place p, struct host_measured *out) {
    double unused;
    struct place list;
    struct host_table t = {0};
    NPU_TRY(check_keys(r, p,
                       "model mode input? runs? mean_us std_us p999_us? launches? calls? "
                       "autocorrelation? quantiles_us"));
    NPU_TRY(text(r, p, "model", true, &out->model));
    NPU_TRY(text(r, p, "mode", true, &out->mode));
    NPU_TRY(moments(r, p, true, &out->mean_us, &out->std_us));
    if (!(out->mean_us > 0))
        return npu_fail(BAD_INPUT, "%s: %s.mean_us is 0, expected more", r->where, p.path);
    out->cv = out->std_us / out->mean_us;
    NPU_TRY(number(r, p, "runs", false, 1, 1e12, &unused));
    NPU_TRY(number(r, p, "launches", false, 0, 1e9, &unused));
    NPU_TRY(member(r, p, "autocorrelation", false, &list));
    if (list.value && !json_is_array(list.value)) return wrong_type(r, list, "a list");
    NPU_TRY(member(r, p, "calls", false, &list));
    if (list.value && !json_is_object(list.value)) return wrong_type(r, list, "an object");
    NPU_TRY(table(r, p, "quantiles_us", 0, max_run_us, &t));
    NPU_TRY(tail(r, p, 0, &t));
    out->quantiles_us = t.q;
    out->nquantiles = t.n;
    return NULL;
}

static npu_status runs(const struct reader *r, struct place root, struct host_model *m) {
    struct place list;
    NPU_TRY(member(r, root, "runs", false, &list));
    if (!list.value) return NULL;
    if (!json_is_array(list.value)) return wrong_type(r, list, "a list of measured inferences");
    size_t n = json_array_size(list.value);
    m->measured = ARENA_ARRAY(r->arena, struct host_measured, n);
    m->nmeasured = (int)n;
    for (size_t i = 0; i < n; i++) {
        struct place p = {json_array_get(list.value, i), arena_printf(r->arena, "runs[%zu]", i)};
        NPU_TRY(measured(r, p, &m->measured[i]));
    }
    return NULL;
}

static npu_status read_model(const struct reader *r, const json_t *json, struct host_model *m) {
    struct place root = {json, "the file"};
    const char *format = "";
    double version = 0, queue = 0;
    NPU_TRY(check_keys(r, root,
                       "format version provenance queue timer_us? dispatch slow compiled "
                       "runs?"));
    NPU_TRY(text(r, root, "format", true, &format));
    if (strcmp(format, FORMAT) != 0)
        return npu_fail(BAD_INPUT, "%s: format is '%s', expected '%s'", r->where, format, FORMAT);
    NPU_TRY(number(r, root, "version", true, 0, 1e9, &version));
    if (version != VERSION)
        return npu_fail(BAD_INPUT, "%s: version is %g, expected %d", r->where, version, VERSION);
    NPU_TRY(number(r, root, "queue", true, 1, MAX_QUEUE, &queue));
    if (queue != floor(queue))
        return npu_fail(BAD_INPUT, "%s: queue is %g, expected a whole number", r->where, queue);
    m->queue = (uint32_t)queue;
    NPU_TRY(number(r, root, "timer_us", false, 0, max_us, &m->timer_us));
    NPU_TRY(provenance(r, root, m));
    NPU_TRY(dispatch(r, root, m));
    NPU_TRY(slow(r, root, m));
    NPU_TRY(compiled(r, root, m));
    return runs(r, root, m);
}

// ---- entry points ----------------------------------------------------------------------------

// The library does not survive an allocation that fails while it reads (its scanner writes on, or
// asserts). So it takes memory of an arena, which leaves by a jump instead, and gives nothing back.
static struct arena *texts;

static void *json_take(size_t size) {
    return arena_alloc(texts, size);
}

static void json_keep(void *block) {
    (void)block;
}

static npu_status parse(const char *json, size_t size, const char *where, struct host_model **out) {
    json_error_t error;
    json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return npu_fail(BAD_INPUT, "%s:%d:%d: %s; expected JSON", where, error.line, error.column,
                        error.text);
    struct arena *a = arena_new();
    struct reader r = {a, where};
    struct host_model *m = ARENA_NEW(a, struct host_model);
    m->arena = a;
    npu_status st = read_model(&r, root, m);
    if (st)
        arena_free(a);
    else
        *out = m;
    return st;
}

npu_status host_model_parse(const char *json, size_t size, const char *where,
                            struct host_model **out) {
    jmp_buf oom;
    npu_status st;
    *out = NULL;
    texts = arena_try_new();
    if (!texts) return npu_fail(NO_MEMORY, "parsing %s", where);
    json_set_alloc_funcs(json_take, json_keep);
    if (setjmp(oom)) {
        st = npu_fail(NO_MEMORY, "parsing %s", where);
    } else {
        arena_set_oom(texts, &oom);
        st = parse(json, size, where, out);
    }
    json_set_alloc_funcs(base_alloc, base_free);
    arena_free(texts);
    return st;
}

npu_status host_model_load(const char *path, struct host_model **out) {
    struct span bytes;
    *out = NULL;
    NPU_TRY(file_map(path, &bytes));
    npu_status st = host_model_parse((const char *)bytes.data, bytes.size, path, out);
    file_unmap(bytes);
    return st;
}

npu_status host_model_default(struct host_model **out) {
    return host_model_parse(host_default_json, host_default_json_size, "built-in host model", out);
}

void host_model_free(struct host_model *model) {
    if (model) arena_free(model->arena);
}
