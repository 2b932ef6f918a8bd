// SPDX-License-Identifier: Apache-2.0
// Names, positions and files of tensors.
#include "simulator/npusim/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/str.h"
#include "runtime/base/text.h"
#include "simulator/npusim/tensorproto.h"

static bool entry_uses(const struct npu_image_entry *e, uint32_t tensor) {
    for (size_t i = 0; i < e->ntensors; i++)
        if (e->tensors[i] == tensor) return true;
    return e->ntensors == 0;
}

static const char *file_name(struct arena *a, const char *name) {
    char *file = arena_strdup(a, name);
    for (char *c = file; *c; c++)
        if (*c == '/' || *c == ':') *c = '_';
    return file;
}

static npu_status list_role(struct npusim *s, enum npu_role role, const struct npu_image_entry *e,
                            struct npusim_tensors *out) {
    const size_t count = npu_program_tensor_count(s->program, role);
    *out = (struct npusim_tensors){.item = ARENA_ARRAY(s->a, struct npusim_tensor, count)};
    for (size_t i = 0; i < count; i++) {
        if (!entry_uses(e, s->program->by_role[role][i])) continue;
        struct npusim_tensor *t = &out->item[out->n++];
        NPU_TRY(npu_program_tensor(s->program, role, i, &t->info));
        t->index = i;
        t->file = file_name(s->a, t->info.name);
    }
    return NULL;
}

npu_status npusim_tensors_list(struct npusim *s) {
    const struct npu_program_image *image = npu_program_image_of(s->program);
    const int entry = container_find_entry(image, s->o->entry);
    const struct npu_image_entry *e = &image->entries[entry < 0 ? 0 : entry];
    NPU_TRY(list_role(s, NPU_INPUT, e, &s->in));
    NPU_TRY(list_role(s, NPU_OUTPUT, e, &s->out));
    return list_role(s, NPU_STATE, e, &s->state);
}

npu_status npusim_tensors_find(const struct npusim_tensors *t, const char *option, const char *name,
                               size_t *out) {
    uint64_t position;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->item[i].info.name, name) == 0) {
            *out = i;
            return NULL;
        }
    if (text_parse_u64(name, &position) && position < t->n) {
        *out = (size_t)position;
        return NULL;
    }
    struct str list = {0};
    for (size_t i = 0; i < t->n && i < 16; i++)
        str_printf(&list, "%s'%s'", i ? ", " : "", t->item[i].info.name);
    npu_status st = npu_fail(USAGE, "--%s %s: the program has no such tensor; it has %s%s", option,
                             name, t->n ? str_text(&list) : "none", t->n > 16 ? " and more" : "");
    str_free(&list);
    return st;
}

npu_status npusim_tensors_distinct(const struct npusim_tensors *t, const char *option) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(t->item[i].file, t->item[k].file) == 0)
                return npu_fail(
                    USAGE,
                    "--%ss: '%s' and '%s' would both be %s.npy; name the files with --%s NAME=FILE",
                    option, t->item[k].info.name, t->item[i].info.name, t->item[i].file, option);
    return NULL;
}

npu_status npusim_check_folder(const char *option, const char *path) {
    struct stat info;
    int failure = stat(path, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return failure ? npu_fail(IO, "--%s %s: %s", option, path, strerror(failure)) : NULL;
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

const char *npusim_find_file(struct arena *a, const char *folder, const struct npusim_tensor *t,
                             size_t position, const char *prefix, const char *tag,
                             const char *numbered) {
    const char *candidates[] = {
        arena_printf(a, "%s/%s.npy", folder, t->file),
        arena_printf(a, "%s/%s%s.npy", folder, prefix, t->file),
        tag ? arena_printf(a, "%s/%s%s.%s.npy", folder, prefix, t->file, tag) : NULL,
        arena_printf(a, "%s/%s_%zu.pb", folder, numbered, position),
    };
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] && exists(candidates[i])) return candidates[i];
    return NULL;
}

npu_status npusim_read_file(struct arena *a, const char *path, struct tensor_data *out) {
    struct span bytes;
    NPU_TRY(file_map_in(a, path, &bytes));
    const bool npy = bytes.size >= 6 && memcmp(bytes.data, "\x93NUMPY", 6) == 0;
    NPU_TRY_NOTE(npy ? npy_parse(a, bytes, out) : tensorproto_parse(a, bytes, out), "%s", path);
    return NULL;
}

static void print_shape(struct str *s, const int64_t *dims, int rank) {
    str_putc(s, '[');
    for (int i = 0; i < rank; i++)
        str_printf(s, "%s%" PRId64, i ? "," : "", dims[i]);
    str_putc(s, ']');
}

npu_status npusim_check_shape(const struct npusim_tensor *t, const struct tensor_data *file) {
    const int64_t *x = t->info.dims, *y = file->dims;
    int nx = t->info.rank, ny = file->rank;
    for (; nx > 0 && *x == 1; nx--)
        x++;
    for (; ny > 0 && *y == 1; ny--)
        y++;
    if (nx == ny && memcmp(x, y, (size_t)nx * sizeof *x) == 0) return NULL;
    struct str s = {0};
    str_printf(&s, "%s", isa_dtype_name((int)file->dtype));
    print_shape(&s, file->dims, file->rank);
    str_printf(&s, " in the file, the program has %s", npu_dtype_name(t->info.dtype));
    print_shape(&s, t->info.dims, t->info.rank);
    npu_status st = npu_fail(BAD_INPUT, "%s", str_text(&s));
    str_free(&s);
    return st;
}
