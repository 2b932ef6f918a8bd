// SPDX-License-Identifier: Apache-2.0
// The input file: recognised by content, read by its front end.
#define _POSIX_C_SOURCE 200809L
#include "toolchain/npuc/input.h"

#include <string.h>
#include <sys/stat.h>

#include "runtime/base/npy.h"
#include "runtime/base/text.h"
#include "toolchain/asm/asm.h"
#include "toolchain/frontend/onnx/onnx.h"
#include "toolchain/frontend/pt2/pt2.h"
#include "toolchain/frontend/text/text_graph.h"

// Splits "NAME=REST" at the last '='-free name; names of tensors may contain ':' and '/', not '='.
static npu_status split(struct arena *a, const char *option, const char *item, const char **name,
                        const char **rest) {
    const char *eq = strchr(item, '=');
    if (!eq || eq == item || !eq[1])
        return npu_fail(USAGE, "--%s %s: expected NAME=%s", option, item,
                        !strcmp(option, "const") ? "FILE"
                        : !strcmp(option, "dim") ? "N"
                                                 : "D,D,...");
    *name = arena_strndup(a, item, (size_t)(eq - item));
    *rest = eq + 1;
    return NULL;
}

static npu_status positive(const char *option, const char *item, const char *text, int64_t *out) {
    if (text_parse_i64(text, out) && *out >= 0) return NULL;
    return npu_fail(USAGE, "--%s %s: '%s' is no size; expected an integer from 0 on", option, item,
                    text);
}

static npu_status shape_option(struct arena *a, const char *item, struct import_shape *out) {
    const char *rest;
    NPU_TRY(split(a, "shape", item, &out->name, &rest));
    if (!strcmp(rest, "scalar")) return NULL;
    for (const char *at = rest;;) {
        size_t len = strcspn(at, ",");
        if (out->rank == GRAPH_MAX_RANK)
            return npu_fail(USAGE, "--shape %s: more than %d dimensions", item, GRAPH_MAX_RANK);
        NPU_TRY(positive("shape", item, arena_strndup(a, at, len), &out->dims[out->rank]));
        out->rank++;
        if (!at[len]) return NULL;
        at += len + 1;
    }
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static npu_status const_option(struct arena *a, const char *item, struct import_const *out) {
    const char *path;
    NPU_TRY(split(a, "const", item, &out->name, &path));
    struct span bytes;
    NPU_TRY(file_map_in(a, path, &bytes));
    if (ends_with(path, ".pb"))
        return npu_note(onnx_tensor_parse(a, bytes, &out->value, NULL), "--const %s", item);
    return npu_note(npy_parse(a, bytes, &out->value), "--const %s", item);
}

// What is no file can be read only once: its external data has no place.
static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static npu_status import_model(const struct npuc_options *o, struct arena *a, struct span bytes,
                               struct npuc_result *r) {
    struct import_shape *shapes = ARENA_ARRAY(a, struct import_shape, (size_t)o->shape.n + 1);
    struct import_dim *dims = ARENA_ARRAY(a, struct import_dim, (size_t)o->dim.n + 1);
    struct import_const *consts = ARENA_ARRAY(a, struct import_const, (size_t)o->constant.n + 1);
    for (int i = 0; i < o->shape.n; i++)
        NPU_TRY(shape_option(a, o->shape.item[i], &shapes[i]));
    for (int i = 0; i < o->dim.n; i++) {
        const char *rest;
        NPU_TRY(split(a, "dim", o->dim.item[i], &dims[i].name, &rest));
        NPU_TRY(positive("dim", o->dim.item[i], rest, &dims[i].size));
    }
    for (int i = 0; i < o->constant.n; i++)
        NPU_TRY(const_option(a, o->constant.item[i], &consts[i]));
    struct import_options options = {.shapes = shapes,
                                     .nshape = o->shape.n,
                                     .dims = dims,
                                     .ndim = o->dim.n,
                                     .consts = consts,
                                     .nconst = o->constant.n};
    if (pt2_probe(bytes))
        return npu_note(pt2_import_bytes(bytes, is_file(o->input) ? o->input : NULL, &options, a,
                                         &r->graph),
                        "model '%s'", o->input);
    if (is_file(o->input)) return onnx_import_mapped(o->input, bytes, &options, a, &r->graph);
    return npu_note(onnx_import_bytes(bytes, &options, a, &r->graph), "model '%s'", o->input);
}

static npu_status no_model_options(const struct npuc_options *o, const char *what) {
    const struct npuc_list *lists[] = {&o->shape, &o->dim, &o->constant};
    static const char *const names[] = {"shape", "dim", "const"};
    for (int i = 0; i < 3; i++)
        if (lists[i]->n)
            return npu_fail(USAGE, "--%s %s: %s is %s, whose shapes are fixed", names[i],
                            lists[i]->item[0], o->input, what);
    return NULL;
}

static npu_status no_eager(const struct npuc_options *o, const char *what) {
    if (!o->pass.eager) return NULL;
    return npu_fail(USAGE, "--eager: %s is %s; it is for models and graph text", o->input, what);
}

// Printable ASCII, tabs, newlines and UTF-8 in the first bytes.
static bool is_text(struct span bytes) {
    size_t n = bytes.size < 4096 ? bytes.size : 4096;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = bytes.data[i];
        if ((c < 32 && c != '\n' && c != '\r' && c != '\t') || c == 127) return false;
    }
    return n > 0;
}

