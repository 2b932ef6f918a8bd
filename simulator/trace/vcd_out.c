// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/vcd_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

#define TEXT_MOST 255

void vcd_scope(struct vcd *v, const char *name) {
    v->scope = name;
}

static size_t add(struct vcd *v, const char *name, enum vcd_kind kind, unsigned width) {
    if (v->nvar == v->var_cap) {
        const size_t cap = v->var_cap ? v->var_cap * 2 : 64;
        struct vcd_var *grown = base_realloc(v->var, cap * sizeof *grown);
        if (!grown) {
            v->failed = true;
            return 0;
        }
        v->var = grown;
        v->var_cap = cap;
    }
    v->var[v->nvar] =
        (struct vcd_var){.scope = v->scope, .name = name, .kind = kind, .width = width};
    return v->nvar++;
}

size_t vcd_bits(struct vcd *v, const char *name, unsigned width) {
    return add(v, name, VCD_BITS, width);
}

size_t vcd_text(struct vcd *v, const char *name) {
    return add(v, name, VCD_TEXT, 8);
}

size_t vcd_real(struct vcd *v, const char *name) {
    return add(v, name, VCD_REAL, 64);
}

// The place of a new change; NULL: out of memory.
static struct vcd_change *at(struct vcd *v, uint64_t cycle, size_t var) {
    if (v->failed) return NULL;
    if (v->nchange == v->change_cap) {
        const size_t cap = v->change_cap ? v->change_cap * 2 : 4096;
        struct vcd_change *grown = base_realloc(v->change, cap * sizeof *grown);
        if (!grown) {
            v->failed = true;
            return NULL;
        }
        v->change = grown;
        v->change_cap = cap;
    }
    struct vcd_change *c = &v->change[v->nchange];
    *c = (struct vcd_change){.cycle = cycle, .order = v->nchange++, .var = (uint32_t)var};
    return c;
}

void vcd_set(struct vcd *v, uint64_t cycle, size_t var, uint64_t bits) {
    struct vcd_change *c = at(v, cycle, var);
    if (c) c->value.bits = bits;
}

void vcd_set_text(struct vcd *v, uint64_t cycle, size_t var, const char *text) {
    struct vcd_change *c = at(v, cycle, var);
    if (!c) return;
    c->unknown = !text;
    c->value.text = text;
    if (!text) return;
    const size_t n = strlen(text), bytes = n < TEXT_MOST ? n : TEXT_MOST;
    if (bytes * 8 > v->var[var].width) v->var[var].width = (unsigned)bytes * 8;
}

void vcd_set_real(struct vcd *v, uint64_t cycle, size_t var, double value) {
    struct vcd_change *c = at(v, cycle, var);
    if (c) c->value.real = value;
}

void vcd_set_unknown(struct vcd *v, uint64_t cycle, size_t var) {
    struct vcd_change *c = at(v, cycle, var);
    if (c) c->unknown = true;
}

// ---- writing -----------------------------------------------------------------------------------

