// SPDX-License-Identifier: Apache-2.0
// npuc: command line, out-of-memory handling, and what is written.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/progress.h"
#include "runtime/base/standard.h"
#include "runtime/base/str.h"
#include "toolchain/asm/asm.h"
#include "toolchain/npuc/compile.h"
#include "toolchain/npuc/uses.h"

static void print(struct str *text) {
    fwrite(str_text(text), 1, text->len, stdout);
    str_free(text);
}

static void print_shown(const char *name) {
    struct str s = {0};
    str_shown(&s, name);
    fputs(str_text(&s), stderr);
    str_free(&s);
}

static void summary(const struct npuc_options *o, const struct npuc_result *r, const char *path) {
    if (o->quiet) return;
    fprintf(stderr, "npuc: %s for ", path);
    print_shown(r->image->target);
    fprintf(stderr, ": ");
    if (r->tiles)
        fprintf(stderr,
                "%d layers, %d instructions, %zu bytes of code, %llu bytes of DRAM, scratchpad "
                "%lld of %lld bytes\n",
                r->tiles->nkernel, r->instructions, r->image->code.size,
                (unsigned long long)r->image->dram_bytes, (long long)r->tiles->spm_peak_bytes,
                (long long)r->hw.spm_bytes);
    else
        fprintf(stderr, "%zu bytes of code\n", r->image->code.size);
    if (r->image->entries[0].nlaunches)
        fprintf(stderr, "npuc: %zu launches\n", r->image->entries[0].nlaunches);
    if (r->passes.kept_f32) {
        fprintf(stderr,
                "npuc: %d nodes keep f32 because a constant overflows %s:", r->passes.kept_f32,
                o->dtype);
        for (int i = 0; i < r->passes.kept_f32; i++) {
            fputc(' ', stderr);
            print_shown(r->passes.kept_names[i]);
        }
        fprintf(stderr, "\n");
    }
}

// The text goes to standard output, where the program itself does not: with a .npu as input, to -o.
static npu_status inspect(const struct npuc_options *o, const struct npuc_result *r) {
    struct str text = {0};
    if (!r->image)
        return npu_fail(USAGE, "--%s needs a program or a model compiled to the end",
                        o->info ? "info" : "disassemble");
    npu_status st = NULL;
    if (o->info)
        npuc_info(r->image, &text);
    else
        st = asm_print_image(r->image, r->from_program ? o->input : NULL, NULL, &text);
    if (!st) st = str_status(&text);
    if (!st && r->from_program && o->output) {
        st = file_write_atomic(o->output, (struct span){.data = (const uint8_t *)str_text(&text),
                                                        .size = text.len});
        str_free(&text);
    } else if (!st) {
        print(&text);
    } else {
        str_free(&text);
    }
    return st;
}

// Whether passes print: no bar then.
static bool prints(const struct npuc_options *o) {
    bool any = o->quiet || o->pass.stats;
    for (int i = 0; i < PASS_COUNT; i++)
        any |= o->pass.dump[i];
    return any;
}

static npu_status run(const struct npuc_options *o, struct arena *a) {
    struct npuc_result r = {0};
    struct files files;
    if (o->list) return npuc_list(o->list);
    NPU_TRY(npuc_files_named(o, a, &files));
    if (!prints(o)) progress_start("npuc", STDERR_FILENO, 1.0);
    NPU_TRY(npuc_compile(o, a, &r));
    NPU_TRY(npuc_files_found(o, &r, a, &files));
    const bool printed = o->info || o->disassemble;
    if (printed) progress_end();
    if (printed) NPU_TRY(inspect(o, &r));
    const char *path = npuc_output(o, &r, a);
    NPU_TRY(npuc_emit(o, &r));
    NPU_TRY(npuc_report(o, &r));
    if (!path) return NULL;
    progress_stage("writing", 0, 90, 100);
    NPU_TRY(container_write(r.image, path));
    progress_end();
    summary(o, &r, path);
    return NULL;
}

int main(int argc, char **argv) {
    jmp_buf oom;
    standard_init("npuc");
    struct arena *a = arena_new();
    struct npuc_options o;
    if (setjmp(oom)) {
        arena_free(a);
        fprintf(stderr, "npuc: error: out of memory\n");
        return 6;
    }
    arena_set_oom(a, &oom);
    npu_status st = npuc_options_parse(argc, argv, a, &o);
    npu_status_show_source(o.verbose);
    if (!st) st = run(&o, a);
    progress_end();
    st = standard_finish(st);
    arena_free(a);
    return npu_status_report(st, "npuc");
}
