// SPDX-License-Identifier: Apache-2.0
// The command processor without time: one step decodes the instruction at pc, resolves its
// registers, checks it, shows it to the sink, and executes it (scalars, control flow) or puts it on
// its engine's queue. Engines are at rest whenever a step begins, so a wait of the command
// processor itself that is not satisfied can never be.
#include <inttypes.h>
#include <string.h>

#include "simulator/exec/machine.h"

struct step {
    struct exec_place at;
    struct exec_dyn dyn;
    struct isa_insn in;
    int64_t next; // granule
};

static uint64_t reg(const struct exec *x, int64_t r) {
    return (uint64_t)x->reg[r];
}

static bool set_reg(struct exec *x, const struct step *s, int64_t rd, uint64_t value) {
    if (rd == 0) return exec_raise(x, &s->at, EXEC_FAULT_REGISTER, "rd is r0");
    x->reg[rd] = (int64_t)value;
    return true;
}

static bool holds(int64_t cond, int64_t a, int64_t b) {
    switch (cond) {
    case ISA_EQ: return a == b;
    case ISA_NE: return a != b;
    case ISA_LT: return a < b;
    case ISA_LE: return a <= b;
    case ISA_GT: return a > b;
    case ISA_GE: return a >= b;
    default: return true;
    }
}

static bool check_cond(struct exec *x, const struct step *s, int64_t cond) {
    if (cond <= ISA_GE) return true;
    return exec_raise(x, &s->at, EXEC_FAULT_FIELD, "cond %" PRId64 ": 0 to %d are comparisons",
                      cond, ISA_GE);
}

// ---- scalars and memory -------------------------------------------------------------------------

static bool do_alu(struct exec *x, const struct step *s) {
    const struct isa_ALU *in = &s->in.u.ALU;
    const uint64_t a = reg(x, in->rs1), b = reg(x, in->rs2) + (uint64_t)in->imm;
    const int64_t sa = (int64_t)a, sb = (int64_t)b;
    uint64_t v;
    switch (in->func) {
    case ISA_CP_ADD: v = a + b; break;
    case ISA_CP_SUB: v = a - b; break;
    case ISA_CP_MUL: v = a * b; break;
    case ISA_CP_SHL: v = b > 63 ? 0 : a << b; break;
    case ISA_CP_SHR: v = b > 63 ? 0 : a >> b; break;
    case ISA_CP_AND: v = a & b; break;
    case ISA_CP_OR: v = a | b; break;
    case ISA_CP_MIN: v = sa < sb ? a : b; break;
    case ISA_CP_MAX: v = sa > sb ? a : b; break;
    case ISA_CP_CMPLT: v = sa < sb; break;
    case ISA_CP_CMPEQ: v = sa == sb; break;
    default:
        return exec_raise(x, &s->at, EXEC_FAULT_FIELD,
                          "func %" PRId64 ": no operation has this number", in->func);
    }
    return set_reg(x, s, in->rd, v);
}

// The bytes of an LDS or STS, in host memory; NULL: a fault was raised. The access is noted as the
// command processor's.
static uint8_t *scalar_bytes(struct exec *x, struct step *s, int64_t space, int64_t address,
                             int64_t width, bool write) {
    struct exec_foot f;
    struct exec_dram_at at;
    const char *name = write ? "destination" : "source";
    if (width != 1 && width != 2 && width != 4 && width != 8) {
        exec_raise(x, &s->at, EXEC_FAULT_FIELD, "width %" PRId64 ": 1, 2, 4 or 8 bytes", width);
        return NULL;
    }
    if (space != ISA_SPM && space != ISA_DRAM && (space != ISA_PSUM || write)) {
        exec_raise(x, &s->at, EXEC_FAULT_SPACE, "%s in %s; spm%s and dram are reached", name,
                   isa_space_name((int)space), write ? "" : ", psum");
        return NULL;
    }
    if (address < 0 || address > INT64_MAX / 4) address = INT64_MAX / 4;
    if (address % width != 0 && address != INT64_MAX / 4) {
        exec_raise(x, &s->at, EXEC_FAULT_ALIGNMENT,
                   "address 0x%" PRIx64 " is not a multiple of %" PRId64, (uint64_t)address, width);
        return NULL;
    }
    if (!check_range(&x->m, (int)space, address, address + width, write, name, &x->fault)) {
        x->fault.at = s->at;
        return NULL;
    }
    x->fault.has_bytes = false;
    foot_run(&f, address, width);
    if (!race_begin(&x->race, &s->at, &x->cp, false)) {
        exec_no_memory(x, "the list of instructions");
        return NULL;
    }
    if (write ? !access_write(x, &s->at, name, (int)space, &f, 1)
              : !access_read(x, &s->at, name, (int)space, &f, 1))
        return NULL;
    if (write)
        access_mark(x, (int)space, &f);
    else if (x->slice.on)
        slice_use(&x->slice, &x->race, (int)space, &f);
    if (write && x->discovering && space == ISA_DRAM &&
        !slice_save(&x->slice, x->m.dram, x->m.dram_base, &f)) {
        exec_no_memory(x, "what a pass overwrites");
        return NULL;
    }
    if (write && !x->discovering && x->job->rehearsal && space == ISA_DRAM &&
        !undo_save(&x->undo, x->m.dram, x->m.dram_base, &f)) {
        exec_no_memory(x, "what a rehearsal overwrites");
        return NULL;
    }
    race_end(&x->race, NULL);
    clock_join(&x->cp, &x->race.done[ISA_ENGINE_CP]);
    x->cp_changed = true;
    s->dyn.dram_address = space == ISA_DRAM ? address : 0;
    if (space != ISA_DRAM) return (space == ISA_SPM ? x->spm : x->psum) + address;
    NPU_ASSERT(
        exec_dram_find(x->m.dram, x->m.dram_base + address, x->m.dram_base + address + width, &at));
    if (at.bytes) return at.bytes;
    union {
        const uint8_t *in;
        uint8_t *out;
    } constants = {at.const_bytes}; // only read
    return constants.out;
}