static int by_cycle(const void *a, const void *b) {
    const struct vcd_change *x = a, *y = b;
    if (x->cycle != y->cycle) return x->cycle < y->cycle ? -1 : 1;
    if (x->var != y->var) return x->var < y->var ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

// Identifier code of a variable: its number in printable characters, '!' to '~'.
static void code(struct str *s, size_t var) {
    do {
        str_putc(s, (char)('!' + var % 94));
        var /= 94;
    } while (var);
}

static void binary(struct str *s, uint64_t bits, unsigned width, bool lead) {
    for (unsigned i = width; i-- > 0;) {
        const bool one = i < 64 && bits >> i & 1;
        if (!one && !lead && i > 0) continue; // readers extend to the left with 0
        lead = true;
        str_putc(s, one ? '1' : '0');
    }
}

static void value(struct vcd *v, struct str *s, const struct vcd_change *c) {
    const struct vcd_var *var = &v->var[c->var];
    if (var->kind == VCD_REAL) {
        str_printf(s, "r%.9g ", c->value.real);
    } else if (c->unknown) {
        str_puts(s, var->width == 1 ? "x" : "bx ");
    } else if (var->kind == VCD_TEXT) {
        str_putc(s, 'b');
        if (!*c->value.text) str_putc(s, '0');
        for (size_t i = 0; i < TEXT_MOST && c->value.text[i]; i++)
            binary(s, (uint8_t)c->value.text[i], 8, i > 0);
        str_putc(s, ' ');
    } else if (var->width == 1) {
        str_putc(s, c->value.bits & 1 ? '1' : '0');
    } else {
        str_putc(s, 'b');
        binary(s, c->value.bits, var->width, false);
        str_putc(s, ' ');
    }
    code(s, c->var);
    str_putc(s, '\n');
}

static bool same(const struct vcd *v, const struct vcd_change *a, const struct vcd_change *b) {
    if (a->unknown || b->unknown) return a->unknown && b->unknown;
    if (v->var[a->var].kind == VCD_TEXT) return strcmp(a->value.text, b->value.text) == 0;
    if (v->var[a->var].kind == VCD_REAL)
        return !(a->value.real < b->value.real) && !(a->value.real > b->value.real);
    return a->value.bits == b->value.bits;
}

static void declare(const struct vcd *v, struct trace_out *o, const char *comment) {
    struct str *s = trace_out_text(o);
    str_puts(s, "$version npusim $end\n$comment\n");
    for (; *comment; comment++) { // the format is ASCII
        const bool plain = *comment == '\n' || (*comment >= ' ' && *comment <= '~');
        str_putc(s, *comment == '$' ? '_' : plain ? *comment : '?');
    }
    str_puts(s, "\n$end\n$timescale 1 ps $end\n$scope module npu $end\n");
    const char *scope = NULL;
    for (size_t i = 0; i < v->nvar; i++) {
        const struct vcd_var *var = &v->var[i];
        if (!scope || strcmp(scope, var->scope)) {
            if (scope) str_puts(s, "$upscope $end\n");
            str_printf(s, "$scope module %s $end\n", var->scope);
            scope = var->scope;
        }
        str_printf(s, "$var %s %u ", var->kind == VCD_REAL ? "real" : "wire", var->width);
        code(s, i);
        str_printf(s, " %s", var->name);
        if (var->kind != VCD_REAL && var->width > 1) str_printf(s, " [%u:0]", var->width - 1);
        str_puts(s, " $end\n");
        trace_out_flush(o);
    }
    if (scope) str_puts(s, "$upscope $end\n");
    str_puts(s, "$upscope $end\n$enddefinitions $end\n");
}

// Changes in order; `now` holds the value of each variable.
static void changes(struct vcd *v, struct trace_out *o, struct vcd_change *now, uint64_t clock_mhz,
                    uint64_t end) {
    struct str *s = trace_out_text(o);
    uint64_t cycle = 0;
    str_puts(s, "#0\n$dumpvars\n");
    bool dumping = true;
    for (size_t i = 0; i <= v->nchange; i++) {
        const struct vcd_change *c = i < v->nchange ? &v->change[i] : NULL;
        // All changes at cycle 0 belong to the first dump.
        if (dumping && (!c || c->cycle > 0)) {
            for (size_t k = 0; k < v->nvar; k++)
                value(v, s, &now[k]);
            str_puts(s, "$end\n");
            dumping = false;
        }
        if (!c || c->cycle > end) break;
        const bool last = i + 1 == v->nchange || c[1].cycle != c->cycle || c[1].var != c->var;
        if (!last || same(v, c, &now[c->var])) continue;
        now[c->var] = *c;
        if (dumping) continue;
        if (c->cycle > cycle) str_printf(s, "#%" PRIu64 "\n", c->cycle * 1000000 / clock_mhz);
        cycle = c->cycle;
        value(v, s, c);
        trace_out_flush(o);
    }
    if (end > cycle) str_printf(s, "#%" PRIu64 "\n", end * 1000000 / clock_mhz);
}

void vcd_write(struct vcd *v, struct trace_out *o, const char *comment, uint64_t clock_mhz,
               uint64_t end_cycle) {
    struct vcd_change *now = base_alloc_array(v->nvar + 1, sizeof *now);
    if (v->failed || !now) {
        trace_out_fail(o, npu_fail(NO_MEMORY, "no memory for the %zu changes of a VCD file",
                                   v->nchange));
        base_free(now);
        return;
    }
    for (size_t i = 0; i < v->nvar; i++)
        now[i] = (struct vcd_change){.var = (uint32_t)i, .unknown = v->var[i].kind != VCD_REAL};
    if (v->nchange) qsort(v->change, v->nchange, sizeof *v->change, by_cycle);
    declare(v, o, comment);
    changes(v, o, now, clock_mhz, end_cycle);
    base_free(now);
}

void vcd_deinit(struct vcd *v) {
    base_free(v->var);
    base_free(v->change);
}
