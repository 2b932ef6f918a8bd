// SPDX-License-Identifier: Apache-2.0
//
// A program in a device's memory. Making one: compare machines, reserve the program's DRAM as one
// range, write code and state, let constants be seen in the mapped file. A run: write bound inputs,
// make scratch unwritten, submit the entry's launches in order; waiting takes their completions in
// that order and reads bound outputs. Conversion goes through a buffer of fixed size.

#include <inttypes.h>
#include <string.h>

#include "runtime/api.h"
#include "runtime/base/alloc.h"
#include "runtime/base/diag.h"
#include "runtime/base/hw_yaml.h"
#include "runtime/base/str.h"

enum {
    CONVERT_ELEMENTS = 64 * 1024,        // even: 4-bit types stay whole bytes
    CONVERT_BYTES = CONVERT_ELEMENTS * 8 // of the widest type
};

// What the caller said about one tensor of the image.
struct slot {
    bool written;     // has been given a value at least once
    const void *from; // bound input, lent
    void *to;         // bound output, lent
    enum npu_dtype dtype;
};

struct npu_session {
    struct npu_device *device;
    const struct npu_program *program;
    uint64_t base; // of the program's DRAM on the device
    bool allocated;
    size_t entry;
    uint64_t doorbell[NPU_DOORBELLS];
    struct slot *slots; // per tensor of the image
    uint8_t *buffer;    // CONVERT_BYTES
    uint64_t *tickets;  // of the run on its way
    size_t ntickets, ticket_capacity;
    bool running;
};

// ---- making
// ----------------------------------------------------------------------------------------

static npu_status check_machine(const struct npu_device *device,
                                const struct npu_program *program) {
    struct hw machine;
    device->ops->describe(device->handle, &machine);
    if (hw_hash(&machine, HW_PROGRAM) == program->image->hw_program_hash) return NULL;
    struct str diff = {0};
    npu_status st = npu_fail(BAD_INPUT,
                             "program '%s' was compiled for another machine ('%s'); compile it for "
                             "that of device '%s'",
                             program->image->name, program->image->target, device->ops->name);
    if (hw_diff(&program->machine, &machine, HW_SET_PROGRAM, &diff) > 0 && diff.data) {
        char *line = diff.data;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            st = npu_note(st, "%s", line);
        }
    }
    str_free(&diff);
    return st;
}

static npu_status write_zeros(struct npu_session *s, uint64_t offset, uint64_t bytes) {
    memset(s->buffer, 0, CONVERT_BYTES);
    while (bytes > 0) {
        size_t part = bytes < CONVERT_BYTES ? (size_t)bytes : CONVERT_BYTES;
        NPU_TRY(s->device->ops->write(s->device->handle, s->base + offset,
                                      (struct span){s->buffer, part}));
        offset += part;
        bytes -= part;
    }
    return NULL;
}

static npu_status load_segment(struct npu_session *s, const struct npu_image_segment *segment) {
    const struct npu_device_ops *ops = s->device->ops;
    struct span bytes = container_segment_bytes(s->program->image, segment);
    uint64_t address = s->base + segment->dram_offset;
    if (segment->kind == CONTAINER_SEGMENT_STATE) { // what has no first value is zero
        if (bytes.size) NPU_TRY(ops->write(s->device->handle, address, bytes));
        return write_zeros(s, segment->dram_offset + bytes.size, segment->bytes - bytes.size);
    }
    if (bytes.size == 0) return NULL; // unwritten
    if (ops->map_const) return ops->map_const(s->device->handle, address, bytes);
    return ops->write(s->device->handle, address, bytes);
}

static npu_status load_program(struct npu_session *s) {
    const struct npu_program_image *image = s->program->image;
    uint64_t alignment = s->device->dram_alignment;
    for (size_t i = 0; i < image->nsegments; i++)
        if (image->segments[i].alignment > alignment) alignment = image->segments[i].alignment;
    NPU_TRY_NOTE(s->device->ops->alloc(s->device->handle, image->dram_bytes, alignment, &s->base),
                 "program '%s'", image->name);
    s->allocated = true;
    for (size_t i = 0; i < image->nsegments; i++)
        NPU_TRY_NOTE(load_segment(s, &image->segments[i]), "loading the %s of program '%s'",
                     container_segment_name(image->segments[i].kind), image->name);
    return NULL;
}

static npu_status out_of_memory(const struct npu_session *s) {
    return npu_fail(NO_MEMORY, "program '%s': out of memory", s->program->image->name);
}

