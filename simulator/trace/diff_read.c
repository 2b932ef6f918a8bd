// SPDX-License-Identifier: Apache-2.0
//
// report.json and trace events back into numbers. What is needed is read strictly, and the sums
// that every run obeys are checked: a file that breaks them was damaged or made by something else.
// Keys that are not needed are ignored, so that newer files with more of them can be read.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"
#include "simulator/trace/diff.h"
#include "simulator/trace/unpack.h"

enum { SCHEMA = 1 };
#define MOST_CYCLES (INT64_C(1) << 53) // any number above is no count of anything

struct reader {
    struct arena *a;
    struct diff_run *run;
};

// A value and the keys that lead to it.
struct place {
    const json_t *value;
    const char *path; // "" for the file
};

static npu_status wrong(const struct reader *r, struct place p, const char *expected) {
    return npu_fail(BAD_INPUT, "%s: %s: expected %s", r->run->file, *p.path ? p.path : "the file",
                    expected);
}

static struct place member(const struct reader *r, struct place of, const char *key) {
    return (struct place){json_object_get(of.value, key),
                          *of.path ? arena_printf(r->a, "%s.%s", of.path, key) : key};
}

static struct place element(const struct reader *r, struct place of, size_t i) {
    return (struct place){json_array_get(of.value, i), arena_printf(r->a, "%s[%zu]", of.path, i)};
}

static npu_status count(const struct reader *r, struct place p, uint64_t *out) {
    const json_int_t n = json_is_integer(p.value) ? json_integer_value(p.value) : -1;
    if (n < 0 || n > MOST_CYCLES) return wrong(r, p, "a whole number from 0 to 2^53");
    *out = (uint64_t)n;
    return NULL;
}

static npu_status count_of(const struct reader *r, struct place of, const char *key,
                           uint64_t *out) {
    return count(r, member(r, of, key), out);
}

// A text; "" where the key is missing or null, which a run without names has.
static npu_status text_of(const struct reader *r, struct place of, const char *key,
                          const char **out) {
    const struct place p = member(r, of, key);
    *out = "";
    if (!p.value || json_is_null(p.value)) return NULL;
    if (!json_is_string(p.value)) return wrong(r, p, "a text");
    *out = json_string_value(p.value);
    return NULL;
}

static npu_status list_of(const struct reader *r, struct place of, const char *key,
                          struct place *out) {
    *out = member(r, of, key);
    return json_is_array(out->value) ? NULL : wrong(r, *out, "a list");
}

static npu_status class_of(const struct reader *r, struct place p, const char *key,
                           enum trace_class *out) {
    for (int c = 0; c < TRACE_CLASSES; c++)
        if (strcmp(key, trace_class_key((enum trace_class)c)) == 0) {
            *out = (enum trace_class)c;
            return NULL;
        }
    return npu_fail(UNSUPPORTED, "%s: %s: '%s' is no class of cycles that this version knows",
                    r->run->file, p.path, key);
}

// ---- layers ------------------------------------------------------------------------------------

static npu_status nodes(const struct reader *r, struct place layer, struct diff_layer *l) {
    const struct place list = member(r, layer, "nodes");
    const char *node;
    NPU_TRY(text_of(r, layer, "node", &node));
    if (!list.value) { // a file of before there was the list
        l->node = ARENA_ARRAY(r->a, const char *, 1);
        l->node[0] = node;
        l->nnodes = *node != 0;
        return NULL;
    }
    if (!json_is_array(list.value)) return wrong(r, list, "a list");
    l->node = ARENA_ARRAY(r->a, const char *, json_array_size(list.value) + 1);
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct place p = element(r, list, i);
        if (!json_is_string(p.value)) return wrong(r, p, "a text");
        l->node[l->nnodes++] = json_string_value(p.value);
    }
    return NULL;
}

