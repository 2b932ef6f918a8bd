// SPDX-License-Identifier: Apache-2.0
// --report: what was compiled, as JSON: the fields of report.def.
#include <jansson.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/text.h"
#include "toolchain/npuc/compile.h"

// jansson's calls are not checked one by one: what it could not allocate is noted here.
static bool json_failed;

static void *json_alloc(size_t size) {
    void *block = base_alloc(size);
    json_failed |= !block;
    return block;
}

static json_t *text(const char *s) {
    return json_string_nocheck(s ? s : "");
}
static json_t *number(int64_t v) {
    return json_integer((json_int_t)v);
}

static json_t *tensors(const struct npu_program_image *image, enum container_role role) {
    json_t *list = json_array();
    for (size_t i = 0; i < image->ntensors; i++) {
        const struct npu_image_tensor *t = &image->tensors[i];
        if (t->role != role) continue;
        json_t *shape = json_array();
        for (int d = 0; d < t->rank; d++)
            json_array_append_new(shape, number(t->dims[d]));
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "name", text(t->name), "dtype",
                                              text(isa_dtype_name(t->dtype)), "shape", shape));
    }
    return list;
}

static json_t *pass_rows(const struct pass_log *log) {
    json_t *list = json_array();
    for (int i = 0; i < PASS_COUNT; i++) {
        const struct pass_stat *s = &log->stat[i];
        if (!s->ran) continue;
        json_array_append_new(list,
                              json_pack("{s:o, s:i, s:i, s:I, s:I}", "name", text(passes[i].name),
                                        "nodes_before", s->nodes_before, "nodes_after",
                                        s->nodes_after, "bytes_before", (json_int_t)s->bytes_before,
                                        "bytes_after", (json_int_t)s->bytes_after));
    }
    return list;
}

static json_t *layer_rows(const struct tile_program *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->nkernel; i++) {
        const struct tile_kernel *k = p->kernels[i];
        json_t *nodes = json_array();
        for (int n = 0; n < k->norigin; n++)
            json_array_append_new(nodes, text(k->origins[n]));
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:f}",
                      "tag", i + 1, "name", text(k->name), "op", text(k->op), "kernel",
                      text(k->kernel), "text", text(k->text), "nodes", nodes, "macs",
                      (json_int_t)k->macs, "vector_elems", (json_int_t)k->vector_elems,
                      "weight_bytes", (json_int_t)k->weight_bytes, "input_bytes",
                      (json_int_t)k->input_bytes, "output_bytes", (json_int_t)k->output_bytes,
                      "spm_bytes", (json_int_t)k->spm_bytes, "resident_bytes",
                      (json_int_t)k->resident_bytes, "steps", k->last_step - k->first_step + 1,
                      "estimated_cycles", k->estimate_cycles));
    }
    return list;
}

// The submissions of an eager program, and what the host calls besides.
static void add_launches(json_t *root, const struct npuc_result *r) {
    const struct npu_image_entry *e = &r->image->entries[0];
    json_t *list = json_array(), *calls = json_array();
    int64_t views = e->views;
    for (size_t i = 0; i < e->nlaunches; i++) {
        const struct npu_image_launch *l = &e->launches[i];
        const struct npu_image_tag *t = container_find_tag(r->image, l->tag);
        views += l->views;
        json_array_append_new(list, json_pack("{s:I, s:o, s:o, s:o, s:o, s:I}", "tag",
                                              (json_int_t)l->tag, "call", text(l->op), "op",
                                              text(t->op), "kernel", text(t->kernel), "name",
                                              text(t->layer), "views", (json_int_t)l->views));
    }
    for (int i = 0; i < r->graph->ncall; i++)
        json_array_append_new(calls, text(r->graph->calls[i].op));
    json_t *of = json_pack("{s:I, s:I, s:I, s:o, s:o}", "launches", (json_int_t)e->nlaunches,
                           "views", (json_int_t)views, "views_at_end", (json_int_t)e->views, "list",
                           list, "calls", calls);
    if (root) json_object_set_new(root, "eager", of);
}