static bool do_lds(struct exec *x, struct step *s) {
    const struct isa_LDS *in = &s->in.u.LDS;
    const int64_t address = (int64_t)(reg(x, in->rs1) + (uint64_t)in->offset);
    if (in->rd == 0) return set_reg(x, s, 0, 0);
    const uint8_t *bytes = scalar_bytes(x, s, in->space, address, in->width, false);
    if (!bytes) return false;
    uint64_t v = 0;
    for (int64_t i = in->width; i-- > 0;)
        v = v << 8 | bytes[i];
    const int unused = 64 - 8 * (int)in->width;
    if (in->sext && unused && v >> (63 - unused)) v |= ~(uint64_t)0 << (64 - unused);
    return set_reg(x, s, in->rd, v);
}

static bool do_sts(struct exec *x, struct step *s) {
    const struct isa_STS *in = &s->in.u.STS;
    const int64_t address = (int64_t)(reg(x, in->rs1) + (uint64_t)in->offset);
    uint8_t *bytes = scalar_bytes(x, s, in->space, address, in->width, true);
    if (!bytes) return false;
    for (int64_t i = 0; i < in->width; i++)
        bytes[i] = (uint8_t)(reg(x, in->rs2) >> (8 * i));
    struct exec_foot f;
    foot_run(&f, address, in->width);
    access_show(x, &s->at, (int)in->space, &f);
    return true;
}

// ---- control flow -------------------------------------------------------------------------------

static bool do_loop(struct exec *x, const struct step *s) {
    const struct isa_LOOP *in = &s->in.u.LOOP;
    const int64_t count = (int64_t)(reg(x, in->rs) + (uint64_t)in->count);
    if (x->loop_depth == EXEC_NEST)
        return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "%d loops are open already", EXEC_NEST);
    if (count < 1) return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "the count is %" PRId64, count);
    struct exec_loop *l = &x->loop[x->loop_depth];
    *l = (struct exec_loop){.body_granule = (uint32_t)s->next,
                            .call_depth = x->call_depth,
                            .count = count,
                            .reg = {in->a0, in->a1, in->a2, in->a3, in->a4, in->a5},
                            .inc = {in->inc0, in->inc1, in->inc2, in->inc3, in->inc4, in->inc5}};
    for (int i = 0; i < EXEC_LOOP_REGS; i++) {
        l->saved[i] = x->reg[l->reg[i]];
        for (int k = 0; k < i; k++)
            if (l->reg[i] && l->reg[i] == l->reg[k])
                return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "r%" PRId64 " is listed twice",
                                  l->reg[i]);
    }
    x->loop_depth++;
    return true;
}

