// SPDX-License-Identifier: Apache-2.0
// Reads the line that insn_print.c writes. A cursor over the text; the first thing that is not
// understood stops the reader with its position.
//
//   mnemonic, then words until the end: '@' engine, or NAME '=' value, where NAME is one of the
//   header's (pred wait signal tag irq crc trace), an operand pattern, chain, immI, or a field.
// Immediates are kept as text until all operands are known, because those decide whether the chain
// computes in integers.
#include "isa/insn_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *start, *p, *end;
    struct isa_insn *in;
    const struct isa_insn_desc *d;
    struct isa_text_error *err;
    isa_label_fn *label;
    void *ctx;
    const char *imm[ISA_IMMS]; // text of an immediate, NULL when not given
    bool seen[256];            // fields and patterns given, by index
};
enum { SEEN_PAT = 200, SEEN_CHAIN = 230, SEEN_PRED, SEEN_TAG, SEEN_IRQ, SEEN_CRC, SEEN_TRACE };

static bool fail(struct cursor *c, const char *at, const char *what) {
    c->err->pos = (size_t)(at - c->start);
    (void)snprintf(c->err->what, sizeof c->err->what, "%s", what);
    return false;
}

static bool fail_name(struct cursor *c, const char *at, const char *what, const char *name) {
    c->err->pos = (size_t)(at - c->start);
    (void)snprintf(c->err->what, sizeof c->err->what, "%s %s", what, name);
    return false;
}