// `bytes` is where dram_read and dram_write stand.
static npu_status layer(const struct reader *r, struct place p, struct place bytes,
                        struct diff_layer *l) {
    NPU_TRY(text_of(r, p, "op", &l->op));
    NPU_TRY(text_of(r, p, "kernel", &l->kernel));
    NPU_TRY(text_of(r, p, "bound", &l->bound));
    NPU_TRY(nodes(r, p, l));
    NPU_TRY(count_of(r, p, "cycles", &l->cycles));
    NPU_TRY(count_of(r, p, "macs", &l->macs));
    NPU_TRY(count_of(r, p, "mxu_cycles", &l->mxu_cycles));
    NPU_TRY(count_of(r, p, "vec_cycles", &l->vec_cycles));
    NPU_TRY(count_of(r, p, "dma_cycles", &l->dma_cycles));
    if (!json_is_object(bytes.value)) return wrong(r, bytes, "an object");
    NPU_TRY(count_of(r, bytes, "dram_read", &l->dram_read));
    return count_of(r, bytes, "dram_write", &l->dram_write);
}

// The sums that hold for every run.
static npu_status check_sums(const struct reader *r) {
    struct diff_run *run = r->run;
    uint64_t layers = 0;
    if (run->cycles && !run->nengine)
        return npu_fail(BAD_INPUT, "%s: damaged: it has no engines, the run has %" PRIu64 " cycles",
                        run->file, run->cycles);
    for (size_t i = 0; i < run->nlayer && layers <= run->cycles; i++)
        layers += run->layer[i].cycles;
    run->host_cycles = run->cycles;
    if (layers != run->cycles)
        return npu_fail(BAD_INPUT,
                        "%s: damaged: the cycles of the layers add up to %s%" PRIu64
                        ", the run has %" PRIu64,
                        run->file, layers > run->cycles ? "at least " : "", layers, run->cycles);
    for (size_t i = 0; i < run->nengine; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < i; k++)
            if (strcmp(run->engine[k].name, run->engine[i].name) == 0)
                return npu_fail(BAD_INPUT, "%s: damaged: the engine %s is there twice", run->file,
                                run->engine[i].name);
        for (int c = 0; c < TRACE_CLASSES; c++)
            sum += run->engine[i].cycles[c];
        if (sum != run->cycles)
            return npu_fail(BAD_INPUT,
                            "%s: damaged: the cycles of %s add up to %" PRIu64
                            ", the run has %" PRIu64,
                            run->file, run->engine[i].name, sum, run->cycles);
        if (run->engine[i].cycles[TRACE_HOST] < run->host_cycles)
            run->host_cycles = run->engine[i].cycles[TRACE_HOST];
    }
    run->host |= run->host_cycles > 0;
    return NULL;
}

// ---- report.json -------------------------------------------------------------------------------

static npu_status report_engine(const struct reader *r, struct place p, struct diff_engine *e) {
    NPU_TRY(text_of(r, p, "name", &e->name));
    if (!*e->name) return wrong(r, member(r, p, "name"), "a text");
    NPU_TRY(count_of(r, p, "busy_cycles", &e->cycles[TRACE_BUSY]));
    const struct place stalls = member(r, p, "stalls");
    if (!json_is_object(stalls.value)) return wrong(r, stalls, "an object");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)stalls.value, key, value) {
        enum trace_class cls;
        NPU_TRY(class_of(r, stalls, key, &cls));
        if (cls == TRACE_BUSY) return wrong(r, stalls, "losses only");
        NPU_TRY(count(r, member(r, stalls, key), &e->cycles[cls]));
    }
    return NULL;
}

// Microseconds; 0 where the key is missing.
static npu_status time_of(const struct reader *r, struct place of, const char *key, double *out) {
    const struct place p = member(r, of, key);
    *out = 0;
    if (!p.value) return NULL;
    *out = json_is_number(p.value) ? json_number_value(p.value) : -1;
    return *out >= 0 ? NULL : wrong(r, p, "a number from 0 on");
}

// An eager program says what it had to do with a host; of a compiled one, the latency is longer
// than the device took.
static npu_status report_host(const struct reader *r, struct place root) {
    struct diff_run *run = r->run;
    const struct place eager = member(r, root, "eager");
    if (eager.value) {
        run->host = json_is_string(json_object_get(eager.value, "host_model"));
        return time_of(r, eager, "latency_us", &run->latency_us);
    }
    NPU_TRY(time_of(r, member(r, root, "runs"), "quiet_us", &run->latency_us));
    run->host = run->clock_mhz && run->latency_us > diff_us(run, run->cycles) + 1e-6;
    return NULL;
}

