// SPDX-License-Identifier: Apache-2.0
//
// A loaded program: the image in its arena, its tensors numbered per role, its machine parsed.

#include <inttypes.h>
#include <setjmp.h>
#include <string.h>

#include "runtime/api.h"
#include "runtime/base/alloc.h"
#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"

// ---- errors and version
// ----------------------------------------------------------------------------

#define NPU_CODE(NAME, exit, label, meaning) \
    _Static_assert((int)NPU_ERROR_##NAME == (int)NPU_##NAME, "npu.h: error " #NAME);
#include "runtime/base/status.def"

enum npu_error_code npu_status_error(npu_status status) {
    return (enum npu_error_code)npu_status_code(status);
}

size_t npu_status_text(npu_status status, char *text, size_t size) {
    struct str s = {0};
    npu_status_print(status, NULL, &s);
    const char *all = s.failed ? npu_status_message(status) : str_text(&s);
    size_t length = strlen(all);
    if (size > 0) {
        size_t kept = length < size ? length : size - 1;
        memcpy(text, all, kept);
        text[kept] = '\0';
    }
    str_free(&s);
    return length;
}

const char *npu_version(void) {
    return NPU_VERSION_TEXT;
}

// ---- loading
// ---------------------------------------------------------------------------------------

static npu_status read_machine(struct npu_program *p, const char *where) {
    const struct npu_program_image *image = p->image;
    NPU_TRY_NOTE(hw_parse(image->hw_yaml, strlen(image->hw_yaml), "description", &p->machine),
                 "%s: section HW", where);
    uint64_t program = hw_hash(&p->machine, HW_PROGRAM), timing = hw_hash(&p->machine, HW_TIMING);
    if (program != image->hw_program_hash || timing != image->hw_timing_hash)
        return npu_fail(BAD_INPUT,
                        "%s: section HW: its description has hashes 0x%016" PRIx64
                        " and 0x%016" PRIx64 ", expected 0x%016" PRIx64 " and 0x%016" PRIx64
                        " (made by a version with other parameters: compile it again)",
                        where, program, timing, image->hw_program_hash, image->hw_timing_hash);
    return NULL;
}

static void number_tensors(struct npu_program *p) {
    const struct npu_program_image *image = p->image;
    for (size_t role = 0; role < NPU_ROLES; role++)
        p->by_role[role] = ARENA_ARRAY(p->arena, uint32_t, image->ntensors);
    for (size_t i = 0; i < image->ntensors; i++) {
        size_t role = (size_t)image->tensors[i].role;
        p->by_role[role][p->count[role]++] = (uint32_t)i;
    }
}

npu_status npu_program_adopt(struct arena *arena, const struct npu_program_image *image,
                             const char *where, struct npu_program **out) {
    *out = NULL;
    jmp_buf out_of_memory;
    if (setjmp(out_of_memory)) {
        arena_free(arena);
        return npu_fail(NO_MEMORY, "%s: out of memory", where);
    }
    arena_set_oom(arena, &out_of_memory);
    struct npu_program *p = ARENA_NEW(arena, struct npu_program);
    p->arena = arena;
    p->image = image;
    npu_status st = read_machine(p, where);
    if (!st) number_tensors(p);
    arena_set_oom(arena, NULL);
    if (st) {
        arena_free(arena);
    } else {
        *out = p;
    }
    return st;
}

// Opens `path`, or reads `bytes` when there is no path.
static npu_status load(const char *path, struct span bytes, struct npu_program **out) {
    const char *where = path ? path : "program";
    *out = NULL;
    struct arena *arena = arena_try_new();
    if (!arena) return npu_fail(NO_MEMORY, "%s: out of memory", where);
    jmp_buf out_of_memory;
    if (setjmp(out_of_memory)) {
        arena_free(arena);
        return npu_fail(NO_MEMORY, "%s: out of memory", where);
    }
    arena_set_oom(arena, &out_of_memory);
    struct npu_program_image *image;
    npu_status st = path ? container_open(arena, path, 0, &image)
                         : container_read(arena, bytes, where, 0, &image);
    if (st) {
        arena_free(arena);
        return st;
    }
    return npu_program_adopt(arena, image, where, out);
}

npu_status npu_program_load(const char *path, struct npu_program **out) {
    return load(path, (struct span){0}, out);
}

npu_status npu_program_load_memory(const void *bytes, size_t size, struct npu_program **out) {
    return load(NULL, (struct span){bytes, size}, out);
}

void npu_program_free(struct npu_program *program) {
    if (program) arena_free(program->arena); // the program itself lives in it
}

// ---- describing
// ------------------------------------------------------------------------------------

const char *npu_program_name(const struct npu_program *p) {
    return p->image->name;
}
const char *npu_program_producer(const struct npu_program *p) {
    return p->image->producer;
}
const char *npu_program_target(const struct npu_program *p) {
    return p->image->target;
}
const char *npu_program_machine(const struct npu_program *p) {
    return p->image->hw_yaml;
}
uint64_t npu_program_dram_bytes(const struct npu_program *p) {
    return p->image->dram_bytes;
}

const struct npu_program_image *npu_program_image_of(const struct npu_program *p) {
    return p->image;
}

static bool is_role(enum npu_role role) {
    return role == NPU_INPUT || role == NPU_OUTPUT || role == NPU_STATE;
}

size_t npu_program_tensor_count(const struct npu_program *p, enum npu_role role) {
    return is_role(role) ? p->count[role] : 0;
}

npu_status npu_program_tensor_of(const struct npu_program *p, enum npu_role role, size_t index,
                                 const struct npu_image_tensor **out) {
    *out = NULL;
    size_t count = npu_program_tensor_count(p, role);
    if (index >= count)
        return npu_fail(USAGE, "%s number %zu, the program has %zu, counted from 0",
                        container_role_name((enum container_role)role), index, count);
    *out = &p->image->tensors[p->by_role[role][index]];
    return NULL;
}

npu_status npu_program_tensor(const struct npu_program *p, enum npu_role role, size_t index,
                              struct npu_tensor_info *out) {
    *out = (struct npu_tensor_info){0};
    const struct npu_image_tensor *t;
    NPU_TRY(npu_program_tensor_of(p, role, index, &t));
    out->name = t->name;
    out->role = role;
    out->dtype = (enum npu_dtype)t->dtype;
    out->model_dtype = (enum npu_dtype)t->model_dtype;
    out->rank = t->rank;
    out->elements = 1;
    for (int i = 0; i < t->rank; i++) {
        out->dims[i] = t->dims[i];
        out->elements *= (uint64_t)t->dims[i];
    }
    out->bytes = t->bytes;
    out->index_limit = t->index_limit;
    return NULL;
}

// "'a', 'b', 'c'", the first few of a role.
static void list_tensors(const struct npu_program *p, enum npu_role role, struct str *s) {
    enum { SHOWN = 12 };
    for (size_t i = 0; i < p->count[role] && i < SHOWN; i++)
        str_printf(s, "%s'%s'", i ? ", " : "", p->image->tensors[p->by_role[role][i]].name);
    if (p->count[role] > SHOWN) str_printf(s, " and %zu more", p->count[role] - SHOWN);
    if (p->count[role] == 0) str_puts(s, "none");
}

npu_status npu_program_find(const struct npu_program *p, enum npu_role role, const char *name,
                            size_t *index) {
    *index = 0;
    if (!is_role(role)) return npu_fail(USAGE, "unknown tensor role %d", (int)role);
    for (size_t i = 0; i < p->count[role]; i++) {
        if (strcmp(p->image->tensors[p->by_role[role][i]].name, name) == 0) {
            *index = i;
            return NULL;
        }
    }
    struct str s = {0};
    list_tensors(p, role, &s);
    npu_status st = npu_fail(USAGE, "the program has no %s '%s'; it has %s",
                             container_role_name((enum container_role)role), name, str_text(&s));
    str_free(&s);
    return st;
}

size_t npu_program_entry_count(const struct npu_program *p) {
    return p->image->nentries;
}

const char *npu_program_entry(const struct npu_program *p, size_t index) {
    return index < p->image->nentries ? p->image->entries[index].name : NULL;
}
