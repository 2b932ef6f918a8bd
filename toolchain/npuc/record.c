// SPDX-License-Identifier: Apache-2.0
// The record of a compilation, and compiling the same graph again from it.
#include "toolchain/npuc/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/hw_yaml.h"

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

// ---- hash of a graph ----------------------------------------------------------------------------

static void mix(uint64_t *h, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ p[i]) * UINT64_C(1099511628211);
}

static void mix_int(uint64_t *h, int64_t v) {
    for (int i = 0; i < 8; i++) {
        const uint8_t byte = (uint8_t)((uint64_t)v >> (8 * i));
        mix(h, &byte, 1);
    }
}

static void mix_float(uint64_t *h, double v) {
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    mix_int(h, bits);
}

static void mix_text(uint64_t *h, const char *text) {
    mix(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void mix_value(uint64_t *h, const struct graph_value *v) {
    enum { PART = 4096 };
    mix_text(h, v->name);
    mix_int(h, (int64_t)v->dtype);
    mix_int(h, v->rank);
    for (int d = 0; d < v->rank; d++) {
        mix_int(h, v->dims[d]);
        mix_int(h, v->has_order ? v->order[d] : d);
    }
    if (!v->data) return;
    mix_int(h, (int64_t)graph_data_dtype(v));
    const size_t bytes = ((size_t)graph_value_elems(v) *
                              (size_t)isa_dtype_bits((int)graph_data_dtype(v)) +
                          7) /
                         8,
                 part = bytes < PART ? bytes : PART;
    mix(h, v->data, part);
    mix(h, (const uint8_t *)v->data + (bytes - part), part);
}

static void mix_node(uint64_t *h, const struct graph_node *n) {
    mix_text(h, graph_ops[n->op].text);
    mix_int(h, n->nown);
    for (int i = 0; i < n->nin; i++)
        mix_value(h, n->inputs[i]);
    for (int i = 0; i < n->nout; i++)
        mix_value(h, n->outputs[i]);
    for (int i = 0; i < n->nattr; i++) {
        const struct graph_attr *a = &n->attrs[i];
        mix_text(h, graph_attrs[a->key].text);
        mix_int(h, a->i);
        mix_float(h, a->f);
        for (int k = 0; k < a->n && a->ints; k++)
            mix_int(h, a->ints[k]);
        for (int k = 0; k < a->n && a->floats; k++)
            mix_float(h, a->floats[k]);
        mix_text(h, a->word);
    }
    for (int s = 0; n->has_chain && s < ISA_STAGES; s++) {
        const struct isa_stage *st = &n->chain.st[s];
        mix_int(h, st->op);
        mix_int(h, st->a);
        mix_int(h, st->b);
        mix_int(h, st->save);
    }
    for (int k = 0; n->has_chain && k < ISA_IMMS; k++)
        mix_int(h, n->chain.imm[k]);
    for (int k = 0; n->has_chain && k < 3; k++)
        mix_int(h, n->chain_in[k]);
}

uint64_t npuc_graph_hash(const struct graph *g) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (int i = 0; i < g->ninput; i++)
        mix_value(&h, g->inputs[i]);
    for (const struct graph_node *n = g->first; n; n = n->next)
        mix_node(&h, n);
    for (int i = 0; i < g->noutput; i++)
        mix_value(&h, g->outputs[i]);
    return h;
}

// ---- what is recorded ---------------------------------------------------------------------------

struct writer {
    struct arena *a;
    struct npu_image_option *option;
    size_t n;
};

static void put(struct writer *w, const char *name, const char *value) {
    w->option[w->n++] = (struct npu_image_option){name, value};
}

static void put_list(struct writer *w, const char *name, const struct npuc_list *l) {
    for (int i = 0; i < l->n; i++)
        put(w, name, l->item[i]);
}

// "NAME=dir/file" as "NAME=file".
static const char *without_folder(struct arena *a, const char *item) {
    const char *equals = strchr(item, '=');
    return equals ? arena_printf(a, "%.*s=%s", (int)(equals - item), item, base_name(equals + 1))
                  : item;
}

const struct npu_image_record *npuc_record(const struct npuc_options *o, struct arena *a,
                                           const struct npuc_result *r) {
    if (!o->input) return NULL;
    struct npu_image_record *to = ARENA_NEW(a, struct npu_image_record);
    struct writer w = {.a = a};
    w.option = ARENA_ARRAY(a, struct npu_image_option,
                           (size_t)(5 + PASS_COUNT + STEP_COUNT + o->set.n + o->shape.n + o->dim.n +
                                    o->constant.n));
    put(&w, "target", base_name(o->target));
    put_list(&w, "set", &o->set);
    put(&w, "dtype", o->dtype);
    put(&w, "level", arena_printf(a, "%d", o->pass.level));
    if (o->pass.eager) put(&w, "eager", "1");
    for (int i = 0; i < PASS_COUNT; i++)
        if (o->pass.skip[i]) put(&w, "skip", passes[i].name);
    for (int i = 0; i < STEP_COUNT; i++)
        if (o->skip_step[i]) put(&w, "skip", steps[i].name);
    put_list(&w, "shape", &o->shape);
    put_list(&w, "dim", &o->dim);
    for (int i = 0; i < o->constant.n; i++)
        put(&w, "const", without_folder(a, o->constant.item[i]));
    *to = (struct npu_image_record){.model = base_name(o->input),
                                    .model_bytes = r->source.size,
                                    .model_crc = container_crc(0, r->source),
                                    .graph_hash = npuc_graph_hash(r->graph),
                                    .options = w.option,
                                    .noptions = w.n};
    return to;
}

// ---- the same again -----------------------------------------------------------------------------

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

// A recorded file: beside the program, beside the model, or in the current folder; NULL when it is
// nowhere.
static const char *find(struct arena *a, const char *name, const char *program, const char *model) {
    const char *beside[] = {program, model};
    for (int i = 0; i < 2; i++) {
        const char *slash = beside[i] ? strrchr(beside[i], '/') : NULL;
        if (!slash) continue;
        const char *path = arena_printf(a, "%.*s/%s", (int)(slash - beside[i]), beside[i], name);
        if (exists(path)) return path;
    }
    return exists(name) ? name : NULL;
}

// NAME=FILE with the file as found.
static npu_status find_const(struct arena *a, const char *item, const char *program,
                             const char *model, const char **out) {
    const char *equals = strchr(item, '=');
    if (!equals || !equals[1])
        return npu_fail(BAD_INPUT, "the record's constant '%s' is not NAME=FILE", item);
    const char *path = find(a, equals + 1, program, model);
    if (!path)
        return npu_fail(USAGE,
                        "the program was compiled with --const %s, and that file is neither "
                        "beside it nor beside the model nor in the current folder",
                        item);
    *out = arena_printf(a, "%.*s=%s", (int)(equals - item), item, path);
    return NULL;
}

// What would be wrong usage on a command line is a wrong file here.
static npu_status as_input(npu_status st) {
    if (npu_status_code(st) != NPU_USAGE) return st;
    npu_status bad = npu_fail(BAD_INPUT, "the program's record: %s", npu_status_message(st));
    npu_status_free(st);
    return bad;
}

// Nothing that decides what is compiled may be passed over.
static npu_status unknown_option(const char *name) {
    return npu_fail(USAGE,
                    "option '%s' is not known; this version knows target, set, dtype, level, skip, "
                    "shape, dim, const and eager",
                    name);
}

static npu_status recorded_options(const struct npu_image_record *r, const char *program,
                                   const char *model, struct arena *a, struct npuc_options *o) {
    npuc_options_init(o);
    o->input = model;
    for (size_t i = 0; i < r->noptions; i++) {
        const char *name = r->options[i].name, *value = r->options[i].value;
        if (!strcmp(name, "dtype")) {
            NPU_TRY(as_input(npuc_options_dtype(o, value)));
        } else if (!strcmp(name, "level")) {
            NPU_TRY(as_input(npuc_options_level(o, value)));
        } else if (!strcmp(name, "eager")) {
            o->pass.eager = true;
        } else if (!strcmp(name, "skip")) {
            NPU_TRY(as_input(npuc_options_skip(o, value)));
        } else if (!strcmp(name, "shape")) {
            npuc_list_add(a, &o->shape, value);
        } else if (!strcmp(name, "dim")) {
            npuc_list_add(a, &o->dim, value);
        } else if (!strcmp(name, "const")) {
            NPU_TRY(find_const(a, value, program, model, &value));
            npuc_list_add(a, &o->constant, value);
        } else if (strcmp(name, "target") != 0 && strcmp(name, "set") != 0) {
            NPU_TRY(as_input(unknown_option(name)));
        }
    }
    return NULL;
}

static npu_status check_model(const struct npu_image_record *r, const char *model,
                              struct span bytes) {
    if (bytes.size == r->model_bytes && container_crc(0, bytes) == r->model_crc) return NULL;
    return npu_fail(USAGE,
                    "%s is not the model that the program was compiled from: %zu bytes, CRC-32 "
                    "0x%08" PRIx32 ", expected %s of %" PRIu64 " bytes, CRC-32 0x%08" PRIx32,
                    model, bytes.size, container_crc(0, bytes), r->model, r->model_bytes,
                    r->model_crc);
}

// The options of the record and the graph behind the last pass.
static npu_status remake(const struct npu_program_image *image, const char *program,
                         const char *model, struct arena *a, struct npuc_options *o,
                         struct npuc_result *result) {
    const struct npu_image_record *r = image->record;
    struct span bytes;
    if (!r)
        return npu_fail(USAGE,
                        "%s has no record of a model: only programs that npuc compiled from a "
                        "model have one",
                        program);
    if (!model) model = find(a, r->model, program, NULL);
    if (!model)
        return npu_fail(USAGE,
                        "the program was compiled from %s, which is neither beside %s nor in the "
                        "current folder",
                        r->model, program);
    NPU_TRY(file_map_in(a, model, &bytes));
    NPU_TRY(check_model(r, model, bytes));
    NPU_TRY(hw_parse(image->hw_yaml, strlen(image->hw_yaml), "machine", &result->hw));
    NPU_TRY_NOTE(recorded_options(r, program, model, a, o), "%s", program);
    NPU_TRY(as_input(npuc_front_end(o, a, result)));
    if (!result->graph || npuc_graph_hash(result->graph) != r->graph_hash)
        return npu_fail(BAD_INPUT,
                        "this version makes another graph of %s than the one that compiled the "
                        "program (%s): compile it again",
                        model, image->producer);
    return NULL;
}

npu_status npuc_remake(const struct npu_program_image *image, const char *program,
                       const char *model, struct arena *a, struct graph **out) {
    struct npuc_options o;
    struct npuc_result result = {0};
    NPU_TRY(remake(image, program, model, a, &o, &result));
    *out = result.graph;
    return NULL;
}

npu_status npuc_recompile(const struct npu_program_image *image, const char *program,
                          const char *model, struct arena *a,
                          const struct npu_program_image **out) {
    struct npuc_options o;
    struct npuc_result result = {0};
    NPU_TRY(remake(image, program, model, a, &o, &result));
    o.target = image->target;
    NPU_TRY(npuc_back_end(&o, a, &result));
    *out = result.image;
    return NULL;
}