static npu_status report(const struct reader *r, struct place root) {
    struct diff_run *run = r->run;
    struct place list;
    uint64_t schema;
    NPU_TRY(count_of(r, root, "schema", &schema));
    if (schema != SCHEMA)
        return npu_fail(UNSUPPORTED, "%s: a report of schema %" PRIu64 "; this version reads %d",
                        run->file, schema, SCHEMA);
    NPU_TRY(text_of(r, root, "program", &run->program));
    NPU_TRY(text_of(r, root, "target", &run->target));
    NPU_TRY(count_of(r, root, "clock_mhz", &run->clock_mhz));
    NPU_TRY(count_of(r, root, "cycles", &run->cycles));
    NPU_TRY(report_host(r, root));
    NPU_TRY(list_of(r, root, "engines", &list));
    run->engine = ARENA_ARRAY(r->a, struct diff_engine, json_array_size(list.value) + 1);
    for (size_t i = 0; i < json_array_size(list.value); i++)
        NPU_TRY(report_engine(r, element(r, list, i), &run->engine[run->nengine++]));
    NPU_TRY(list_of(r, root, "layers", &list));
    run->layer = ARENA_ARRAY(r->a, struct diff_layer, json_array_size(list.value) + 1);
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct place p = element(r, list, i);
        struct diff_layer *l = &run->layer[run->nlayer++];
        NPU_TRY(text_of(r, p, "name", &l->name));
        NPU_TRY(layer(r, p, member(r, p, "bytes"), l));
    }
    return NULL;
}

// ---- trace events ------------------------------------------------------------------------------

static npu_status state_event(const struct reader *r, struct arena *keep, struct place args) {
    struct diff_run *run = r->run;
    const char *engine, *key;
    enum trace_class cls;
    uint64_t cycles;
    NPU_TRY(text_of(r, args, "engine", &engine));
    NPU_TRY(text_of(r, args, "class", &key));
    NPU_TRY(class_of(r, args, key, &cls));
    NPU_TRY(count_of(r, args, "cycles", &cycles));
    size_t i = 0;
    while (i < run->nengine && strcmp(run->engine[i].name, engine))
        i++;
    if (i == run->nengine) {
        if (i == ISA_ENGINES) return wrong(r, args, "no more engines than a machine has");
        run->engine[run->nengine++].name = arena_strdup(keep, engine);
    }
    run->engine[i].cycles[cls] += cycles;
    if (run->engine[i].cycles[cls] > run->cycles)
        return npu_fail(BAD_INPUT, "%s: %s: damaged: %s has more cycles than the run", run->file,
                        args.path, engine);
    return NULL;
}

static struct diff_layer *new_layer(const struct reader *r) {
    struct diff_run *run = r->run;
    if ((run->nlayer & (run->nlayer + 1)) == 0) { // full at 0, 1, 3, 7, ...
        struct diff_layer *grown = ARENA_ARRAY(r->a, struct diff_layer, run->nlayer * 2 + 1);
        if (run->nlayer) memcpy(grown, run->layer, run->nlayer * sizeof *grown);
        run->layer = grown;
    }
    return &run->layer[run->nlayer++];
}

// One event, number i. Of states, of which there are millions, nothing is kept but their sums; what
// a layer says stays with its JSON.
static npu_status event(const struct reader *r, struct arena *scratch, const json_t *json,
                        size_t i) {
    const char *cat = json_string_value(json_object_get(json, "cat"));
    const bool is_layer = cat && strcmp(cat, "layer") == 0;
    if (!cat || (!is_layer && strcmp(cat, "state"))) return NULL;
    const struct reader own = {is_layer ? r->a : scratch, r->run};
    const struct place p = {json, arena_printf(own.a, "traceEvents[%zu]", i)},
                       args = member(&own, p, "args");
    npu_status st = NULL;
    if (!json_is_object(args.value)) {
        st = wrong(&own, args, "an object");
    } else if (is_layer) {
        struct diff_layer *l = new_layer(r);
        NPU_TRY(text_of(r, p, "name", &l->name));
        if (strncmp(l->name, "tag ", 4) == 0) l->name = ""; // what the view calls a nameless one
        st = layer(r, args, args, l);
    } else {
        st = state_event(&own, r->a, args);
    }
    arena_reset(scratch);
    return st;
}

