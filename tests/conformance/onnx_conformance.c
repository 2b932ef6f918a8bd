// SPDX-License-Identifier: Apache-2.0
//
//   onnx_conformance DATA_FOLDER [REQUIRED.txt...]  every test_* of its folders
//   onnx_conformance DATA_FOLDER -- NAME...         these, with messages
//
// DATA_FOLDER holds node/, pytorch-converted/, pytorch-operator/ and simple/; names are as
// node/test_add. A case is model.onnx and test_data_set_N/{input,output}_K.pb. It is imported with
// the shapes of its inputs, run by graph_eval() and compared. Inputs that must be known at compile
// time (shapes, axes, weights) are bound to their values when the import says so, as few as
// possible. Each case passes, is unsupported, or fails; the program fails when a case fails or one
// that REQUIRED.txt lists does not pass. A line "!NAME reason" there takes a case out.

#define _XOPEN_SOURCE 700

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isa/numeric.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/str.h"
#include "runtime/base/vec.h"
#include "toolchain/frontend/onnx/onnx.h"

enum { TENSORS = 16 };
enum outcome { PASS, UNSUPPORTED, FAIL };

struct tensors {
    int count;
    struct tensor_data t[TENSORS];
    const char *names[TENSORS];
};

struct harness {
    const char *root;
    struct map excluded;
    bool loud;
    int counts[3];
    struct map passed;
};

static bool exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

static npu_status read_tensors(struct arena *a, const char *folder, const char *kind,
                               struct tensors *out) {
    for (out->count = 0; out->count < TENSORS; out->count++) {
        const char *path = arena_printf(a, "%s/%s_%d.pb", folder, kind, out->count);
        if (!exists(path)) return NULL;
        struct span bytes;
        NPU_TRY(file_map_in(a, path, &bytes));
        NPU_TRY_NOTE(onnx_tensor_parse(a, bytes, &out->t[out->count], &out->names[out->count]),
                     "%s", path);
    }
    return NULL;
}

// "like" inputs of some cases have another shape than the model says: the shape cannot be given
// then.
static bool shape_fits(struct arena *a, const char *model, const struct import_shape *shape) {
    struct graph *g;
    npu_status refused =
        onnx_import(model, &(struct import_options){.shapes = shape, .nshape = 1}, a, &g);
    bool fits = npu_status_code(refused) != NPU_USAGE;
    npu_status_free(refused);
    return fits;
}

// Which inputs attempt number `attempt` binds: none, small integer ones, all but the first, all.
static bool binds(int attempt, const struct tensor_data *t, int index) {
    bool shape_like = t->rank <= 1 && (t->dtype == ISA_I64 || t->dtype == ISA_I32);
    return attempt == 0 ? false : attempt == 1 ? shape_like : attempt == 2 ? index > 0 : true;
}

static npu_status import(struct arena *a, const char *model, const struct tensors *in, int attempt,
                         struct graph **out) {
    struct import_shape shapes[TENSORS];
    struct import_const consts[TENSORS];
    struct import_options o = {.shapes = shapes, .consts = consts};
    for (int k = 0; k < in->count; k++) {
        if (binds(attempt, &in->t[k], k)) {
            consts[o.nconst++] = (struct import_const){in->names[k], in->t[k]};
            continue;
        }
        struct import_shape *s = &shapes[o.nshape];
        *s = (struct import_shape){.name = in->names[k], .rank = in->t[k].rank};
        memcpy(s->dims, in->t[k].dims, sizeof s->dims);
        if (shape_fits(a, model, s)) o.nshape++;
    }
    return onnx_import(model, &o, a, out);
}