static bool is_space(char ch) {
    return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

static void skip_space(struct cursor *c) {
    while (c->p < c->end && is_space(*c->p))
        c->p++;
}

static bool eat(struct cursor *c, char ch) {
    if (c->p >= c->end || *c->p != ch) return false;
    c->p++;
    return true;
}

static bool word_char(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

// Letters, digits and '_' from here; leaves them consumed.
static size_t word(struct cursor *c, const char **at) {
    *at = c->p;
    while (c->p < c->end && word_char(*c->p))
        c->p++;
    return (size_t)(c->p - *at);
}

static bool is(const char *at, size_t n, const char *text) {
    return text && strlen(text) == n && memcmp(at, text, n) == 0;
}

static bool starts_number(const struct cursor *c) {
    return c->p < c->end && ((*c->p >= '0' && *c->p <= '9') || *c->p == '-');
}

// [-]digits or [-]0xdigits; up to 2^64 - 1, which wraps into the signed value.
static bool number(struct cursor *c, int64_t *out) {
    const char *at = c->p;
    const bool negative = eat(c, '-');
    uint64_t v = 0, base = 10;
    if (c->end - c->p > 2 && c->p[0] == '0' && (c->p[1] == 'x' || c->p[1] == 'X')) {
        base = 16;
        c->p += 2;
    }
    const char *first = c->p;
    for (; c->p < c->end; c->p++) {
        const char ch = *c->p;
        uint64_t digit = 99;
        if (ch >= '0' && ch <= '9') digit = (uint64_t)(ch - '0');
        if (ch >= 'a' && ch <= 'f') digit = (uint64_t)(ch - 'a') + 10;
        if (ch >= 'A' && ch <= 'F') digit = (uint64_t)(ch - 'A') + 10;
        if (digit >= base) break;
        if (v > (UINT64_MAX - digit) / base) return fail(c, at, "number too large");
        v = v * base + digit;
    }
    if (c->p == first) return fail(c, at, "number expected");
    if (negative && v > (uint64_t)INT64_MAX + 1) return fail(c, at, "number too small");
    *out = (int64_t)(negative ? 0 - v : v);
    return true;
}

static bool unsigned_below(struct cursor *c, int64_t limit, int64_t *out) {
    const char *at = c->p;
    if (!number(c, out)) return false;
    if (*out < 0 || *out >= limit) return fail(c, at, "number out of range");
    return true;
}

static bool reg(struct cursor *c, int64_t *out) {
    const char *at = c->p;
    if (!eat(c, 'r') || !starts_number(c) || !unsigned_below(c, ISA_REGS, out))
        return fail(c, at, "register r0..r15 expected");
    return true;
}

// "#" and the bits in hexadecimal, or a decimal number.
static bool f32(struct cursor *c, int64_t *out) {
    const char *at = c->p;
    if (eat(c, '#')) {
        uint64_t v = 0;
        int digits = 0;
        for (; c->p < c->end && digits < 9; c->p++, digits++) {
            const char *hex = "0123456789abcdef";
            const char *h = *c->p ? strchr(hex, *c->p) : NULL;
            if (!h) break;
            v = v << 4 | (uint64_t)(h - hex);
        }
        if (digits < 1 || digits > 8) return fail(c, at, "1 to 8 hexadecimal digits expected");
        *out = (int64_t)v;
        return true;
    }
    char copy[64];
    size_t n = 0;
    while (c->p + n < c->end && n < sizeof copy - 1 && c->p[n] &&
           strchr("+-.0123456789eEinf", c->p[n]))
        n++;
    memcpy(copy, c->p, n);
    copy[n] = 0;
    char *stop = NULL;
    const float f = strtof(copy, &stop);
    if (n == 0 || *stop) return fail(c, at, "decimal number expected");
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    *out = (int64_t)bits;
    c->p += n;
    return true;
}

// A name out of `name_of`, or #N for a code below `limit`.
static bool code(struct cursor *c, const char *(*name_of)(int), int limit, const char *what,
                 int64_t *out) {
    const char *at = c->p;
    if (eat(c, '#')) return unsigned_below(c, limit, out);
    const char *w;
    const size_t n = word(c, &w);
    for (int i = 0; i < limit; i++) {
        if (!is(w, n, name_of(i))) continue;
        *out = i;
        return true;
    }
    return fail(c, at, what);
}

static bool pattern_dims(struct cursor *c, struct isa_pat *p, bool dram) {
    const int64_t size_limit = dram ? INT64_C(1) << 24 : 65536;
    const int64_t stride_limit = INT64_C(1) << (dram ? 39 : 23);
    int64_t size[ISA_DIMS], stride[ISA_DIMS];
    int n = 0, reg_at = -1;
    if (!eat(c, '[')) return fail(c, c->p, "'[' expected");
    do {
        if (n == ISA_DIMS) return fail(c, c->p, "more than 5 dimensions");
        const char *at = c->p;
        size[n] = 1;
        if ((c->p >= c->end || *c->p != '*') && !number(c, &size[n])) return false;
        if (size[n] < 1 || size[n] > size_limit) return fail(c, at, "size out of range");
        if (eat(c, '*')) {
            if (!reg(c, &p->sreg)) return false;
            if (!p->sreg || reg_at >= 0) return fail(c, at, "one size register, r1..r15");
            reg_at = n;
        }
        if (!eat(c, ':')) return fail(c, c->p, "':' and a stride expected");
        at = c->p;
        if (!number(c, &stride[n])) return false;
        if (stride[n] < -stride_limit || stride[n] >= stride_limit)
            return fail(c, at, "stride out of range");
        n++;
    } while (eat(c, ','));
    if (reg_at >= 0 && reg_at != n - 2) return fail(c, c->p, "a size register is for dimension 1");
    if (!eat(c, ']')) return fail(c, c->p, "',' or ']' expected");
    for (int i = 0; i < n; i++) {
        p->size[n - 1 - i] = size[i];
        p->stride[n - 1 - i] = stride[i];
    }
    return true;
}

static bool pattern(struct cursor *c, int k) {
    struct isa_pat *p = isa_pat_at(c->in, k);
    const char *at = c->p;
    if (!code(c, isa_space_name, 8, "memory expected: spm psum dram l2 rspm scalar imem",
              &p->space))
        return false;
    if (p->space == ISA_SPACE_NONE) return fail(c, at, "an absent operand is not written");
    if (!eat(c, ':')) return fail(c, c->p, "':' and an element type expected");
    if (!code(c, isa_dtype_name, 32, "element type expected", &p->dtype)) return false;
    if (!eat(c, '+')) return fail(c, c->p, "'+' and the base address expected");
    if (!unsigned_below(c, INT64_C(1) << (c->d->pat[k].dram ? 48 : 32), &p->base)) return false;
    if (eat(c, '+') && !reg(c, &p->areg)) return false;
    return pattern_dims(c, p, c->d->pat[k].dram);
}

static bool stage(struct cursor *c, struct isa_stage *s) {
    if (!code(c, isa_vop_name, 64, "operation expected", &s->op)) return false;
    int64_t *operand[2] = {&s->a, &s->b};
    for (int i = 0;; i++) {
        skip_space(c);
        if (c->p >= c->end || *c->p == ';' || *c->p == ')' || *c->p == '>') break;
        if (i == 2) return fail(c, c->p, "more than two operands");
        if (!code(c, isa_src_name, 16,
                  "operand expected: acc in0 in1 in2 tmp imm0..imm3 row col none", operand[i]))
            return false;
    }
    if (eat(c, '>')) {
        const char *w;
        const size_t n = word(c, &w);
        if (!is(w, n, "tmp")) return fail(c, w, "'>tmp' expected");
        s->save = 1;
        skip_space(c);
    }
    return true;
}

static bool chain(struct cursor *c) {
    struct isa_chain *ch = isa_chain_at(c->in);
    if (!ch) return fail(c, c->p, "this instruction has no chain");
    if (!eat(c, '(')) return fail(c, c->p, "'(' expected");
    int n = 0;
    do {
        if (n == ISA_STAGES) return fail(c, c->p, "more than 8 stages");
        skip_space(c);
        if (!stage(c, &ch->st[n++])) return false;
    } while (eat(c, ';'));
    return eat(c, ')') || fail(c, c->p, "';' or ')' expected");
}

// SEM:VALUE[:mono] or SEM:INC:WHEN. slot -1: the first free one.
static bool wait_word(struct cursor *c, int slot) {
    struct isa_header *h = &c->in->h;
    const char *at = c->p;
    if (slot < 0) slot = h->wait0_sem ? 1 : 0;
    int64_t *sem = slot ? &h->wait1_sem : &h->wait0_sem;
    int64_t *value = slot ? &h->wait1_value : &h->wait0_value;
    if (*sem) return fail(c, at, "this wait is taken");
    if (!unsigned_below(c, ISA_SEMS, sem)) return false;
    if (!*sem) return fail(c, at, "semaphore 1..255 expected");
    if (!eat(c, ':')) return fail(c, c->p, "':' and a count expected");
    if (!unsigned_below(c, 4096, value)) return false;
    h->acquire |= slot ? 2 : 1;
    if (eat(c, ':')) {
        const char *w;
        const size_t n = word(c, &w);
        if (!is(w, n, "mono")) return fail(c, w, "'mono' expected");
        h->acquire &= ~(int64_t)(slot ? 2 : 1);
    }
    return true;
}

static bool signal_word(struct cursor *c, int slot) {
    struct isa_header *h = &c->in->h;
    const char *at = c->p;
    if (slot < 0) slot = h->sig0_sem ? 1 : 0;
    int64_t *sem = slot ? &h->sig1_sem : &h->sig0_sem;
    int64_t *inc = slot ? &h->sig1_inc : &h->sig0_inc;
    int64_t *when = slot ? &h->sig1_when : &h->sig0_when;
    if (*sem) return fail(c, at, "this signal is taken");
    if (!unsigned_below(c, ISA_SEMS, sem)) return false;
    if (!*sem) return fail(c, at, "semaphore 1..255 expected");
    if (!eat(c, ':')) return fail(c, c->p, "':' and an increment expected");
    at = c->p;
    if (!unsigned_below(c, 16, inc)) return false;
    if (!*inc) return fail(c, at, "increment 1..15 expected");
    if (!eat(c, ':')) return fail(c, c->p, "':' and start, read or done expected");
    return code(c, isa_when_name, 3, "start, read or done expected", when);
}

static bool once(struct cursor *c, int index, const char *at) {
    if (c->seen[index]) return fail(c, at, "given twice");
    c->seen[index] = true;
    return true;
}

// Words of the header; *known tells whether the name was one.
static bool header_word(struct cursor *c, const char *at, size_t n, bool *known) {
    static const struct {
        const char *name;
        int index, slot;
    } rows[] = {{"wait", -1, -1},       {"wait0", -1, 0},        {"wait1", -1, 1},
                {"signal", -2, -1},     {"signal0", -2, 0},      {"signal1", -2, 1},
                {"pred", SEEN_PRED, 0}, {"tag", SEEN_TAG, 0},    {"irq", SEEN_IRQ, 0},
                {"crc", SEEN_CRC, 0},   {"trace", SEEN_TRACE, 0}};
    struct isa_header *h = &c->in->h;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!is(at, n, rows[i].name)) continue;
        *known = true;
        if (rows[i].index == -1) return wait_word(c, rows[i].slot);
        if (rows[i].index == -2) return signal_word(c, rows[i].slot);
        if (!once(c, rows[i].index, at)) return false;
        switch (rows[i].index) {
        case SEEN_PRED: return reg(c, &h->pred);
        case SEEN_TAG: return unsigned_below(c, INT64_C(1) << 32, &h->tag);
        case SEEN_IRQ: return unsigned_below(c, 2, &h->irq);
        case SEEN_CRC: return unsigned_below(c, 2, &h->crc);
        default: return unsigned_below(c, 2, &h->trace);
        }
    }
    return true;
}