npu_status npu_session_new(struct npu_device *device, const struct npu_program *program,
                           struct npu_session **out) {
    *out = NULL;
    NPU_TRY(check_machine(device, program));
    struct npu_session *s = base_alloc(sizeof *s);
    if (!s) return npu_fail(NO_MEMORY, "program '%s': out of memory", program->image->name);
    s->device = device;
    s->program = program;
    s->slots = base_alloc_array(program->image->ntensors, sizeof *s->slots);
    s->buffer = base_alloc(CONVERT_BYTES);
    size_t launches = 1;
    for (size_t i = 0; i < program->image->nentries; i++)
        if (program->image->entries[i].nlaunches > launches)
            launches = program->image->entries[i].nlaunches;
    s->ticket_capacity = launches;
    s->tickets = base_alloc_array(launches, sizeof *s->tickets);
    npu_status st = NULL;
    if (!s->slots || !s->buffer || !s->tickets) {
        st = out_of_memory(s);
    } else {
        st = load_program(s);
    }
    if (st) {
        npu_session_free(s);
        return st;
    }
    *out = s;
    return NULL;
}

// Takes the completions of what was submitted; the first fault wins, the rest are still waited for.
static npu_status collect(struct npu_session *s, struct npu_run_info *info) {
    npu_status first = NULL;
    for (size_t i = 0; i < s->ntickets; i++) {
        struct npu_completion done = {0};
        npu_status st = s->device->ops->wait(s->device->handle, s->tickets[i], &done);
        if (st && !first) {
            first = st;
            continue;
        }
        npu_status_free(st);
        if (first) continue;
        if (i == 0) info->start_cycle = done.start_cycle;
        info->end_cycle = done.end_cycle;
        info->busy_cycles += done.end_cycle - done.start_cycle;
        info->submissions++;
    }
    s->ntickets = 0;
    s->running = false;
    return first;
}

struct npu_device *npu_session_device(const struct npu_session *s) {
    return s->device;
}

const struct npu_program *npu_session_program(const struct npu_session *s) {
    return s->program;
}

bool npu_session_uses(const struct npu_session *s, enum npu_role role, size_t index) {
    const struct npu_image_entry *e = &s->program->image->entries[s->entry];
    const uint32_t tensor = s->program->by_role[role][index];
    for (size_t i = 0; i < e->ntensors; i++)
        if (e->tensors[i] == tensor) return true;
    return e->ntensors == 0;
}

void npu_session_free(struct npu_session *s) {
    if (!s) return;
    struct npu_run_info ignored = {0};
    npu_status_free(collect(s, &ignored));
    if (s->allocated) s->device->ops->release(s->device->handle, s->base);
    base_free(s->slots);
    base_free(s->buffer);
    base_free(s->tickets);
    base_free(s);
}

// ---- values
// ----------------------------------------------------------------------------------------

static struct slot *slot_of(struct npu_session *s, const struct npu_image_tensor *t) {
    return &s->slots[t - s->program->image->tensors];
}

static uint64_t element_count(const struct npu_image_tensor *t) {
    uint64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= (uint64_t)t->dims[i];
    return count;
}

// Whether `bytes` of `dtype` are the whole tensor.
static npu_status check_buffer(const struct npu_image_tensor *t, enum npu_dtype dtype,
                               size_t bytes) {
    const char *role = container_role_name(t->role);
    if (npu_dtype_bits(dtype) == 0)
        return npu_fail(USAGE, "%s '%s': unknown element type %d", role, t->name, (int)dtype);
    uint64_t expected = npu_dtype_bytes(dtype, element_count(t));
    if (bytes != expected)
        return npu_fail(BAD_INPUT,
                        "%s '%s': %zu bytes given, %" PRIu64 " elements of %s are %" PRIu64, role,
                        t->name, bytes, element_count(t), npu_dtype_name(dtype), expected);
    return NULL;
}

static npu_status check_idle(const struct npu_session *s) {
    if (!s->running) return NULL;
    return npu_fail(USAGE, "program '%s' runs: wait for it first", s->program->image->name);
}

static npu_status write_tensor(struct npu_session *s, const struct npu_image_tensor *t,
                               enum npu_dtype dtype, const void *data) {
    const struct npu_device_ops *ops = s->device->ops;
    enum npu_dtype own = (enum npu_dtype)t->dtype;
    uint64_t address = s->base + t->dram_offset, count = element_count(t);
    if (dtype == own && own != NPU_BOOL)
        return t->bytes == 0
                   ? NULL
                   : ops->write(s->device->handle, address, (struct span){data, (size_t)t->bytes});
    for (uint64_t done = 0; done < count; done += CONVERT_ELEMENTS) {
        uint64_t part = count - done < CONVERT_ELEMENTS ? count - done : CONVERT_ELEMENTS;
        const char *from = (const char *)data + npu_dtype_bytes(dtype, done);
        NPU_TRY_NOTE(npu_convert(own, s->buffer, dtype, from, part),
                     "%s '%s', elements from %" PRIu64, container_role_name(t->role), t->name,
                     done);
        NPU_TRY(ops->write(s->device->handle, address + npu_dtype_bytes(own, done),
                           (struct span){s->buffer, (size_t)npu_dtype_bytes(own, part)}));
    }
    return NULL;
}