static bool do_endl(struct exec *x, struct step *s) {
    if (x->loop_depth == 0 || x->loop[x->loop_depth - 1].call_depth != x->call_depth)
        return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "endl, and no loop is open%s",
                          x->loop_depth ? " in this body" : "");
    struct exec_loop *l = &x->loop[x->loop_depth - 1];
    const bool again = (int64_t)++l->index < l->count;
    for (int i = 0; i < EXEC_LOOP_REGS; i++)
        if (l->reg[i])
            x->reg[l->reg[i]] =
                again ? (int64_t)(reg(x, l->reg[i]) + (uint64_t)l->inc[i]) : l->saved[i];
    if (again)
        s->next = l->body_granule;
    else
        x->loop_depth--;
    s->dyn.taken = again;
    return true;
}

static bool jump(struct exec *x, struct step *s, int64_t offset) {
    const int64_t to = (int64_t)x->pc + offset;
    if (!code_is_start(x, to))
        return exec_raise(x, &s->at, EXEC_FAULT_BRANCH,
                          "granule %" PRId64
                          " is not the start of an instruction (the code has %" PRIu32 " granules)",
                          to, x->ngranule);
    s->next = to;
    s->dyn.taken = true;
    return true;
}

static bool do_br(struct exec *x, struct step *s) {
    const struct isa_BR *in = &s->in.u.BR;
    if (!check_cond(x, s, in->cond)) return false;
    if (!holds(in->cond, x->reg[in->rs1], x->reg[in->rs2])) return true;
    if (!jump(x, s, in->offset)) return false;
    if (x->code_map[s->next] == x->code_map[x->pc]) return true;
    return exec_raise(x, &s->at, EXEC_FAULT_BRANCH,
                      "from one loop body into another: granule %" PRId64, s->next);
}

static bool do_call(struct exec *x, struct step *s) {
    const struct isa_CALL *in = &s->in.u.CALL;
    if (x->call_depth == EXEC_NEST)
        return exec_raise(x, &s->at, EXEC_FAULT_CALL, "%d calls are open already", EXEC_NEST);
    x->call[x->call_depth++] = (struct exec_call){(uint32_t)s->next, x->tag_base, x->loop_depth};
    x->tag_base += (uint32_t)in->tagbase;
    return jump(x, s, in->offset);
}

static bool do_ret(struct exec *x, struct step *s) {
    if (x->call_depth == 0)
        return exec_raise(x, &s->at, EXEC_FAULT_CALL, "ret, and no call is open");
    const struct exec_call *c = &x->call[x->call_depth - 1];
    if (x->loop_depth != c->loop_depth)
        return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "ret, and a loop of the body is open");
    x->call_depth--;
    x->tag_base = c->tag_base;
    s->next = c->return_granule;
    s->dyn.taken = true;
    return true;
}

static bool do_barrier(struct exec *x, const struct step *s) {
    for (int e = 0; e < ISA_ENGINES; e++)
        if (x->queue[e].first) return engine_deadlock(x, &s->at, &s->in.h);
    race_all_done(&x->race, &x->cp);
    x->cp_changed = true;
    return true;
}

static bool do_halt(struct exec *x, const struct step *s) {
    if (x->loop_depth)
        return exec_raise(x, &s->at, EXEC_FAULT_LOOP, "halt, and %d loops are open", x->loop_depth);
    if (x->call_depth)
        return exec_raise(x, &s->at, EXEC_FAULT_CALL, "halt, and %d calls are open", x->call_depth);
    if (!do_barrier(x, s)) return false;
    x->halted = true;
    return true;
}

static bool execute_cp(struct exec *x, struct step *s) {
    const struct isa_insn *in = &s->in;
    switch (in->h.opcode) {
    case ISA_OP_SETI: return set_reg(x, s, in->u.SETI.rd, (uint64_t)in->u.SETI.imm);
    case ISA_OP_ALU: return do_alu(x, s);
    case ISA_OP_LDS: return do_lds(x, s);
    case ISA_OP_STS: return do_sts(x, s);
    case ISA_OP_LDDB:
        return set_reg(x, s, in->u.LDDB.rd, (uint64_t)x->job->doorbell[in->u.LDDB.index]);
    case ISA_OP_LOOP: return do_loop(x, s);
    case ISA_OP_ENDL: return do_endl(x, s);
    case ISA_OP_BR: return do_br(x, s);
    case ISA_OP_CALL: return do_call(x, s);
    case ISA_OP_RET: return do_ret(x, s);
    case ISA_OP_BARRIER: return do_barrier(x, s);
    case ISA_OP_ASSERT: {
        const struct isa_ASSERT *a = &in->u.ASSERT;
        const int64_t right = (int64_t)(reg(x, a->rs2) + (uint64_t)a->imm);
        if (!check_cond(x, s, a->cond)) return false;
        if (holds(a->cond, x->reg[a->rs1], right)) return true;
        return exec_raise(x, &s->at, EXEC_FAULT_ASSERT, "left is %" PRId64 ", right is %" PRId64,
                          x->reg[a->rs1], right);
    }
    case ISA_OP_TRAP:
        return exec_raise(x, &s->at, EXEC_FAULT_TRAP, "code %" PRId64, in->u.TRAP.code);
    case ISA_OP_IRQ: x->stats.irq_status |= (uint32_t)1 << in->u.IRQ.id; return true;
    case ISA_OP_HALT: return do_halt(x, s);
    default: return true; // SYNC, TS, MARK: nothing but time and the trace
    }
}

