// SPDX-License-Identifier: Apache-2.0
#include "simulator/npusim/diff.h"

#include <stdio.h>

#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "simulator/npusim/uses.h"
#include "simulator/trace/diff.h"

static npu_status write_report(const struct diff *d, const char *path) {
    struct str s = {0};
    diff_json(d, &s);
    npu_status st = str_status(&s);
    if (!st) st = file_write_atomic(path, (struct span){(const uint8_t *)str_text(&s), s.len});
    str_free(&s);
    return st;
}

npu_status npusim_diff(const struct npusim_options *o, struct arena *a) {
    struct files files;
    NPU_TRY(npusim_files_named(o, a, &files));
    struct diff *d = ARENA_NEW(a, struct diff);
    struct str text = {0};
    // Both are read, so that both are told about.
    npu_status first = diff_load(a, o->program, &d->run[0]);
    NPU_TRY(npu_status_join(first, diff_load(a, o->second, &d->run[1])));
    diff_align(a, d);
    diff_text(d, &text);
    npu_status st = str_status(&text);
    if (!st) fputs(str_text(&text), stdout);
    str_free(&text);
    if (!st && o->report) st = write_report(d, o->report);
    return st;
}
