// SPDX-License-Identifier: Apache-2.0
// An instruction as a line of text. The form is described in insn_text.h; insn_parse.c is the
// inverse.
#include "isa/insn_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
    char *buf;
    size_t size, len;
};

static void put(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct out *o, const char *format, ...) {
    const size_t at = o->len < o->size ? o->len : o->size;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(o->buf ? o->buf + at : NULL, o->size - at, format, args);
    va_end(args);
    if (n > 0) o->len += (size_t)n;
}

static int64_t member(const struct isa_insn *in, const struct isa_field_desc *f) {
    int64_t v;
    memcpy(&v, (const char *)in + f->offset, sizeof v);
    return v;
}

const char *isa_field_word(int op, const char *field, int64_t value) {
    const int v = value >= 0 && value < 256 ? (int)value : -1;
    if (strcmp(field, "cond") == 0) return isa_cond_name(v);
    if (strcmp(field, "func") == 0) return isa_cpalu_name(v);
    if (strcmp(field, "red") == 0) return isa_red_name(v);
    if (strcmp(field, "space") == 0) return isa_space_name(v);
    if (strcmp(field, "kind") == 0 && op == ISA_OP_VPOOL) return isa_pool_name(v);
    return NULL;
}

// A binary32 so that reading it back gives the same bits.
static void put_f32(struct out *o, int64_t value) {
    const uint32_t bits = (uint32_t)value;
    float f;
    memcpy(&f, &bits, sizeof f);
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        put(o, "#%08" PRIx32, bits);
        return;
    }
    // The fewest digits that do; 9 always do.
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)f);
        const float back = strtof(text, NULL);
        uint32_t back_bits;
        memcpy(&back_bits, &back, sizeof back_bits);
        if (back_bits == bits) break;
    }
    put(o, "%s", text);
}

static void put_field(struct out *o, const struct isa_insn *in, const struct isa_field_desc *f,
                      const char *label) {
    const int64_t v = member(in, f);
    if (v == 0 && f->kind != ISA_KIND_SIZE && !(label && strcmp(f->name, "offset") == 0)) return;
    put(o, " %s=", f->name);
    const char *word = isa_field_word((int)in->h.opcode, f->name, v);
    if (label && strcmp(f->name, "offset") == 0)
        put(o, "%s", label);
    else if (word)
        put(o, "%s", word);
    else if (f->kind == ISA_KIND_REG)
        put(o, "r%" PRId64, v);
    else if (f->kind == ISA_KIND_F32)
        put_f32(o, v);
    else if (f->kind == ISA_KIND_SINT || f->kind == ISA_KIND_SIZE)
        put(o, "%" PRId64, v);
    else
        put(o, "%" PRIu64, (uint64_t)v);
}

static void put_pattern(struct out *o, const char *name, const struct isa_pat *p) {
    if (p->space == ISA_SPACE_NONE) return;
    put(o, " %s=%s:", name, isa_space_name((int)p->space));
    const char *dtype = isa_dtype_name((int)p->dtype);
    if (dtype)
        put(o, "%s", dtype);
    else
        put(o, "#%" PRId64, p->dtype);
    put(o, "+0x%" PRIx64, (uint64_t)p->base);
    if (p->areg) put(o, "+r%" PRId64, p->areg);
    int top = p->sreg ? 1 : 0;
    for (int d = 0; d < ISA_DIMS; d++)
        if ((p->size[d] != 1 || p->stride[d] != 0) && d > top) top = d;
    put(o, "[");
    for (int d = top; d >= 0; d--) {
        put(o, "%" PRId64, p->size[d]);
        if (d == 1 && p->sreg) put(o, "*r%" PRId64, p->sreg);
        put(o, ":%" PRId64 "%s", p->stride[d], d ? "," : "]");
    }
}

static void put_code(struct out *o, const char *name, int64_t code) {
    if (name)
        put(o, "%s", name);
    else
        put(o, "#%" PRId64, code);
}