static bool plain_field(struct cursor *c, const struct isa_field_desc *f) {
    const char *at = c->p;
    int64_t v = 0;
    if (f->kind == ISA_KIND_REG) {
        if (!reg(c, &v)) return false;
    } else if (f->kind == ISA_KIND_F32) {
        if (!f32(c, &v)) return false;
    } else if (starts_number(c)) {
        if (!number(c, &v)) return false;
        // A number with its top bit set is a large one only where the field is unsigned.
        if (*at != '-' && v < 0 && (f->kind != ISA_KIND_UINT || f->width < 64))
            return fail(c, at, "number out of range");
        if (*at == '-' && f->kind != ISA_KIND_SINT) return fail(c, at, "number out of range");
    } else {
        const char *w;
        const size_t n = word(c, &w);
        bool found = false;
        for (int i = 0; i < 16 && !found; i++) {
            found = is(w, n, isa_field_word((int)c->in->h.opcode, f->name, i));
            if (found) v = i;
        }
        const bool branch =
            strcmp(f->name, "offset") == 0 && f->kind == ISA_KIND_SINT && f->width == 32;
        if (!found && n && branch && c->label) {
            found = c->label(c->ctx, w, n, &v);
            if (!found) return fail(c, at, "no such label");
        }
        if (!found) return fail_name(c, at, "value expected for", f->name);
    }
    if (!isa_field_fits(f, v)) return fail_name(c, at, "value out of range for", f->name);
    memcpy((char *)c->in + f->offset, &v, sizeof v);
    return true;
}

