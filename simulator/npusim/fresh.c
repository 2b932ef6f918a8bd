// SPDX-License-Identifier: Apache-2.0
// A second program, device and session beside those of the command, for the time of one run.
#include "simulator/npusim/fresh.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/include/npu/simulator.h"
#include "simulator/exec/val.h"
#include "simulator/npusim/crc.h"
#include "toolchain/npuc/record.h"

struct fresh {
    struct npusim s;
    struct npusim_options o;
    struct writes writes;
    struct span file; // of the program, in the arena
    bool same_code, same_constants;
};

static bool same_bytes(struct span a, struct span b) {
    return a.size == b.size && (a.size == 0 || !memcmp(a.data, b.data, a.size));
}

static npu_status compile(struct npusim *s, struct fresh *f) {
    const struct npu_program_image *image = npu_program_image_of(s->program), *made;
    NPU_TRY(npuc_recompile(image, s->o->program, s->o->model, s->a, &made));
    NPU_TRY(container_write_memory(made, s->a, &f->file));
    NPU_TRY(npu_program_load_memory(f->file.data, f->file.size, &f->s.program));
    made = npu_program_image_of(f->s.program);
    f->same_code = same_bytes(image->code, made->code);
    f->same_constants =
        image->nweights == made->nweights &&
        (!image->nweights || same_bytes(image->weights[0].bytes, made->weights[0].bytes));
    return NULL;
}

static npu_status run(struct fresh *f) {
    struct npusim *s = &f->s;
    const struct npu_simulator_config config = {.machine =
                                                    npu_program_image_of(s->program)->hw_yaml};
    NPU_TRY(npu_device_open(npu_simulator_ops(), &config, &s->device));
    NPU_TRY(npu_session_new(s->device, s->program, &s->session));
    if (s->o->entry) NPU_TRY(npu_session_set_entry(s->session, s->o->entry));
    NPU_TRY(npusim_tensors_list(s));
    NPU_TRY(npusim_set_scalars(s));
    NPU_TRY(npusim_set_inputs(s));
    struct sim_device *d = sim_device_of(s->device);
    f->writes.device = d;
    sim_device_watch(d, writes_add, &f->writes);
    sim_device_begin(d, NULL);
    return npu_session_run(s->session, NULL);
}

static void print_bytes(struct str *out, const struct write *w) {
    str_printf(out, "%" PRId64 " bytes in %s 0x%" PRIx64 " to 0x%" PRIx64 ", crc 0x%08" PRIx32,
               foot_bytes(&w->foot), isa_space_name(w->space), (uint64_t)w->foot.lo,
               (uint64_t)w->foot.hi - 1, w->crc);
}

static npu_status say(struct npusim *s, struct fresh *f, const struct writes *w,
                      const struct trace_log *log, struct str *out) {
    const struct npu_program_image *image = npu_program_image_of(s->program),
                                   *made = npu_program_image_of(f->s.program);
    size_t first, theirs;
    uint64_t start, done;
    NPU_TRY(crc_first_difference(image, w, made, &f->writes, &first, &theirs));
    str_printf(out, "\n  this npuc makes %s of the model; ",
               !f->same_code        ? "other instructions"
               : !f->same_constants ? "other constants"
                                    : "the same program");
    if (first == SIZE_MAX) {
        str_puts(out, "every instruction writes the same there");
        return NULL;
    }
    str_puts(out, "the first instruction that writes something else:\n    ");
    writes_print_place(out, image, &w->item[first].at);
    if (writes_cycles(log, &w->item[first], &start, &done))
        str_printf(out, "\n    cycles %" PRIu64 " to %" PRIu64, start, done);
    str_puts(out, "\n    writes ");
    print_bytes(out, &w->item[first]);
    if (theirs == SIZE_MAX) {
        str_puts(out, "\n    where npuc has no instruction");
        return NULL;
    }
    str_puts(out, "\n    where npuc's is ");
    writes_print_place(out, made, &f->writes.item[theirs].at);
    str_puts(out, "\n    writes ");
    print_bytes(out, &f->writes.item[theirs]);
    return NULL;
}

// The same program: whether the plainest of the host's code paths computes something else.
static npu_status say_path(struct npusim *s, struct fresh *f, const struct writes *w,
                           const struct trace_log *log, struct str *out) {
    const enum val_isa used = val_isa_used();
    const struct npu_program_image *image = npu_program_image_of(s->program);
    size_t first = SIZE_MAX, theirs;
    uint64_t start, done;
    str_puts(out, "\n  this npuc makes the same program of the model: the fault is in how it is "
                  "compiled or simulated, not in this file");
    if (used == VAL_SSE2) return NULL;
    NPU_ASSERT(val_set_isa(VAL_SSE2));
    npu_status st = run(f);
    NPU_ASSERT(val_set_isa(used));
    if (!st) st = crc_first_difference(image, w, image, &f->writes, &first, &theirs);
    if (st) return st;
    if (first == SIZE_MAX) {
        str_printf(out, "; every instruction writes the same with NPU_SIMD=sse2 as with %s",
                   val_isa_name(used));
        return NULL;
    }
    str_printf(out,
               "; it is in the simulator: with NPU_SIMD=sse2 this instruction is the first "
               "that does not write what it does with %s:\n    ",
               val_isa_name(used));
    writes_print_place(out, image, &w->item[first].at);
    if (writes_cycles(log, &w->item[first], &start, &done))
        str_printf(out, "\n    cycles %" PRIu64 " to %" PRIu64, start, done);
    return NULL;
}

npu_status fresh_compare(struct npusim *s, const struct writes *w, const struct trace_log *log,
                         struct str *out) {
    struct fresh f = {.s = {.a = s->a}, .o = *s->o};
    f.o.quiet = true;
    f.s.o = &f.o;
    npu_status st = compile(s, &f);
    if (!st && f.same_code && f.same_constants) {
        st = say_path(s, &f, w, log, out);
    } else if (!st) {
        st = run(&f);
        if (!st) st = say(s, &f, w, log, out);
    }
    if (st && npu_status_code(st) != NPU_NO_MEMORY) {
        str_printf(out, "\n  what its instructions should write is not known: %s",
                   npu_status_message(st));
        npu_status_free(st);
        st = NULL;
    }
    npu_session_free(f.s.session);
    npu_device_close(f.s.device);
    npu_program_free(f.s.program);
    writes_deinit(&f.writes);
    return st;
}