// ---- one step -----------------------------------------------------------------------------------

// Registers into operand patterns: what is left refers to no register.
static void resolve(const struct exec *x, struct isa_insn *in) {
    const struct isa_insn_desc *desc = isa_find((unsigned)in->h.opcode);
    for (int k = 0; k < desc->npat; k++) {
        struct isa_pat *p = isa_pat_at(in, k);
        if (p->space == ISA_SPACE_NONE) continue;
        p->base = (int64_t)((uint64_t)p->base + reg(x, p->areg));
        if (p->sreg) p->size[1] = x->reg[p->sreg];
        p->areg = p->sreg = 0;
    }
}

static bool check_semaphores(struct exec *x, const struct step *s) {
    const struct isa_header *h = &s->in.h;
    const int64_t wait[2] = {h->wait0_sem, h->wait1_sem}, sig[2] = {h->sig0_sem, h->sig1_sem};
    const int64_t when[2] = {h->sig0_when, h->sig1_when}, inc[2] = {h->sig0_inc, h->sig1_inc};
    if (wait[0] && wait[0] == wait[1])
        return exec_raise(x, &s->at, EXEC_FAULT_FIELD, "both waits name semaphore %" PRId64,
                          wait[0]);
    for (int i = 0; i < 2; i++) {
        if (!wait[i]) continue;
        if (!(h->acquire >> i & 1) && (x->loop_depth || x->call_depth))
            return exec_raise(x, &s->at, EXEC_FAULT_MONOTONIC,
                              "wait for semaphore %" PRId64 " does not acquire, inside a %s",
                              wait[i], x->loop_depth ? "loop" : "call");
        enum exec_fault_kind kind = exec_sem_claim_wait(&x->sem[wait[i]], &s->at);
        if (kind == EXEC_FAULT_NONE) continue;
        x->fault.has_other = true;
        x->fault.other = x->sem[wait[i]].waiter_at;
        return exec_raise(x, &s->at, kind, "%s waits for semaphore %" PRId64 ", %s did before",
                          isa_engine_name(s->at.engine), wait[i],
                          isa_engine_name(x->fault.other.engine));
    }
    for (int i = 0; i < 2; i++) {
        if (!sig[i]) continue;
        if (when[i] > ISA_AT_DONE || inc[i] < 1)
            return exec_raise(x, &s->at, EXEC_FAULT_FIELD,
                              "signal of semaphore %" PRId64 ": increment %" PRId64
                              ", epoch %" PRId64,
                              sig[i], inc[i], when[i]);
        enum exec_fault_kind kind = exec_sem_claim_signal(&x->sem[sig[i]], &s->at, (int)when[i]);
        if (kind == EXEC_FAULT_NONE) continue;
        x->fault.has_other = true;
        x->fault.other = x->sem[sig[i]].signaller_at;
        return exec_raise(x, &s->at, kind,
                          "%s signals semaphore %" PRId64 " at epoch %" PRId64
                          ", %s did before at epoch %d",
                          isa_engine_name(s->at.engine), sig[i], when[i],
                          isa_engine_name(x->fault.other.engine), x->sem[sig[i]].when);
    }
    return true;
}

static bool show(struct exec *x, const struct step *s) {
    if (x->discovering || !x->job->sink) return true;
    x->error = x->job->sink(x->job->sink_ctx, &s->dyn);
    return x->error == NULL;
}

// Waits, the work, signals: the command processor runs its own instructions to the end.
static bool step_cp(struct exec *x, struct step *s) {
    const struct isa_header *h = &s->in.h;
    const int64_t sem[2] = {h->wait0_sem, h->wait1_sem},
                  value[2] = {h->wait0_value, h->wait1_value};
    for (int i = 0; i < 2; i++) {
        if (!sem[i]) continue;
        if (!exec_sem_ready(&x->sem[sem[i]], value[i]))
            return show(x, s) && engine_deadlock(x, &s->at, h);
        exec_sem_take(&x->sem[sem[i]], value[i], (h->acquire >> i & 1) != 0, &x->cp);
        x->cp_changed = true;
    }
    if (!s->dyn.skipped && !execute_cp(x, s)) return false;
    const struct race_clock points[3] = {x->cp, x->cp, x->cp};
    if (h->irq) x->stats.irq_status |= 1;
    return show(x, s) && engine_signal(x, &s->at, h, points) && engine_run_ready(x);
}

