// SPDX-License-Identifier: Apache-2.0
// The machine's state as text.
#include <inttypes.h>

#include "isa/insn_text.h"
#include "simulator/npusim/break.h"
#include "simulator/npusim/writes.h"

static void print_scalars(struct str *out, const struct exec_state *s) {
    str_printf(out, "registers (the others are 0)\n");
    int n = 0;
    for (int i = 0; i < ISA_REGS; i++)
        if (s->reg[i])
            str_printf(out, "%sr%d 0x%" PRIx64 " (%" PRId64 ")",
                       n++ % 4 ? "   "
                       : n > 1 ? "\n  "
                               : "  ",
                       i, (uint64_t)s->reg[i], s->reg[i]);
    str_puts(out, n ? "\n" : "");
    for (int i = 0; i < s->loop_depth; i++)
        str_printf(out,
                   "  loop %d: body at granule %" PRIu32 ", iteration %" PRIu32 " of %" PRId64 "\n",
                   i, s->loop[i].body_granule, s->loop[i].index, s->loop[i].count);
    for (int i = 0; i < s->call_depth; i++)
        str_printf(out, "  call %d: returns to granule %" PRIu32 ", tag base then %" PRIu32 "\n", i,
                   s->call[i].return_granule, s->call[i].tag_base);
    if (s->tag_base) str_printf(out, "  tag base %" PRIu32 "\n", s->tag_base);
}

// ---- semaphores ---------------------------------------------------------------------------------

static bool decode_at(const struct npu_program_image *image, uint32_t pc, struct isa_insn *in) {
    const char *why;
    const size_t byte = (size_t)pc * ISA_GRANULE_BYTES;
    return byte < image->code.size &&
           isa_decode(image->code.data + byte, image->code.size - byte, in, &why) > 0;
}

// What the waits of an instruction still lack, or nothing.
static void print_wait(struct str *out, const struct exec_state *s, const struct isa_header *h) {
    const int64_t sem[2] = {h->wait0_sem, h->wait1_sem},
                  value[2] = {h->wait0_value, h->wait1_value};
    for (int i = 0; i < 2; i++) {
        if (!sem[i]) continue;
        const struct exec_sem_state *e = &s->sem[sem[i]];
        const uint64_t count = e->signalled - e->consumed;
        if (count >= (uint64_t)value[i]) continue;
        str_printf(out,
                   ", waits for %" PRId64 " on semaphore %" PRId64 " (at %" PRIu64 ", from %s)",
                   value[i], sem[i], count,
                   e->signaller < 0 ? "nobody so far" : isa_engine_name(e->signaller));
    }
}

// Which engine's next instruction waits on a semaphore for more than it counts.
static void print_waiter(struct str *out, const struct exec_state *s, int sem,
                         const struct isa_insn *next) {
    const uint64_t count = s->sem[sem].signalled - s->sem[sem].consumed;
    for (int e = 0; e < ISA_ENGINES; e++) {
        const struct exec_engine_state *engine = &s->engine[e];
        const struct isa_header *h = e == ISA_ENGINE_CP   ? (next ? &next->h : NULL)
                                     : engine->queued > 0 ? &engine->first_insn.h
                                                          : NULL;
        if (!h || (e == ISA_ENGINE_CP && h->engine != ISA_ENGINE_CP)) continue;
        const int64_t value = h->wait0_sem == sem   ? h->wait0_value
                              : h->wait1_sem == sem ? h->wait1_value
                                                    : -1;
        if (value < 0) continue;
        str_printf(out, "   %s %s %" PRId64, isa_engine_name(e),
                   count < (uint64_t)value ? "waits for" : "can take", value);
    }
}

static void print_semaphores(struct str *out, const struct exec_state *s,
                             const struct isa_insn *next) {
    str_puts(out,
             "semaphores (of those that were used)\n  sem  count  signals  taken  from    to\n");
    for (int i = 1; i < ISA_SEMS; i++) {
        const struct exec_sem_state *e = &s->sem[i];
        if (e->signaller < 0 && e->waiter < 0) continue;
        str_printf(out, "  %3d  %5" PRIu64 "  %7" PRIu64 "  %5" PRIu64 "  %-6s  %-6s", i,
                   e->signalled - e->consumed, e->signalled, e->consumed,
                   e->signaller < 0 ? "-" : isa_engine_name(e->signaller),
                   e->waiter < 0 ? "-" : isa_engine_name(e->waiter));
        print_waiter(out, s, i, next);
        str_putc(out, '\n');
    }
}

// ---- engines ------------------------------------------------------------------------------------

static void print_insn(struct str *out, const struct isa_insn *in) {
    char line[ISA_TEXT_BYTES];
    isa_print(in, NULL, line, sizeof line);
    str_printf(out, "\n           %s\n", line);
}

static void print_place(struct str *out, const struct exec_place *at) {
    str_printf(out, "instruction %" PRIu64 " at granule %" PRIu32 ", tag %" PRIu32, at->seq,
               at->pc_granule, at->tag);
    for (int i = 0; i < at->loop_depth; i++)
        str_printf(out, "%s%" PRIu32, i ? "," : ", loop index ", at->loop_index[i]);
}

static void print_cp(struct str *out, const struct exec_state *s, int64_t depth,
                     const struct isa_insn *next) {
    str_printf(out, "  cp       %" PRIu64 " instructions dispatched, %s", s->dispatched,
               s->halted ? "halted\n" : "next ");
    if (s->halted) return;
    str_printf(out, "at granule %" PRIu32, s->pc);
    if (!next) {
        str_putc(out, '\n');
        return;
    }
    if (next->h.engine == ISA_ENGINE_CP)
        print_wait(out, s, &next->h);
    else if (s->engine[next->h.engine].queued >= depth)
        str_printf(out, ", the queue of %s is full", isa_engine_name((int)next->h.engine));
    print_insn(out, next);
}

static void print_engine(struct str *out, const struct exec_state *s, int e) {
    const struct exec_engine_state *x = &s->engine[e];
    str_printf(out, "  %-8s", isa_engine_name(e));
    if (!x->nflight && !x->queued) {
        str_puts(out, " nothing to do\n");
        return;
    }
    for (uint32_t i = 0; i < x->nflight && i < EXEC_FLIGHTS; i++) {
        str_printf(out, "%sat work%s: ", i ? "           " : " ",
                   x->flight[i].point == EXEC_READ ? ", operands read" : "");
        print_place(out, &x->flight[i].at);
        print_insn(out, &x->flight[i].insn);
    }
    if (x->nflight > EXEC_FLIGHTS)
        str_printf(out, "           and %" PRIu32 " more at work\n", x->nflight - EXEC_FLIGHTS);
    if (!x->queued) return;
    str_printf(out, "%s%" PRIu32 " queued, the first: ", x->nflight ? "           " : " ",
               x->queued);
    print_place(out, &x->first);
    print_wait(out, s, &x->first_insn.h);
    print_insn(out, &x->first_insn);
}

void state_print(struct str *out, const struct npu_program_image *image, int64_t depth,
                 const struct exec_state *s) {
    struct isa_insn in;
    const struct isa_insn *next = !s->halted && decode_at(image, s->pc, &in) ? &in : NULL;
    print_scalars(out, s);
    print_semaphores(out, s, next);
    str_puts(out, "engines\n");
    print_cp(out, s, depth, next);
    for (int e = ISA_ENGINE_CP + 1; e < ISA_ENGINES; e++)
        print_engine(out, s, e);
}
