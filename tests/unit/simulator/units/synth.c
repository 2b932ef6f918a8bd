// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/simulator/units/synth.h"

#include <criterion/criterion.h>
#include <string.h>

void synth_init(struct synth *s, const struct hw *hw) {
    *s = (struct synth){.hw = *hw, .p = units_program_new(hw)};
    cr_assert(s->p);
}

void synth_deinit(struct synth *s) {
    units_program_free(s->p);
}

uint64_t synth_add(struct synth *s, int engine, struct isa_insn *in, struct synth_sync y) {
    in->h.engine = engine;
    in->h.wait0_sem = y.wait0;
    in->h.wait0_value = y.value0;
    in->h.wait1_sem = y.wait1;
    in->h.wait1_value = y.value1;
    in->h.acquire = y.acquire;
    in->h.sig0_sem = y.sig0;
    in->h.sig0_inc = y.inc0;
    in->h.sig0_when = y.when0;
    in->h.sig1_sem = y.sig1;
    in->h.sig1_inc = y.inc1;
    in->h.sig1_when = y.when1;
    uint8_t code[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field = "";
    const int granules = isa_encode(in, code, &field);
    cr_assert(granules > 0, "%s", field);
    const struct exec_dyn dyn = {
        .seq = s->seq,
        .pc_granule = s->pc,
        .granules = granules,
        .engine = engine,
        .tag = s->tag,
        .insn = in,
    };
    cr_assert_null(units_sink(s->p, &dyn));
    s->pc += (uint32_t)granules;
    return s->seq++;
}

static struct isa_pat pat(int space, int dtype, int64_t base) {
    struct isa_pat p = {.space = space, .dtype = dtype, .base = base};
    for (int d = 0; d < ISA_DIMS; d++)
        p.size[d] = 1;
    return p;
}

static void dim(struct isa_pat *p, int d, int64_t size, int64_t stride) {
    p->size[d] = size;
    p->stride[d] = stride;
}

uint64_t synth_copy(struct synth *s, int engine, bool write, int64_t dram, int64_t spm,
                    int64_t rows, int64_t row_bytes, int64_t pitch, bool fence,
                    struct synth_sync y) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_COPY);
    struct isa_pat far = pat(ISA_DRAM, ISA_U8, dram), near = pat(ISA_SPM, ISA_U8, spm);
    dim(&far, 0, row_bytes, 1);
    dim(&near, 0, row_bytes, 1);
    if (rows > 1) {
        dim(&far, 1, rows, pitch);
        dim(&near, 1, rows, row_bytes);
    }
    in.u.COPY.src = write ? near : far;
    in.u.COPY.dst = write ? far : near;
    in.u.COPY.fence = fence;
    return synth_add(s, engine, &in, y);
}

uint64_t synth_mm(struct synth *s, int64_t m, int64_t n, int64_t k, bool init,
                  struct synth_sync y) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_MM);
    in.u.MM.init = init;
    in.u.MM.a = pat(ISA_SPM, ISA_F16, 0);
    dim(&in.u.MM.a, 0, k, 1);
    if (m > 1) dim(&in.u.MM.a, 1, m, k);
    in.u.MM.b = pat(ISA_SPM, ISA_F16, 0x100000);
    dim(&in.u.MM.b, 0, n, 1);
    if (k > 1) dim(&in.u.MM.b, 1, k, n);
    in.u.MM.d = pat(ISA_PSUM, ISA_F32, 0);
    dim(&in.u.MM.d, 0, n, 1);
    if (m > 1) dim(&in.u.MM.d, 1, m, n);
    return synth_add(s, ISA_ENGINE_MXU, &in, y);
}

uint64_t synth_vec(struct synth *s, int64_t n, int64_t from, int64_t out, struct synth_sync y) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_VMAP);
    in.u.VMAP.out = pat(ISA_SPM, ISA_F32, out);
    in.u.VMAP.in0 = pat(ISA_SPM, ISA_F32, from);
    dim(&in.u.VMAP.out, 0, n, 1);
    dim(&in.u.VMAP.in0, 0, n, 1);
    in.u.VMAP.chain.st[0] = (struct isa_stage){.op = ISA_VOP_ADD, .a = ISA_SRC_IMM0};
    return synth_add(s, ISA_ENGINE_VEC, &in, y);
}

uint64_t synth_sync(struct synth *s, int engine, struct synth_sync y) {
    struct isa_insn in;
    isa_init(&in, ISA_OP_SYNC);
    return synth_add(s, engine, &in, y);
}

uint64_t synth_cp(struct synth *s, enum isa_op op) {
    struct isa_insn in;
    isa_init(&in, op);
    return synth_add(s, ISA_ENGINE_CP, &in, (struct synth_sync){0});
}

struct units_result synth_run(struct synth *s) {
    static struct trace_engine engine[ISA_ENGINES];
    static struct trace_tag tag[256];
    struct units_machine *m = units_new(&s->hw, s->p);
    cr_assert(m);
    struct units_options o = UNITS_OPTIONS_DEFAULT;
    struct units_result r;
    units_run(m, &o, &r);
    cr_assert(r.ntag <= 256);
    memcpy(engine, r.engine, r.nengine * sizeof *engine);
    memcpy(tag, r.tag, r.ntag * sizeof *tag);
    r.engine = engine;
    r.tag = tag;
    units_free(m);
    return r;
}

uint64_t synth_class(const struct units_result *r, int engine, enum trace_class cls) {
    for (size_t i = 0; i < r->nengine; i++)
        if (r->engine[i].engine == engine) return r->engine[i].cycles[cls];
    cr_assert(false, "no engine %d", engine);
    return 0;
}