static npu_status events(const struct reader *r, struct place list) {
    struct arena *scratch = arena_scratch(r->a);
    for (size_t i = 0; i < json_array_size(list.value); i++)
        NPU_TRY(event(r, scratch, json_array_get(list.value, i), i));
    return NULL;
}

static npu_status number_of(const struct reader *r, struct place of, const char *key,
                            uint64_t *out) {
    const struct place p = member(r, of, key);
    const char *text = json_string_value(p.value);
    if (!text || !text_parse_u64(text, out) || *out > MOST_CYCLES)
        return wrong(r, p, "a whole number as text");
    return NULL;
}

static npu_status trace(const struct reader *r, struct place root, struct place other) {
    struct diff_run *run = r->run;
    struct place list;
    uint64_t version;
    NPU_TRY(number_of(r, other, "npusim_trace", &version));
    if (version != SCHEMA)
        return npu_fail(UNSUPPORTED, "%s: a trace of version %" PRIu64 "; this version reads %d",
                        run->file, version, SCHEMA);
    NPU_TRY(text_of(r, other, "program", &run->program));
    NPU_TRY(text_of(r, other, "target", &run->target));
    NPU_TRY(number_of(r, other, "clock_mhz", &run->clock_mhz));
    NPU_TRY(number_of(r, other, "cycles", &run->cycles));
    run->engine = ARENA_ARRAY(r->a, struct diff_engine, ISA_ENGINES);
    NPU_TRY(list_of(r, root, "traceEvents", &list));
    return events(r, list);
}

// ---- bytes -------------------------------------------------------------------------------------

static void release(void *json) {
    json_decref(json);
}

// Reports and traces of runs that ended early say so. A part of a run is no longer or shorter than
// another run.
static npu_status ended_early(const struct reader *r, struct place root, struct place other) {
    static const char *const keys[] = {"fault", "stopped"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *in_report = json_object_get(root.value, keys[i]);
        const json_t *why = in_report ? in_report : json_object_get(other.value, keys[i]);
        if (!why) continue;
        if (i == 0)
            return npu_fail(BAD_INPUT, "%s: the run ended with a fault, it cannot be compared",
                            r->run->file);
        const char *where = json_string_value(why);
        return npu_fail(BAD_INPUT,
                        "%s: the run was stopped (%s), so it is a part of one; compare whole runs",
                        r->run->file, where ? where : "it does not say where");
    }
    return NULL;
}

static npu_status read_root(const struct reader *r, struct place root) {
    const struct diff_run *run = r->run;
    if (!json_is_object(root.value)) return wrong(r, root, "a report or a trace of npusim");
    const struct place other = member(r, root, "otherData");
    if (json_object_get(root.value, "kind"))
        return wrong(r, root, "a report or a trace, not a comparison of two");
    NPU_TRY(ended_early(r, root, other));
    if (json_object_get(other.value, "npusim_trace"))
        NPU_TRY(trace(r, root, other));
    else if (json_object_get(root.value, "schema") && json_object_get(root.value, "engines"))
        NPU_TRY(report(r, root));
    else
        return npu_fail(BAD_INPUT,
                        "%s: neither a report of npusim ('schema' and 'engines') nor a trace of it "
                        "('npusim_trace' in 'otherData')",
                        run->file);
    return run->clock_mhz ? NULL : npu_fail(BAD_INPUT, "%s: clock_mhz is 0", run->file);
}

static npu_status not_json(const struct reader *r, const json_error_t *error, size_t line) {
    if (json_error_code(error) == json_error_out_of_memory)
        return npu_fail(NO_MEMORY, "%s: no memory to read it", r->run->file);
    if (error->line < 1) return npu_fail(BAD_INPUT, "%s: no JSON: %s", r->run->file, error->text);
    return npu_fail(BAD_INPUT, "%s: line %zu, column %d: no JSON: %s", r->run->file,
                    line + (size_t)error->line, error->column, error->text);
}