static npu_status read_tensor(struct npu_session *s, const struct npu_image_tensor *t,
                              enum npu_dtype dtype, void *data) {
    const struct npu_device_ops *ops = s->device->ops;
    enum npu_dtype own = (enum npu_dtype)t->dtype;
    uint64_t address = s->base + t->dram_offset, count = element_count(t);
    if (dtype == own)
        return t->bytes == 0 ? NULL : ops->read(s->device->handle, address, data, (size_t)t->bytes);
    for (uint64_t done = 0; done < count; done += CONVERT_ELEMENTS) {
        uint64_t part = count - done < CONVERT_ELEMENTS ? count - done : CONVERT_ELEMENTS;
        NPU_TRY(ops->read(s->device->handle, address + npu_dtype_bytes(own, done), s->buffer,
                          (size_t)npu_dtype_bytes(own, part)));
        char *to = (char *)data + npu_dtype_bytes(dtype, done);
        NPU_TRY_NOTE(npu_convert(dtype, to, own, s->buffer, part),
                     "%s '%s', elements from %" PRIu64, container_role_name(t->role), t->name,
                     done);
    }
    return NULL;
}

npu_status npu_session_write(struct npu_session *s, enum npu_role role, size_t index,
                             enum npu_dtype dtype, const void *data, size_t bytes) {
    const struct npu_image_tensor *t;
    NPU_TRY(npu_program_tensor_of(s->program, role, index, &t));
    if (role == NPU_OUTPUT) return npu_fail(USAGE, "output '%s' cannot be written", t->name);
    NPU_TRY(check_idle(s));
    NPU_TRY(check_buffer(t, dtype, bytes));
    NPU_TRY(write_tensor(s, t, dtype, data));
    slot_of(s, t)->written = true;
    return NULL;
}

npu_status npu_session_reset(struct npu_session *s) {
    const struct npu_program_image *image = s->program->image;
    NPU_TRY(check_idle(s));
    for (size_t i = 0; i < image->nsegments; i++)
        if (image->segments[i].kind == CONTAINER_SEGMENT_STATE)
            NPU_TRY_NOTE(load_segment(s, &image->segments[i]), "states of program '%s'",
                         image->name);
    return NULL;
}

npu_status npu_session_read(struct npu_session *s, enum npu_role role, size_t index,
                            enum npu_dtype dtype, void *data, size_t bytes) {
    const struct npu_image_tensor *t;
    NPU_TRY(npu_program_tensor_of(s->program, role, index, &t));
    if (role == NPU_INPUT) return npu_fail(USAGE, "input '%s' cannot be read back", t->name);
    NPU_TRY(check_idle(s));
    NPU_TRY(check_buffer(t, dtype, bytes));
    return read_tensor(s, t, dtype, data);
}

npu_status npu_session_bind_input(struct npu_session *s, size_t index, enum npu_dtype dtype,
                                  const void *data, size_t bytes) {
    const struct npu_image_tensor *t;
    NPU_TRY(npu_program_tensor_of(s->program, NPU_INPUT, index, &t));
    NPU_TRY(check_idle(s));
    if (data) NPU_TRY(check_buffer(t, dtype, bytes));
    slot_of(s, t)->from = data;
    slot_of(s, t)->dtype = dtype;
    return NULL;
}

npu_status npu_session_bind_output(struct npu_session *s, size_t index, enum npu_dtype dtype,
                                   void *data, size_t bytes) {
    const struct npu_image_tensor *t;
    NPU_TRY(npu_program_tensor_of(s->program, NPU_OUTPUT, index, &t));
    NPU_TRY(check_idle(s));
    if (data) NPU_TRY(check_buffer(t, dtype, bytes));
    slot_of(s, t)->to = data;
    slot_of(s, t)->dtype = dtype;
    return NULL;
}

// ---- running
// ---------------------------------------------------------------------------------------

npu_status npu_session_set_entry(struct npu_session *s, const char *name) {
    const struct npu_program_image *image = s->program->image;
    NPU_TRY(check_idle(s));
    int found = container_find_entry(image, name);
    if (found >= 0) {
        s->entry = (size_t)found;
        return NULL;
    }
    struct str list = {0};
    for (size_t i = 0; i < image->nentries && i < 12; i++)
        str_printf(&list, "%s'%s'", i ? ", " : "", image->entries[i].name);
    npu_status st = npu_fail(USAGE, "program '%s' has no entry point '%s'; it has %s", image->name,
                             name, str_text(&list));
    str_free(&list);
    return st;
}