// |got - expected| <= atol + rtol * |expected|; integers exactly.
static bool equal(const struct tensor_data *expected, const struct graph_value *v, const void *got,
                  struct str *why) {
    // NumPy has no bfloat16: the cases store its bits as uint16.
    bool bits = v->dtype == ISA_BF16 && expected->dtype == ISA_U16;
    if (expected->rank != v->rank ||
        memcmp(expected->dims, v->dims, (size_t)v->rank * sizeof *v->dims) != 0 ||
        (expected->dtype != v->dtype && !bits)) {
        struct str type = {0};
        graph_print_type(v, &type);
        str_printf(why, "'%s' is %s, expected %s of rank %d", v->name, str_text(&type),
                   isa_dtype_name(expected->dtype), expected->rank);
        str_free(&type);
        return false;
    }
    bool ints = isa_dtype_is_int(v->dtype);
    for (int64_t k = 0; k < graph_value_elems(v); k++) {
        double e = ints ? (double)num_load_i64(v->dtype, expected->data, k)
                        : (double)num_load_f32(v->dtype, expected->data, k);
        double g =
            ints ? (double)num_load_i64(v->dtype, got, k) : (double)num_load_f32(v->dtype, got, k);
        bool close =
            e == g || (isnan(e) && isnan(g)) || (!ints && fabs(g - e) <= 1e-6 + 1e-3 * fabs(e));
        if (close) continue;
        str_printf(why, "'%s'[%" PRId64 "] is %.9g, expected %.9g", v->name, k, g, e);
        return false;
    }
    return true;
}

static enum outcome run(struct arena *a, const struct graph *g, const struct tensors *in,
                        const struct tensors *expected, struct str *why) {
    const void *inputs[TENSORS];
    void *outputs[TENSORS];
    if (g->noutput > TENSORS || expected->count > g->noutput) {
        str_printf(why, "%d outputs, expected %d", g->noutput, expected->count);
        return FAIL;
    }
    npu_status failed = graph_verify(g, "after import");
    for (int k = 0; k < g->ninput; k++) {
        size_t bytes = (size_t)graph_value_bytes(g->inputs[k]);
        inputs[k] = arena_alloc(a, bytes + 1); // zeros for an input whose values have another shape
        for (int i = 0; i < in->count; i++)
            if (!strcmp(g->inputs[k]->name, in->names[i]) && in->t[i].size_bytes == bytes)
                inputs[k] = in->t[i].data;
    }
    for (int k = 0; k < g->noutput; k++)
        outputs[k] = arena_alloc(a, (size_t)graph_value_bytes(g->outputs[k]) + 1);
    if (!failed) failed = graph_eval(g, inputs, outputs, a);
    if (failed) {
        npu_status_print(failed, NULL, why);
        npu_status_free(failed);
        return FAIL;
    }
    for (int k = 0; k < expected->count; k++)
        if (!equal(&expected->t[k], g->outputs[k], outputs[k], why)) return FAIL;
    return PASS;
}

// Tensors without names are meant by position.
static npu_status name_by_position(struct arena *a, const char *model, struct tensors *in) {
    struct graph *g;
    if (!in->count || *in->names[0]) return NULL;
    NPU_TRY(onnx_import(model, NULL, a, &g));
    for (int k = 0; k < in->count && k < g->ninput; k++)
        in->names[k] = g->inputs[k]->name;
    return NULL;
}

// One data set.
static enum outcome run_set(struct arena *a, const char *model, const char *folder,
                            struct str *why) {
    struct tensors in, expected;
    struct graph *g = NULL;
    npu_status failed = read_tensors(a, folder, "input", &in);
    if (!failed) failed = read_tensors(a, folder, "output", &expected);
    if (failed) { // a sequence or an optional: the model must be refused as unsupported
        npu_status refused = onnx_import(model, NULL, a, &g);
        if (npu_status_code(refused) == NPU_UNSUPPORTED) {
            npu_status_free(failed);
            failed = refused;
        } else {
            npu_status_free(refused);
        }
    }
    if (!failed) failed = name_by_position(a, model, &in);
    for (int attempt = 0; !failed && !g && attempt < 4; attempt++) {
        npu_status refused = import(a, model, &in, attempt, &g);
        if (refused && attempt < 3 && npu_status_code(refused) == NPU_UNSUPPORTED)
            npu_status_free(refused);
        else
            failed = refused;
    }
    if (!failed) return run(a, g, &in, &expected, why);
    npu_status_print(failed, NULL, why);
    enum outcome o = npu_status_code(failed) == NPU_UNSUPPORTED ? UNSUPPORTED : FAIL;
    npu_status_free(failed);
    return o;
}