// The first word behind comments ('#' or '//' to the end of the line) is "graph".
static bool is_graph_text(struct span bytes) {
    size_t i = 0;
    for (;;) {
        while (i < bytes.size &&
               (bytes.data[i] == ' ' || (bytes.data[i] >= 9 && bytes.data[i] <= 13)))
            i++;
        if (i >= bytes.size || (bytes.data[i] != '#' && bytes.data[i] != '/')) break;
        while (i < bytes.size && bytes.data[i] != '\n')
            i++;
    }
    return bytes.size - i > 6 && !memcmp(bytes.data + i, "graph ", 6);
}

#define ACCEPTED                                                                             \
    "an ONNX model, a torch.export archive (.pt2), graph text (.npt), assembly (.nps) or a " \
    "program "                                                                               \
    "(.npu)"

npu_status npuc_read_input(const struct npuc_options *o, struct arena *a, struct npuc_result *r) {
    struct span bytes;
    NPU_TRY(file_map_in(a, o->input, &bytes));
    r->source = bytes;
    if (bytes.size == 0) return npu_fail(BAD_INPUT, "%s is empty; expected " ACCEPTED, o->input);
    if (ends_with(o->input, ".pt2") && !pt2_probe(bytes))
        return npu_fail(BAD_INPUT, "%s is no zip archive, as torch.export.save writes it",
                        o->input);
    if (container_probe(bytes)) {
        NPU_TRY(no_model_options(o, "a compiled program"));
        NPU_TRY(no_eager(o, "a compiled program"));
        if (!o->info && !o->disassemble)
            return npu_fail(
                USAGE,
                "%s is a compiled program: --info and --disassemble look into it, npusim runs it",
                o->input);
        r->from_program = true;
        return container_read(a, bytes, o->input, CONTAINER_SKIP_WEIGHTS_CRC, &r->image);
    }
    if (is_text(bytes)) {
        NPU_TRY(no_model_options(o, "text"));
        if (is_graph_text(bytes)) return text_graph_parse(a, bytes, o->input, &r->graph);
        NPU_TRY(no_eager(o, "assembly"));
        struct asm_machine machine = {.hw = &r->hw, .name = o->target};
        return asm_assemble(a, bytes, o->input, o->target_given || o->set.n ? &machine : NULL,
                            &r->image);
    }
    if (!pt2_probe(bytes) && !onnx_probe(bytes))
        return npu_fail(BAD_INPUT, "%s is none of: " ACCEPTED, o->input);
    return import_model(o, a, bytes, r);
}
