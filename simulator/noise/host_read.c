// SPDX-License-Identifier: Apache-2.0
//
// Reads a host model (JSON, docs/jitter.md "The model file"). Read strictly: an unknown, missing or
// repeated key, a value of another type or out of its range is BAD_INPUT "FILE: KEY: ...". All keys
// that an object lacks or should not have are told at once.

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"
#include "runtime/base/diag.h"
#include "runtime/base/file.h"
#include "simulator/noise/host_model.h"

#define FORMAT "npu-host-model"
#define VERSION 1
#define MAX_QUANTILES 2001
#define MAX_QUEUE 1048576
// Of one dispatch, level, slow factor.
#define MAX_US 1e6
#define MAX_LEVEL 100
#define MAX_FACTOR 1e4
#define MAX_LAUNCH_US 1e7 // their product: a million of them in picoseconds stay below 2^63
#define MAX_RUN_US 1e9
#define MAX_PHI 0.999

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define QUANTILES "a list of 2 to " TEXT(MAX_QUANTILES) " numbers, none below the one before"
#define COMPONENTS "a list of at most 4 objects with weight and phi"

enum object { WHOLE, PROVENANCE, DISPATCH, CLASS, SLOW, COMPILED, COMPONENT, RUN };

static const struct {
    enum object object;
    const char *name;
    bool needed;
    const char *what;
} keys[] = {
#define HOST_KEY(OBJECT, name, needed, what) {OBJECT, name, needed, what},
#include "simulator/noise/host_key.def"
#define HOST_CLASS(NAME, text, kin, view, meaning) \
    {DISPATCH, text, HOST_##NAME == HOST_##kin, "an object with quantiles_us"},
#include "simulator/noise/host_class.def"
};
enum { KEYS = sizeof keys / sizeof *keys, MAX_UNKNOWN = 8 };

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

// The keys of an object, each with what it holds.
static const char *list_keys(struct arena *a, enum object object) {
    const char *list = NULL;
    for (int k = 0; k < KEYS; k++)
        if (keys[k].object == object)
            list =
                arena_printf(a, "%s%s%s (%s%s)", list ? list : "", list ? ", " : "", keys[k].name,
                             keys[k].what, keys[k].needed ? "" : "; may be missing");
    return list;
}

static bool is_key(enum object object, const char *name) {
    for (int k = 0; k < KEYS; k++)
        if (keys[k].object == object && strcmp(keys[k].name, name) == 0) return true;
    return false;
}

static npu_status check_keys(const struct reader *r, struct place p, enum object object) {
    const char *known = list_keys(r->arena, object), *key;
    struct diag faults = {0};
    json_t *value;
    if (!json_is_object(p.value))
        return wrong_type(r, p, arena_printf(r->arena, "an object of %s", known));
    json_object_foreach((json_t *)p.value, key, value) {
        if (!is_key(object, key) && faults.count < MAX_UNKNOWN)
            diag_fail(&faults, BAD_INPUT, "%s: %s has an unknown key '%s'; known are: %s", r->where,
                      p.path, key, known);
    }
    for (int k = 0; k < KEYS; k++)
        if (keys[k].object == object && keys[k].needed && !json_object_get(p.value, keys[k].name))
            diag_fail(&faults, BAD_INPUT, "%s: %s has no key '%s', %s", r->where, p.path,
                      keys[k].name, keys[k].what);
    return diag_finish(&faults);
}

// A member; .value is NULL when it is missing, which check_keys has allowed.
static struct place member(const struct reader *r, struct place object, const char *key) {
    const bool whole = strcmp(object.path, "the file") == 0;
    return (struct place){json_object_get(object.value, key),
                          whole ? key : arena_printf(r->arena, "%s.%s", object.path, key)};
}

static npu_status check_number(const struct reader *r, struct place p, double low, double high) {
    if (!json_is_number(p.value)) return wrong_type(r, p, "a number");
    double v = json_number_value(p.value);
    if (v >= low && v <= high) return NULL;
    return npu_fail(BAD_INPUT, "%s: %s is %.10g, expected %.10g to %.10g", r->where, p.path, v, low,
                    high);
}

static npu_status number(const struct reader *r, struct place object, const char *key, double low,
                         double high, double *out) {
    const struct place p = member(r, object, key);
    if (!p.value) return NULL;
    NPU_TRY(check_number(r, p, low, high));
    *out = json_number_value(p.value);
    return NULL;
}

static npu_status text(const struct reader *r, struct place object, const char *key,
                       const char **out) {
    const struct place p = member(r, object, key);
    if (!p.value) return NULL;
    if (!json_is_string(p.value)) return wrong_type(r, p, "a string");
    *out = arena_strdup(r->arena, json_string_value(p.value));
    return NULL;
}

// ---- tables and processes --------------------------------------------------------------------

// A quantile function. Every value is above `less`, which is taken from it.
static npu_status table(const struct reader *r, struct place object, const char *key, double less,
                        double most, struct host_table *out) {
    struct place list = member(r, object, key);
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
    NPU_TRY(number(r, object, "p999_us", 0, MAX_RUN_US, &p999));
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
    double sum = 0;
    struct place list = member(r, object, "components");
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
        NPU_TRY(check_keys(r, p, COMPONENT));
        NPU_TRY(number(r, p, "weight", 0, 1, &c->weight));
        NPU_TRY(number(r, p, "phi", 0, MAX_PHI, &c->phi));
        sum += c->weight;
    }
    if (sum > 1 + 1e-9)
        return npu_fail(BAD_INPUT, "%s: the weights of %s add up to %g, expected at most 1",
                        r->where, list.path, sum);
    return NULL;
}