static void put_stage(struct out *o, const struct isa_stage *s) {
    put_code(o, isa_vop_name((int)s->op), s->op);
    int operands = isa_vop_operands((int)s->op);
    if (s->a && operands < 1) operands = 1;
    if (s->b) operands = 2;
    if (operands >= 1) {
        put(o, " ");
        put_code(o, isa_src_name((int)s->a), s->a);
    }
    if (operands >= 2) {
        put(o, " ");
        put_code(o, isa_src_name((int)s->b), s->b);
    }
    if (s->save) put(o, " >tmp");
}

static void put_chain(struct out *o, const struct isa_insn *in, const struct isa_chain *c) {
    int used = 0;
    for (int i = 0; i < ISA_STAGES; i++)
        if (c->st[i].op || c->st[i].a || c->st[i].b || c->st[i].save) used = i + 1;
    if (used) {
        put(o, " chain=(");
        for (int i = 0; i < used; i++) {
            if (i) put(o, ";");
            put_stage(o, &c->st[i]);
        }
        put(o, ")");
    }
    for (int i = 0; i < ISA_IMMS; i++) {
        if (!c->imm[i]) continue;
        put(o, " imm%d=", i);
        if (isa_chain_is_int(in))
            put(o, "%" PRId32, (int32_t)(uint32_t)c->imm[i]);
        else
            put_f32(o, c->imm[i]);
    }
}

// `which` names the slot only where "the first free one" would be another.
static void put_waits(struct out *o, const struct isa_header *h) {
    if (h->wait0_sem)
        put(o, " wait=%" PRId64 ":%" PRId64 "%s", h->wait0_sem, h->wait0_value,
            h->acquire & 1 ? "" : ":mono");
    if (h->wait1_sem)
        put(o, " wait%s=%" PRId64 ":%" PRId64 "%s", h->wait0_sem ? "" : "1", h->wait1_sem,
            h->wait1_value, h->acquire & 2 ? "" : ":mono");
    if (h->sig0_sem)
        put(o, " signal=%" PRId64 ":%" PRId64 ":%s", h->sig0_sem, h->sig0_inc,
            isa_when_name((int)h->sig0_when));
    if (h->sig1_sem)
        put(o, " signal%s=%" PRId64 ":%" PRId64 ":%s", h->sig0_sem ? "" : "1", h->sig1_sem,
            h->sig1_inc, isa_when_name((int)h->sig1_when));
}

// NOLINTNEXTLINE(readability-non-const-parameter): written through struct out
int isa_print(const struct isa_insn *in, const char *label, char *buf, size_t size) {
    struct out o = {buf, size, 0};
    const struct isa_insn_desc *d = isa_find((unsigned)in->h.opcode);
    if (!d) {
        put(&o, "?");
        return (int)o.len;
    }
    put(&o, "%s", d->text);
    const bool one_engine =
        d->cls == ISA_CLASS_CP || d->cls == ISA_CLASS_MXU || d->cls == ISA_CLASS_VEC;
    if (!one_engine) put(&o, " @%s", isa_engine_name((int)in->h.engine));
    if (in->h.pred) put(&o, " pred=r%" PRId64, in->h.pred);
    for (int i = 0; i < d->nfield; i++)
        if (d->field[i].kind != ISA_KIND_RSV && !strchr(d->field[i].name, '.'))
            put_field(&o, in, &d->field[i], label);
    for (int k = 0; k < d->npat; k++)
        put_pattern(&o, d->pat[k].name, isa_pat_get(in, k));
    const struct isa_chain *c = isa_chain_get(in);
    if (c) put_chain(&o, in, c);
    put_waits(&o, &in->h);
    if (in->h.tag) put(&o, " tag=%" PRId64, in->h.tag);
    if (in->h.irq) put(&o, " irq=1");
    if (in->h.crc) put(&o, " crc=1");
    if (in->h.trace) put(&o, " trace=1");
    return (int)o.len;
}