static void run_case(struct harness *h, const char *name) {
    static const char *const words[] = {"pass", "unsupported", "FAIL"};
    struct arena *a = arena_new();
    struct str why = {0};
    enum outcome o = PASS;
    int sets = 0;
    const char *model = arena_printf(a, "%s/%s/model.onnx", h->root, name);
    for (; o == PASS; sets++) {
        const char *folder = arena_printf(a, "%s/%s/test_data_set_%d", h->root, name, sets);
        if (!exists(folder)) break;
        o = run_set(a, model, folder, &why);
    }
    if (!sets) o = UNSUPPORTED;
    h->counts[o]++;
    if (o == PASS) map_put(&h->passed, name, h);
    if (h->loud || o == FAIL)
        printf("%-11s %s\n%s%s", words[o], name, str_text(&why), why.len ? "\n" : "");
    str_free(&why);
    arena_free(a);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void run_folder(struct harness *h, struct arena *a, const char *folder) {
    VEC(const char *) names = {0};
    DIR *d = opendir(arena_printf(a, "%s/%s", h->root, folder));
    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, "test_", 5))
            VEC_PUSH(a, &names, arena_printf(a, "%s/%s", folder, e->d_name));
    if (d) closedir(d);
    if (names.len) qsort(names.ptr, names.len, sizeof *names.ptr, by_name);
    for (size_t k = 0; k < names.len; k++)
        if (!map_get(&h->excluded, names.ptr[k])) run_case(h, names.ptr[k]);
}

static void run_all(struct harness *h, struct arena *a) {
    static const char *const folders[] = {"node", "pytorch-converted", "pytorch-operator",
                                          "simple"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
        run_folder(h, a, folders[k]);
}

static void read_excluded(struct harness *h, const char *path) {
    FILE *f = fopen(path, "r");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (*line == '!') map_put_n(&h->excluded, line + 1, strcspn(line + 1, " \n"), h);
    if (f) fclose(f);
}

// Names that have to pass, one a line. Returns how many did not.
static int check_required(const struct harness *h, const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) {
        printf("%s: not readable\n", path);
        return 1;
    }
    char line[256];
    int lacking = 0, listed = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || *line == '#' || *line == '!') continue;
        listed++;
        if (map_get(&h->passed, line)) continue;
        printf("required, but does not pass: %s\n", line);
        lacking++;
    }
    fclose(f);
    printf("%d of %d required cases of %s pass\n", listed - lacking, listed, path);
    return lacking + !listed;
}

int main(int argc, char *argv[]) {
    if (argc < 2) {
        fprintf(stderr,
                "usage: onnx_conformance DATA_FOLDER [REQUIRED.txt... | -- NAME... | --list]\n");
        return 2;
    }
    struct arena *a = arena_new();
    struct harness h = {.root = argv[1]};
    map_init(&h.passed, a);
    map_init(&h.excluded, a);
    int lacking = 0;
    if (argc > 2 && !strcmp(argv[2], "--")) {
        h.loud = true;
        for (int k = 3; k < argc; k++)
            run_case(&h, argv[k]);
    } else {
        h.loud = argc > 2 && !strcmp(argv[2], "--list");
        for (int k = 2; k < argc && !h.loud; k++)
            read_excluded(&h, argv[k]);
        run_all(&h, a);
        for (int k = 2; k < argc && !h.loud; k++)
            lacking += check_required(&h, argv[k]);
    }
    printf("%d pass, %d unsupported, %d fail\n", h.counts[PASS], h.counts[UNSUPPORTED],
           h.counts[FAIL]);
    arena_free(a);
    return h.counts[FAIL] || lacking;
}