static bool imm_word(struct cursor *c, int i, const char *at) {
    if (c->imm[i]) return fail(c, at, "given twice");
    c->imm[i] = c->p;
    while (c->p < c->end && !is_space(*c->p))
        c->p++;
    return true;
}

// NAME=value.
static bool assignment(struct cursor *c) {
    const char *at;
    const size_t n = word(c, &at);
    if (n == 0) return fail(c, at, "NAME=VALUE or @ENGINE expected");
    if (!eat(c, '=')) return fail(c, c->p, "'=' expected");
    bool known = false;
    if (!header_word(c, at, n, &known)) return false;
    if (known) return true;
    if (is(at, n, "chain")) return once(c, SEEN_CHAIN, at) && chain(c);
    for (int k = 0; k < c->d->npat; k++)
        if (is(at, n, c->d->pat[k].name)) return once(c, SEEN_PAT + k, at) && pattern(c, k);
    if (n == 4 && memcmp(at, "imm", 3) == 0 && at[3] >= '0' && at[3] < '0' + ISA_IMMS &&
        c->d->chain_offset >= 0)
        return imm_word(c, at[3] - '0', at);
    for (int i = 0; i < c->d->nfield; i++) {
        const struct isa_field_desc *f = &c->d->field[i];
        if (f->kind == ISA_KIND_RSV || !is(at, n, f->name)) continue;
        return once(c, i, at) && plain_field(c, f);
    }
    return fail_name(c, at, "no such field of", c->d->text);
}

