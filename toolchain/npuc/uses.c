// SPDX-License-Identifier: Apache-2.0
#include "toolchain/npuc/uses.h"

#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "toolchain/asm/asm.h"

// INPUT's name with .npu, in the current folder's terms: "models/net.onnx" gives "models/net.npu".
static const char *default_output(struct arena *a, const char *input) {
    const char *slash = strrchr(input, '/'), *dot = strrchr(input, '.');
    size_t len = dot && (!slash || dot > slash + 1) ? (size_t)(dot - input) : strlen(input);
    return arena_printf(a, "%.*s.npu", (int)len, input);
}

static bool asks_for_program(const struct npuc_options *o) {
    return o->output || !(o->info || o->disassemble || o->pass.stop_after >= 0);
}

const char *npuc_output(const struct npuc_options *o, const struct npuc_result *r,
                        struct arena *a) {
    if (!r->image || r->from_program || !asks_for_program(o)) return NULL;
    return o->output ? o->output : default_output(a, o->input);
}

// A text, and the file of its constants beside it.
static void add_emission(struct files *f, struct arena *a, const struct npuc_emission *e) {
    const char *what = arena_printf(a, "--emit %s", npuc_emit_names[e->kind]), *side = NULL;
    files_add(f, FILES_WRITE, what, e->file);
    if (e->kind == NPUC_EMIT_ASM) side = asm_side_file(a, e->file);
    if (e->kind == NPUC_EMIT_GRAPH && !file_is_direct(e->file))
        side = arena_printf(a, "%s.bin", e->file);
    if (side) files_add(f, FILES_WRITE, what, side);
}

npu_status npuc_files_named(const struct npuc_options *o, struct arena *a, struct files *f) {
    files_init(f, a);
    files_add(f, FILES_READ, "the input", o->input);
    if (o->target_given && !hw_find_preset(o->target))
        files_add(f, FILES_READ, "--target", o->target);
    for (int i = 0; i < o->constant.n; i++) {
        const char *equals = strchr(o->constant.item[i], '=');
        if (equals) files_add(f, FILES_READ, "--const", equals + 1);
    }
    if (o->output) files_add(f, FILES_WRITE, "-o", o->output);
    if (o->report) files_add(f, FILES_WRITE, "--report", o->report);
    for (int i = 0; i < o->nemit; i++)
        if (o->emit[i].file) add_emission(f, a, &o->emit[i]);
    // An input that is called like a program most likely is one, and nothing is written then.
    if (!o->output && asks_for_program(o) && strcmp(o->input, default_output(a, o->input)) != 0)
        files_add(f, FILES_WRITE, "the program", default_output(a, o->input));
    return files_check(f);
}

npu_status npuc_files_found(const struct npuc_options *o, const struct npuc_result *r,
                            struct arena *a, struct files *f) {
    const char *output = npuc_output(o, r, a);
    if (output && !o->output && strcmp(o->input, output) == 0)
        files_add(f, FILES_WRITE, "the program", output);
    files_add_mapped(f, a, "the input");
    return files_check(f);
}
