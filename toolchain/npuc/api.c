// SPDX-License-Identifier: Apache-2.0
// npu_compile of the installed library: the pipeline of compile.c in the caller's process. What
// npuc does at the ends of it (progress, messages, exit) has no place here: an outcome is a status,
// and out of memory comes back as one.
#include <jansson.h>
#include <setjmp.h>

#include "runtime/include/npu/compiler.h"
#include "toolchain/npuc/compile.h"
#include "toolchain/npuc/uses.h"

static npu_status compile(const char *input, const char *output, const char *const *options,
                          size_t count, struct arena *a) {
    struct npuc_options o;
    struct npuc_result r = {0};
    struct files files;
    NPU_TRY(npuc_options_words(count, options, a, &o));
    o.input = input;
    o.output = output;
    o.quiet = true;
    NPU_TRY(npuc_files_named(&o, a, &files));
    NPU_TRY(npuc_compile(&o, a, &r));
    NPU_TRY(npuc_files_found(&o, &r, a, &files));
    if (!r.image || r.from_program)
        return npu_fail(USAGE, "%s is a program already; npu_program_load loads it", input);
    NPU_TRY(npuc_emit(&o, &r));
    NPU_TRY(npuc_report(&o, &r));
    return container_write(r.image, output);
}

npu_status npu_compile(const char *input, const char *output, const char *const *options,
                       size_t count) {
    if (!input || !output || (count && !options))
        return npu_fail(USAGE, "npu_compile: an input and an output file are needed");
    struct arena *a = arena_try_new();
    if (!a) return npu_fail(NO_MEMORY, "%s: out of memory", input);
    json_malloc_t json_alloc; // of the program that we are a guest of
    json_free_t json_free;
    json_get_alloc_funcs(&json_alloc, &json_free);
    npu_status st;
    jmp_buf oom;
    if (setjmp(oom)) {
        st = npu_fail(NO_MEMORY, "%s: out of memory", input);
    } else {
        arena_set_oom(a, &oom);
        st = compile(input, output, options, count, a);
    }
    json_set_alloc_funcs(json_alloc, json_free);
    arena_free(a);
    return st;
}
