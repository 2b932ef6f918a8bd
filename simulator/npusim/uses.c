// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "simulator/npusim/uses.h"

#include <string.h>
#include <sys/stat.h>

#include "simulator/npusim/dump.h"

static void add(struct files *f, enum files_use use, const char *what, const char *path) {
    if (path) files_add(f, use, what, path);
}

static void add_pairs(struct files *f, enum files_use use, const char *what,
                      const struct npusim_list *l) {
    for (int i = 0; i < l->n; i++)
        files_add(f, use, what, l->item[i].value);
}

// The files of --dump; their form has been looked at.
static npu_status add_dumps(struct files *f, const struct npusim_list *l, struct arena *a) {
    for (int i = 0; i < l->n; i++) {
        struct dump d;
        NPU_TRY(dump_parse(a, l->item[i].value, NULL, &d));
        add(f, FILES_WRITE, "--dump", d.file);
    }
    return NULL;
}

npu_status npusim_files_named(const struct npusim_options *o, struct arena *a, struct files *f) {
    files_init(f, a);
    files_add(f, FILES_READ, o->diff ? "the first run" : "the program", o->program);
    add(f, FILES_READ, "the second run", o->second);
    add_pairs(f, FILES_OLD, "--input", &o->input);
    add_pairs(f, FILES_READ, "--expect", &o->expect);
    add(f, FILES_READ, "--check-layers", o->model);
    add(f, FILES_READ, "--crc-against", o->crc_against);
    add(f, FILES_READ, "--versus", o->versus);
    if (o->host && strcmp(o->host, "none") != 0) files_add(f, FILES_READ, "--host", o->host);
    add_pairs(f, FILES_NEW, "--output", &o->output);
    add(f, FILES_FOLDER, "--outputs", o->outputs);
    add(f, FILES_WRITE, "--crc", o->crc);
    NPU_TRY(add_dumps(f, &o->dump, a));
    add_pairs(f, FILES_WRITE, "--trace", &o->trace_file);
    add(f, FILES_WRITE, "--report", o->report);
    return files_check(f);
}

npu_status npusim_files_found(struct npusim *s, struct files *f) {
    const struct npusim_options *o = s->o;
    NPU_TRY(npusim_outputs_find(s));
    struct stat info; // what is made later holds nothing that could be lost
    const bool folder = o->outputs && stat(o->outputs, &info) == 0;
    for (size_t i = 0; i < s->out.n; i++) {
        const struct npusim_tensor *t = &s->out.item[i];
        add(f, FILES_READ, "--expects", t->expected);
        if (folder) files_add(f, FILES_WRITE, "--outputs", npusim_output_path(s, t));
    }
    files_add_mapped(f, s->a, "the input");
    return files_check(f);
}
