// SPDX-License-Identifier: Apache-2.0
// Text of a tile program: DRAM buffers, then per kernel its facts, its buffers and its operations,
// one line each.
#include "isa/insn_text.h"
#include "runtime/base/str.h"
#include "toolchain/tile/tile.h"

static const char *const kinds[] = {"on-chip", "input", "output", "weight", "scratch", "state"};
static const char *const phases[] = {"load", "compute", "store"};

static void print_buf(const struct tile_buf *b, struct str *out) {
    str_printf(out, "buf %d %s %s '", b->id, isa_space_name(b->space), kinds[b->kind]);
    str_shown(out, b->name);
    str_printf(out, "' %lld bytes", (long long)b->bytes);
    if (b->slots > 1) str_printf(out, " x %d", b->slots);
    str_putc(out, '\n');
}

static void print_operand(const struct tile_op *t, int k, const struct isa_pat_desc *d,
                          struct str *out) {
    const struct isa_pat *p = isa_pat_get(&t->insn, k);
    if (t->operand[k].buf < 0) return;
    str_printf(out, " %s=b%d.%d:%s+0x%llx[", d->name, t->operand[k].buf, t->operand[k].slot,
               isa_dtype_name((int)p->dtype), (unsigned long long)p->base);
    int last = ISA_DIMS - 1;
    while (last > 0 && p->size[last] == 1)
        last--;
    for (int i = last; i >= 0; i--)
        str_printf(out, "%lld:%lld%s", (long long)p->size[i], (long long)p->stride[i],
                   i ? "," : "]");
}

// The instruction without the operands that stand in buffers: those follow by buffer.
static void print_insn(const struct tile_op *t, struct str *out) {
    struct isa_insn rest = t->insn;
    char text[ISA_TEXT_BYTES];
    for (int k = 0; k < t->npat; k++) {
        if (t->operand[k].buf < 0) continue;
        struct isa_pat *p = isa_pat_at(&rest, k);
        *p = (struct isa_pat){.space = ISA_SPACE_NONE};
        for (int d = 0; d < ISA_DIMS; d++)
            p->size[d] = 1;
    }
    (void)isa_print(&rest, NULL, text, sizeof text);
    str_puts(out, text);
}

void tile_print(const struct tile_program *p, struct str *out) {
    for (int i = 0; i < p->nbuf; i++)
        if (p->bufs[i]->kernel < 0) print_buf(p->bufs[i], out);
    int kernel = -1;
    for (int i = 0; i < p->nop; i++) {
        const struct tile_op *t = p->ops[i];
        const struct isa_insn_desc *d = isa_find((unsigned)t->insn.h.opcode);
        if (t->kernel != kernel) {
            const struct tile_kernel *k = p->kernels[t->kernel];
            kernel = t->kernel;
            str_printf(out, "kernel %d '", k->id);
            str_shown(out, k->name);
            str_printf(out,
                       "' %s @%s: macs %lld, elements %lld, weights %lld, in %lld, "
                       "out %lld bytes, spm %lld, psum %lld, about %.0f cycles\n",
                       k->op, k->kernel, (long long)k->macs, (long long)k->vector_elems,
                       (long long)k->weight_bytes, (long long)k->input_bytes,
                       (long long)k->output_bytes, (long long)k->spm_bytes,
                       (long long)k->psum_bytes, k->estimate_cycles);
            for (int b = 0; b < p->nbuf; b++)
                if (p->bufs[b]->kernel == kernel) print_buf(p->bufs[b], out);
        }
        str_printf(out, "  %d step %d %s ", i, t->step, phases[t->phase]);
        print_insn(t, out);
        for (int k = 0; k < t->npat; k++)
            print_operand(t, k, &d->pat[k], out);
        str_putc(out, '\n');
    }
}
