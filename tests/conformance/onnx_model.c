// SPDX-License-Identifier: Apache-2.0
//
//   onnx_model MODEL.onnx CASE_FOLDER RTOL ATOL [--print] [--tag=TAG] [NAME=DIMS...]
//
// Imports a whole model, runs it with the reference kernels on CASE_FOLDER/in_NAME.npy and compares
// with CASE_FOLDER/out_NAME.TAG.npy (default ort_fp32), element by element: |got - expected| <=
// ATOL + RTOL * |expected|. Exit status 77 when the model is not there (models that are fetched are
// optional).

#define _XOPEN_SOURCE 700

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "isa/numeric.h"
#include "runtime/base/npy.h"
#include "runtime/base/str.h"
#include "toolchain/frontend/onnx/onnx.h"

enum { TENSORS = 64, SKIPPED = 77 };

static const char *file_of(struct arena *a, const char *folder, const char *kind, const char *name,
                           const char *end) {
    char *file = arena_strdup(a, name);
    for (char *c = file; *c; c++)
        if (*c == '/' || *c == ':') *c = '_';
    return arena_printf(a, "%s/%s_%s%s", folder, kind, file, end);
}

// "x=1,3,48,192"
static bool parse_shape(char *text, struct import_shape *out) {
    char *equals = strchr(text, '=');
    if (!equals) return false;
    *equals = 0;
    *out = (struct import_shape){.name = text};
    for (char *p = equals + 1; *p && out->rank < GRAPH_MAX_RANK;) {
        out->dims[out->rank++] = strtoll(p, &p, 10);
        if (*p) p++;
    }
    return true;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct tolerance {
    double rtol, atol;
};

// Elements out of tolerance; the worst is printed.
static int64_t compare(const struct graph_value *v, const void *got,
                       const struct tensor_data *expected, struct tolerance tol) {
    int64_t bad = 0, worst = 0, n = graph_value_elems(v);
    double largest = -1;
    if (expected->dtype != v->file_dtype && expected->dtype != v->dtype) return n + 1;
    for (int64_t k = 0; k < n; k++) {
        double e = (double)num_load_f32(expected->dtype, expected->data, k),
               g = (double)num_load_f32(v->dtype, got, k);
        double off = fabs(g - e), allowed = tol.atol + tol.rtol * fabs(e);
        if (isnan(g) != isnan(e)) off = HUGE_VAL;
        if (off > allowed) bad++;
        if (off / allowed > largest) {
            largest = off / allowed;
            worst = k;
        }
    }
    printf("%s: %" PRId64 " elements, %" PRId64
           " out of tolerance; worst %.3f of what is allowed, at %" PRId64 "\n",
           v->name, n, bad, largest, worst);
    return bad;
}

static npu_status run_case(struct arena *a, const struct graph *g, const char *folder,
                           const char *tag, struct tolerance tol, int64_t *bad) {
    const void *inputs[TENSORS];
    void *outputs[TENSORS];
    struct tensor_data t;
    for (int k = 0; k < g->ninput; k++) {
        NPU_TRY(npy_read(a, file_of(a, folder, "in", g->inputs[k]->name, ".npy"), &t));
        void *converted = arena_alloc(a, (size_t)graph_value_bytes(g->inputs[k]) + 1);
        num_convert(g->inputs[k]->dtype, converted, t.dtype, t.data,
                    (size_t)graph_value_elems(g->inputs[k]));
        inputs[k] = converted;
    }
    for (int k = 0; k < g->noutput; k++)
        outputs[k] = arena_alloc(a, (size_t)graph_value_bytes(g->outputs[k]) + 1);
    double start = now();
    NPU_TRY(graph_eval(g, inputs, outputs, a));
    printf("evaluated in %.3f s\n", now() - start);
    for (int k = 0; k < g->noutput; k++) {
        const char *path =
            file_of(a, folder, "out", g->outputs[k]->name, arena_printf(a, ".%s.npy", tag));
        NPU_TRY(npy_read(a, path, &t));
        *bad += compare(g->outputs[k], outputs[k], &t, tol);
    }
    return NULL;
}

int main(int argc, char *argv[]) {
    if (argc < 5) {
        fprintf(stderr, "usage: onnx_model MODEL.onnx CASE_FOLDER RTOL ATOL [--print] [--tag=TAG] "
                        "[NAME=DIMS...]\n");
        return 2;
    }
    FILE *there = fopen(argv[1], "rb");
    if (!there) {
        printf("no %s, skipped\n", argv[1]);
        return SKIPPED;
    }
    fclose(there);
    struct import_shape shapes[TENSORS];
    struct import_options options = {.shapes = shapes};
    bool print = false;
    const char *tag = "ort_fp32";
    for (int k = 5; k < argc; k++) {
        if (!strcmp(argv[k], "--print"))
            print = true;
        else if (!strncmp(argv[k], "--tag=", 6))
            tag = argv[k] + 6;
        else if (options.nshape < TENSORS && parse_shape(argv[k], &shapes[options.nshape]))
            options.nshape++;
    }
    struct arena *a = arena_new();
    struct graph *g = NULL;
    int64_t bad = 0;
    double start = now();
    npu_status failed = onnx_import(argv[1], &options, a, &g);
    if (!failed) {
        printf("imported in %.3f s\n", now() - start);
        struct str text = {0};
        if (print) graph_print(g, &text);
        fputs(str_text(&text), stdout);
        str_free(&text);
        failed = graph_verify(g, "after import");
    }
    struct tolerance tol = {strtod(argv[3], NULL), strtod(argv[4], NULL)};
    if (!failed) failed = run_case(a, g, argv[2], tag, tol, &bad);
    int status = npu_status_report(failed, "onnx_model");
    arena_free(a);
    return status ? status : bad > 0;
}