static bool step_engine(struct exec *x, struct step *s) {
    struct check_operands ops;
    x->idle_steps = 0;
    if (!s->dyn.skipped && !check_insn(&x->m, &s->in, &ops, &x->fault)) {
        x->fault.at = s->at;
        return false;
    }
    return show(x, s) && engine_push(x, &s->at, &s->in, s->dyn.skipped);
}

static bool decode(struct exec *x, struct step *s) {
    const struct span code = x->job->code;
    const char *why = "";
    s->at = (struct exec_place){.seq = x->stats.instructions,
                                .pc_granule = x->pc,
                                .tag = x->tag_base,
                                .loop_depth = x->loop_depth};
    for (int i = 0; i < x->loop_depth; i++)
        s->at.loop_index[i] = x->loop[i].index;
    if (x->pc >= x->ngranule)
        return exec_raise(x, &s->at, EXEC_FAULT_CODE_END, "after the last instruction");
    const size_t byte = (size_t)x->pc * ISA_GRANULE_BYTES;
    int granules = isa_decode(code.data + byte, code.size - byte, &s->in, &why);
    if (granules == 0)
        return exec_raise(x, &s->at, EXEC_FAULT_ENCODING, "granule %" PRIu32 ": %s", x->pc, why);
    s->at.engine = (int)s->in.h.engine;
    s->at.tag = (uint32_t)s->in.h.tag + x->tag_base;
    s->next = (int64_t)x->pc + granules;
    s->dyn = (struct exec_dyn){.seq = s->at.seq,
                               .pc_granule = x->pc,
                               .granules = granules,
                               .engine = s->at.engine,
                               .tag = s->at.tag,
                               .loop_depth = x->loop_depth,
                               .insn = &s->in};
    memcpy(s->dyn.loop_index, s->at.loop_index, sizeof s->dyn.loop_index);
    s->dyn.skipped = s->in.h.pred && x->reg[s->in.h.pred] == 0;
    const struct isa_insn_desc *desc = isa_find((unsigned)s->in.h.opcode);
    if (!desc->implemented)
        return exec_raise(x, &s->at, EXEC_FAULT_UNIMPLEMENTED, "%s", desc->text);
    if (isa_engine_class(s->at.engine) == ISA_CLASS_DMA &&
        s->at.engine - ISA_ENGINE_DMA0 >= x->hw.dma_engines)
        return exec_raise(x, &s->at, EXEC_FAULT_NO_ENGINE,
                          "%s; this machine has %" PRId64 " DMA engines",
                          isa_engine_name(s->at.engine), x->hw.dma_engines);
    return true;
}

enum { IDLE_LIMIT = 1 << 22 }; // scalar instructions in a row without work for any engine

// Whether the run is to be stopped before this instruction.
static bool stops(const struct exec *x, const struct step *s) {
    return exec_point_of(x, s->at.seq) < (s->at.engine == ISA_ENGINE_CP ? EXEC_DONE : EXEC_QUEUED);
}

bool interp_step(struct exec *x) {
    struct step s;
    if (exec_point_of(x, x->stats.instructions) == EXEC_AHEAD) {
        x->stopped = true;
        return true;
    }
    if (!decode(x, &s)) return false;
    if (stops(x, &s)) {
        x->stopped = true;
        return true;
    }
    if (!check_semaphores(x, &s)) return false;
    const uint64_t limit = x->job->step_limit ? x->job->step_limit : EXEC_STEP_LIMIT;
    if (x->stats.instructions >= limit || ++x->idle_steps > IDLE_LIMIT)
        return exec_raise(x, &s.at, EXEC_FAULT_STEPS,
                          "%" PRIu64 " instructions dispatched, the last %" PRIu64
                          " of them without work for an engine",
                          x->stats.instructions, x->idle_steps);
    x->stats.instructions++;
    x->stats.per_engine[s.at.engine]++;
    resolve(x, &s.in);
    if (s.at.engine == ISA_ENGINE_CP ? !step_cp(x, &s) : !step_engine(x, &s)) return false;
    x->pc = (uint32_t)s.next;
    return true;
}