npu_status npu_session_set_scalar(struct npu_session *s, unsigned index, uint64_t value) {
    if (index >= NPU_DOORBELLS)
        return npu_fail(USAGE, "scalar %u, they are numbered 0..%d", index, NPU_DOORBELLS - 1);
    NPU_TRY(check_idle(s));
    s->doorbell[index] = value;
    return NULL;
}

// Calls visit for every tensor that the selected entry uses.
static npu_status each_tensor(struct npu_session *s, enum container_role role,
                              npu_status (*visit)(struct npu_session *,
                                                  const struct npu_image_tensor *)) {
    const struct npu_program_image *image = s->program->image;
    const struct npu_image_entry *e = &image->entries[s->entry];
    struct diag faults = {0};
    size_t count = e->ntensors ? e->ntensors : image->ntensors;
    for (size_t i = 0; i < count; i++) {
        const struct npu_image_tensor *t = &image->tensors[e->ntensors ? e->tensors[i] : i];
        if (t->role == role) diag_add(&faults, visit(s, t));
    }
    return diag_finish(&faults);
}

static npu_status require_input(struct npu_session *s, const struct npu_image_tensor *t) {
    const struct slot *slot = slot_of(s, t);
    if (slot->written || slot->from || t->bytes == 0) return NULL;
    return npu_fail(USAGE, "input '%s' was never given", t->name);
}

static npu_status write_bound(struct npu_session *s, const struct npu_image_tensor *t) {
    struct slot *slot = slot_of(s, t);
    if (!slot->from) return NULL;
    NPU_TRY(write_tensor(s, t, slot->dtype, slot->from));
    slot->written = true;
    return NULL;
}

static npu_status read_bound(struct npu_session *s, const struct npu_image_tensor *t) {
    const struct slot *slot = slot_of(s, t);
    return slot->to ? read_tensor(s, t, slot->dtype, slot->to) : NULL;
}

static npu_status submit_launch(struct npu_session *s, size_t launch, uint64_t code_offset) {
    const struct npu_program_image *image = s->program->image;
    struct npu_submission submission = {
        .dram_base = s->base,
        .dram_bytes = image->dram_bytes,
        .code_bytes = image->code.size,
        .code_offset = code_offset,
        .image = image,
        .entry = &image->entries[s->entry],
        .launch = launch,
    };
    for (size_t i = 0; i < image->nsegments; i++)
        if (image->segments[i].kind == CONTAINER_SEGMENT_CODE)
            submission.code_base = image->segments[i].dram_offset;
    memcpy(submission.doorbell, s->doorbell, sizeof submission.doorbell);
    NPU_TRY(s->device->ops->submit(s->device->handle, &submission, &s->tickets[s->ntickets]));
    s->ntickets++;
    return NULL;
}

static npu_status start(struct npu_session *s) {
    const struct npu_program_image *image = s->program->image;
    const struct npu_device_ops *ops = s->device->ops;
    const struct npu_image_entry *e = &image->entries[s->entry];
    NPU_TRY(each_tensor(s, CONTAINER_ROLE_INPUT, require_input));
    NPU_TRY(each_tensor(s, CONTAINER_ROLE_INPUT, write_bound));
    for (size_t i = 0; ops->discard && i < image->nsegments; i++)
        if (image->segments[i].kind == CONTAINER_SEGMENT_SCRATCH)
            NPU_TRY(ops->discard(s->device->handle, s->base + image->segments[i].dram_offset,
                                 image->segments[i].bytes));
    if (e->nlaunches == 0) return submit_launch(s, 0, e->code_offset);
    for (size_t i = 0; i < e->nlaunches; i++)
        NPU_TRY_NOTE(submit_launch(s, i, e->launches[i].code_offset), "launch %zu", i);
    return NULL;
}

npu_status npu_session_submit(struct npu_session *s) {
    NPU_TRY(check_idle(s));
    npu_status st = start(s);
    if (st) { // what is already on its way must not outlive the failure
        struct npu_run_info ignored = {0};
        npu_status_free(collect(s, &ignored));
        return npu_note(st, "starting program '%s'", s->program->image->name);
    }
    s->running = true;
    return NULL;
}

npu_status npu_session_wait(struct npu_session *s, struct npu_run_info *info) {
    struct npu_run_info own = {0};
    if (info) *info = own;
    if (!s->running)
        return npu_fail(USAGE, "program '%s' was not submitted", s->program->image->name);
    NPU_TRY_NOTE(collect(s, &own), "running program '%s'", s->program->image->name);
    if (info) *info = own;
    return each_tensor(s, CONTAINER_ROLE_OUTPUT, read_bound);
}

npu_status npu_session_run(struct npu_session *s, struct npu_run_info *info) {
    if (info) *info = (struct npu_run_info){0};
    NPU_TRY(npu_session_submit(s));
    return npu_session_wait(s, info);
}