// ---- parts of the file -----------------------------------------------------------------------

// What statistics say of a table beside it; for readers, not used.
static npu_status moments(const struct reader *r, struct place object, double *mean, double *std) {
    NPU_TRY(number(r, object, "mean_us", 0, MAX_RUN_US, mean));
    return number(r, object, "std_us", 0, MAX_RUN_US, std);
}

static npu_status provenance(const struct reader *r, struct place root, struct host_model *m) {
    const struct place p = member(r, root, "provenance");
    const char *device = "", *framework = "", *host = "", *method = "";
    NPU_TRY(check_keys(r, p, PROVENANCE));
    NPU_TRY(text(r, p, "device", &device));
    NPU_TRY(text(r, p, "framework", &framework));
    NPU_TRY(text(r, p, "host", &host));
    NPU_TRY(text(r, p, "method", &method));
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
    const struct place all = member(r, root, "dispatch");
    NPU_TRY(check_keys(r, all, DISPATCH));
    for (int c = 0; c < HOST_CLASS_COUNT; c++) {
        const struct place p = member(r, all, class_text[c]);
        double unused;
        if (!p.value) continue;
        NPU_TRY(check_keys(r, p, CLASS));
        NPU_TRY(number(r, p, "calls", 1, 1e12, &unused));
        NPU_TRY(moments(r, p, &unused, &unused));
        NPU_TRY(table(r, p, "quantiles_us", m->timer_us, MAX_US, &m->fast[c]));
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
    const struct place p = member(r, root, "slow");
    const char *unused;
    NPU_TRY(check_keys(r, p, SLOW));
    NPU_TRY(text(r, p, "fitted_on", &unused));
    NPU_TRY(number(r, p, "level", 1.0 / MAX_LEVEL, MAX_LEVEL, &m->level));
    NPU_TRY(table(r, p, "quantiles", 0, MAX_FACTOR, &m->slow));
    return process(r, p, &m->slow_process);
}

// The slowest launch that may be drawn.
static npu_status check_launches(const struct reader *r, const struct host_model *m) {
    const double most = m->level * m->slow.q[m->slow.n - 1];
    for (int c = 0; c < HOST_CLASS_COUNT; c++) {
        const double us = most * m->fast[c].q[m->fast[c].n - 1];
        if (us > MAX_LAUNCH_US)
            return npu_fail(BAD_INPUT,
                            "%s: the last of dispatch.%s.quantiles_us x slow.level x the last of "
                            "slow.quantiles is a launch of %.10g us, expected at most %.10g",
                            r->where, class_text[c], us, MAX_LAUNCH_US);
    }
    return NULL;
}

static npu_status compiled(const struct reader *r, struct place root, struct host_model *m) {
    const struct place p = member(r, root, "compiled");
    const char *unused;
    NPU_TRY(check_keys(r, p, COMPILED));
    NPU_TRY(text(r, p, "fitted_on", &unused));
    NPU_TRY(table(r, p, "quantiles_us", 0, MAX_US, &m->compiled));
    NPU_TRY(number(r, p, "submit_share", 0, 1, &m->submit_share));
    return process(r, p, &m->compiled_process);
}

// A whole inference: kept for reports; its calls and correlation are there for the fit.
static npu_status measured(const struct reader *r, struct place p, struct host_measured *out) {
    double unused;
    struct place list;
    struct host_table t = {0};
    NPU_TRY(check_keys(r, p, RUN));
    NPU_TRY(text(r, p, "model", &out->model));
    NPU_TRY(text(r, p, "mode", &out->mode));
    NPU_TRY(moments(r, p, &out->mean_us, &out->std_us));
    if (!(out->mean_us > 0))
        return npu_fail(BAD_INPUT, "%s: %s.mean_us is 0, expected more", r->where, p.path);
    out->cv = out->std_us / out->mean_us;
    NPU_TRY(number(r, p, "runs", 1, 1e12, &unused));
    NPU_TRY(number(r, p, "launches", 0, 1e9, &unused));
    list = member(r, p, "autocorrelation");
    if (list.value && !json_is_array(list.value)) return wrong_type(r, list, "a list");
    list = member(r, p, "calls");
    if (list.value && !json_is_object(list.value)) return wrong_type(r, list, "an object");
    NPU_TRY(table(r, p, "quantiles_us", 0, MAX_RUN_US, &t));
    NPU_TRY(tail(r, p, 0, &t));
    out->quantiles_us = t.q;
    out->nquantiles = t.n;
    return NULL;
}

static npu_status runs(const struct reader *r, struct place root, struct host_model *m) {
    struct place list = member(r, root, "runs");
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
    NPU_TRY(check_keys(r, root, WHOLE));
    NPU_TRY(text(r, root, "format", &format));
    if (strcmp(format, FORMAT) != 0)
        return npu_fail(BAD_INPUT, "%s: format is '%s', expected '%s'", r->where, format, FORMAT);
    NPU_TRY(number(r, root, "version", 0, 1e9, &version));
    if (version != VERSION)
        return npu_fail(BAD_INPUT, "%s: version is %g, expected %d", r->where, version, VERSION);
    NPU_TRY(number(r, root, "queue", 1, MAX_QUEUE, &queue));
    if (queue != floor(queue))
        return npu_fail(BAD_INPUT, "%s: queue is %g, expected a whole number", r->where, queue);
    m->queue = (uint32_t)queue;
    NPU_TRY(number(r, root, "timer_us", 0, MAX_US, &m->timer_us));
    NPU_TRY(provenance(r, root, m));
    NPU_TRY(dispatch(r, root, m));
    NPU_TRY(slow(r, root, m));
    NPU_TRY(check_launches(r, m));
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
    const char *expected = list_keys(texts, WHOLE);
    bool empty = true;
    for (size_t i = 0; i < size && empty; i++)
        empty = strchr(" \t\r\n", json[i]) && json[i];
    if (empty)
        return npu_fail(BAD_INPUT, "%s is empty; expected a host model, a JSON object of %s", where,
                        expected);
    json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!root)
        return npu_fail(BAD_INPUT, "%s:%d:%d: no JSON: %s", where, error.line, error.column,
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