static bool engine_word(struct cursor *c) {
    const char *at;
    const size_t n = word(c, &at);
    for (int e = 0; e < ISA_ENGINES; e++) {
        if (!is(at, n, isa_engine_name(e))) continue;
        if (c->d->cls != ISA_CLASS_ANY && isa_engine_class(e) != c->d->cls)
            return fail(c, at, "engine of another class");
        c->in->h.engine = e;
        return true;
    }
    return fail(c, at, "engine expected: cp dma0..dma3 mxu vec");
}

static bool immediates(struct cursor *c) {
    struct isa_chain *ch = isa_chain_at(c->in);
    for (int i = 0; i < ISA_IMMS; i++) {
        if (!c->imm[i]) continue;
        c->p = c->imm[i];
        if (c->p >= c->end) return fail(c, c->p, "number expected");
        int64_t v;
        if (isa_chain_is_int(c->in) && starts_number(c)) {
            if (!number(c, &v)) return false;
            if (v < INT32_MIN || v > INT32_MAX) return fail(c, c->imm[i], "not a 32-bit integer");
            v = (int64_t)(uint32_t)v;
        } else if (isa_chain_is_int(c->in) && *c->p != '#') {
            return fail(c, c->p, "whole number expected: the chain computes in integers");
        } else if (!f32(c, &v)) {
            return false;
        }
        if (c->p < c->end && !is_space(*c->p)) return fail(c, c->p, "number expected");
        ch->imm[i] = v;
    }
    return true;
}

bool isa_parse(const char *text, size_t len, isa_label_fn *label, void *ctx, struct isa_insn *out,
               struct isa_text_error *err) {
    struct cursor c = {.start = text,
                       .p = text,
                       .end = text + len,
                       .in = out,
                       .err = err,
                       .label = label,
                       .ctx = ctx};
    skip_space(&c);
    const char *at = c.p;
    while (c.p < c.end && (word_char(*c.p) || *c.p == '.'))
        c.p++;
    c.d = isa_find_text(at, (size_t)(c.p - at));
    if (!c.d) return fail(&c, at, "no such instruction");
    isa_init(out, c.d->op);
    for (;;) {
        const char *before = c.p;
        skip_space(&c);
        if (c.p >= c.end) break;
        if (c.p == before) return fail(&c, c.p, "blank expected");
        if (eat(&c, '@') ? !engine_word(&c) : !assignment(&c)) return false;
    }
    if (!immediates(&c)) return false;
    uint8_t bytes[ISA_MAX_GRANULES * ISA_GRANULE_BYTES];
    const char *field;
    out->h.length = isa_encode(out, bytes, &field);
    if (!out->h.length) return fail_name(&c, c.end, "value out of range for", field);
    return true;
}