static bool holds(struct span line, const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= line.size; i++)
        if (line.data[i] == '"' && memcmp(line.data + i, text, n) == 0) return true;
    return false;
}

// A line of the bytes without its end; they begin behind it then.
static struct span take_line(struct span *rest) {
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    const struct span line = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    const size_t taken = line.size + (end != NULL);
    *rest = (struct span){rest->data + taken, rest->size - taken};
    return line;
}

static const char events_open[] = "\"traceEvents\":[";

// A trace as npusim writes it, one event a line: events pass one by one, so that a trace of
// millions needs no memory. *own: it is one; else nothing was done.
static npu_status by_lines(const struct reader *r, struct span bytes, bool *own) {
    const size_t n = sizeof events_open - 1;
    const struct span head = take_line(&bytes);
    *own = head.size > n && memcmp(head.data + head.size - n, events_open, n) == 0 && bytes.size;
    if (!*own) return NULL;
    json_error_t error;
    const char *text = arena_printf(r->a, "%.*s]}", (int)head.size, (const char *)head.data);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root) return not_json(r, &error, 0);
    arena_defer(r->a, release, root);
    NPU_TRY(read_root(r, (struct place){root, ""}));
    struct arena *scratch = arena_scratch(r->a);
    for (size_t i = 0; bytes.size; i++) {
        struct span line = take_line(&bytes);
        if (line.size == 2 && memcmp(line.data, "]}", 2) == 0)
            return bytes.size
                       ? npu_fail(BAD_INPUT, "%s: something stands behind its end", r->run->file)
                       : NULL;
        if (line.size && line.data[line.size - 1] == ',') line.size--;
        const bool is_layer = holds(line, "\"cat\":\"layer\"");
        if (!is_layer && !holds(line, "\"cat\":\"state\"")) continue;
        json_t *json =
            json_loadb((const char *)line.data, line.size, JSON_REJECT_DUPLICATES, &error);
        if (!json) return not_json(r, &error, i + 1);
        if (is_layer) arena_defer(r->a, release, json);
        npu_status st = event(r, scratch, json, i);
        if (!is_layer) json_decref(json);
        NPU_TRY(st);
    }
    return npu_fail(BAD_INPUT, "%s: damaged: it is cut off", r->run->file);
}

static npu_status whole(const struct reader *r, struct span bytes) {
    json_error_t error;
    json_t *root = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    if (!root) return not_json(r, &error, 0);
    arena_defer(r->a, release, root);
    return read_root(r, (struct place){root, ""});
}

static void free_bytes(void *bytes) {
    base_free(bytes);
}

static bool blank(struct span bytes) {
    for (size_t i = 0; i < bytes.size; i++)
        if (!bytes.data[i] || !strchr(" \t\r\n", bytes.data[i])) return false;
    return true;
}

static npu_status read_any(const struct reader *r, struct span bytes) {
    bool own = false;
    if (blank(bytes))
        return npu_fail(BAD_INPUT, "%s: the file is empty; expected a report or a trace of npusim",
                        r->run->file);
    NPU_TRY(by_lines(r, bytes, &own));
    if (!own) NPU_TRY(whole(r, bytes));
    return check_sums(r);
}

npu_status diff_parse(struct arena *a, struct span bytes, const char *name, struct diff_run *out) {
    *out = (struct diff_run){.file = name};
    const struct reader r = {a, out};
    if (bytes.size < 2 || bytes.data[0] != 0x1f || bytes.data[1] != 0x8b)
        return read_any(&r, bytes);
    struct arena *unpacking = arena_scratch(a);
    uint8_t *unpacked = NULL;
    size_t size = 0;
    npu_status st = trace_unpack(bytes, name, &unpacked, &size);
    if (unpacked) arena_defer(unpacking, free_bytes, unpacked);
    if (!st) st = read_any(&r, (struct span){unpacked, size});
    arena_free(unpacking);
    return st;
}

npu_status diff_load(struct arena *a, const char *path, struct diff_run *out) {
    struct span bytes;
    NPU_TRY(file_map(path, &bytes));
    npu_status st = diff_parse(a, bytes, path, out);
    file_unmap(bytes);
    return st;
}