static json_t *memory(const struct npuc_result *r) {
    const struct tile_program *p = r->tiles;
    return json_pack("{s:{s:I, s:I, s:I}, s:{s:I, s:I}, s:{s:I, s:I}, s:I}", "spm",
                     "capacity_bytes", (json_int_t)r->hw.spm_bytes, "peak_bytes",
                     (json_int_t)p->spm_peak_bytes, "bound_bytes", (json_int_t)p->spm_bound_bytes,
                     "psum", "capacity_bytes", (json_int_t)hw_psum_bytes(&r->hw), "peak_bytes",
                     (json_int_t)p->psum_peak_bytes, "dram_scratch", "peak_bytes",
                     (json_int_t)p->scratch_peak_bytes, "bound_bytes",
                     (json_int_t)p->scratch_bound_bytes, "dram_bytes",
                     (json_int_t)r->image->dram_bytes);
}

static json_t *step_rows(const struct npuc_options *o) {
    json_t *list = json_array();
    for (int i = 0; i < STEP_COUNT; i++)
        json_array_append_new(list, json_pack("{s:s, s:b}", "name", steps[i].name, "taken",
                                              (int)npuc_step(o, (enum step_id)i)));
    return list;
}

static json_t *skipped(const struct npuc_options *o) {
    json_t *list = json_array();
    for (int i = 0; i < PASS_COUNT; i++)
        if (o->pass.skip[i]) json_array_append_new(list, text(passes[i].name));
    for (int i = 0; i < STEP_COUNT; i++)
        if (o->skip_step[i]) json_array_append_new(list, text(steps[i].name));
    return list;
}

// The file that the graph is from: absent when there is none.
static void add_model(json_t *root, const struct npu_image_record *r) {
    if (root && r)
        json_object_set_new(root, "model",
                            json_pack("{s:o, s:I, s:I}", "file", text(r->model), "bytes",
                                      (json_int_t)r->model_bytes, "crc32",
                                      (json_int_t)r->model_crc));
}

static json_t *kept(const struct pass_log *log) {
    json_t *list = json_array();
    for (int i = 0; i < log->kept_f32; i++)
        json_array_append_new(list, text(log->kept_names[i]));
    return list;
}

npu_status npuc_report(const struct npuc_options *o, const struct npuc_result *r) {
    if (!o->report) return NULL;
    if (!r->tiles || !r->image)
        return npu_fail(USAGE, "--report needs a model that is compiled to the end");
    char program_hash[32], timing_hash[32];
    snprintf(program_hash, sizeof program_hash, "%016llx",
             (unsigned long long)r->image->hw_program_hash);
    snprintf(timing_hash, sizeof timing_hash, "%016llx",
             (unsigned long long)r->image->hw_timing_hash);
    json_failed = false;
    json_set_alloc_funcs(json_alloc, base_free);
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:o, s:{s:s, s:s}, s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, "
                  "s:I, s:i, s:f, "
                  "s:o}",
                  "schema", "npuc-report/1", "program", text(r->image->name), "target",
                  text(r->image->target), "dtype", text(r->image->dtype_mode), "hardware_hash",
                  "program", program_hash, "timing", timing_hash, "level", o->pass.level, "inputs",
                  tensors(r->image, CONTAINER_ROLE_INPUT), "outputs",
                  tensors(r->image, CONTAINER_ROLE_OUTPUT), "passes", pass_rows(&r->passes),
                  "steps", step_rows(o), "skipped", skipped(o), "fused_nodes", r->passes.fused,
                  "kept_f32", kept(&r->passes), "memory", memory(r), "code_bytes",
                  (json_int_t)r->image->code.size, "instructions", r->instructions,
                  "estimated_cycles", r->estimated_cycles, "layers", layer_rows(r->tiles));
    add_model(root, r->image->record);
    if (o->pass.eager) add_launches(root, r);
    char *dump = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(root);
    npu_status st = NULL;
    if (!dump || json_failed)
        st = npu_fail(NO_MEMORY, "%s: out of memory", o->report);
    else
        st = file_write_atomic(o->report,
                               (struct span){.data = (const uint8_t *)dump, .size = strlen(dump)});
    base_free(dump);
    return st;
}
