// SPDX-License-Identifier: Apache-2.0
// Printing tensors and bytes.
#include "simulator/npusim/dump_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/numeric.h"

enum {
    WHOLE = 1000,     // elements up to which everything is printed
    EDGE = 3,         // of a long dimension, from each end
    LINE = 16,        // plain bytes on a line
    WHOLE_LINES = 64, // of plain bytes
    ELEMENT_BYTES = 48
};

static void print_float(struct str *out, int dtype, float v) {
    char text[ELEMENT_BYTES];
    if (isnan(v)) {
        str_puts(out, "nan");
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (isinf(v) || num_round_to(dtype, strtof(text, NULL)) == v) break;
    }
    str_puts(out, text);
}

void dump_print_element(struct str *out, int dtype, const void *bytes, bool written) {
    double wide;
    uint64_t u64;
    if (!written) {
        str_puts(out, "--");
    } else if (dtype == ISA_F64) {
        memcpy(&wide, bytes, sizeof wide);
        str_printf(out, "%.17g", wide);
    } else if (dtype == ISA_U64) {
        memcpy(&u64, bytes, sizeof u64);
        str_printf(out, "%" PRIu64, u64);
    } else if (isa_dtype_is_float(dtype)) {
        print_float(out, dtype, num_load_f32(dtype, bytes, 0));
    } else {
        str_printf(out, "%" PRId64, num_load_i64(dtype, bytes, 0));
    }
}

// ---- tensors ------------------------------------------------------------------------------------

struct printer {
    struct str *out;
    const struct dump *d;
    dump_element *get;
    void *ctx;
    bool all;     // nothing is left out
    size_t width; // of a column; 0: only the widths are looked for
    size_t widest;
};

static void print_one(struct printer *p, uint64_t i) {
    uint64_t bytes[1] = {0};
    struct str text = {0};
    const bool written = p->get(p->ctx, i, bytes);
    dump_print_element(&text, p->d->dtype, bytes, written);
    if (text.len > p->widest) p->widest = text.len;
    if (p->width) str_printf(p->out, "%*s", (int)p->width, str_text(&text));
    p->out->failed |= text.failed;
    str_free(&text);
}

static void indent(struct printer *p, int newlines, int depth) {
    if (!p->width) return;
    for (int i = 0; i < newlines; i++)
        str_putc(p->out, '\n');
    for (int i = 0; i < depth; i++)
        str_putc(p->out, ' ');
}

static void put(struct printer *p, const char *text) {
    if (p->width) str_puts(p->out, text);
}

// Dimension `dim` from element `first` on.
static void print_dim(struct printer *p, int dim, uint64_t first) {
    if (dim == p->d->rank) {
        print_one(p, first);
        return;
    }
    const int inner = p->d->rank - 1 - dim; // dimensions inside this one
    const int64_t n = p->d->dims[dim];
    uint64_t step = 1;
    for (int k = dim + 1; k < p->d->rank; k++)
        step *= (uint64_t)p->d->dims[k];
    put(p, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && inner) indent(p, inner, dim + 1);
        if (i > 0 && !inner) put(p, " ");
        if (!p->all && n > 2 * EDGE && i == EDGE) {
            put(p, "...");
            i = n - EDGE - 1;
            continue;
        }
        print_dim(p, dim + 1, first + (uint64_t)i * step);
    }
    put(p, "]");
}

// ---- plain bytes --------------------------------------------------------------------------------

static void print_bytes(struct printer *p) {
    const int64_t n = p->d->dims[0], lines = (n + LINE - 1) / LINE;
    for (int64_t l = 0; l < lines; l++) {
        if (lines > WHOLE_LINES && l == WHOLE_LINES / 2) {
            str_puts(p->out, "...\n");
            l = lines - WHOLE_LINES / 4;
        }
        str_printf(p->out, "0x%08" PRIx64, (uint64_t)(p->d->address + l * LINE));
        for (int64_t i = l * LINE; i < n && i < (l + 1) * LINE; i++) {
            uint8_t byte;
            if (p->get(p->ctx, (uint64_t)i, &byte))
                str_printf(p->out, "%s%02x", i % 8 ? " " : "  ", byte);
            else
                str_printf(p->out, "%s--", i % 8 ? " " : "  ");
        }
        str_putc(p->out, '\n');
    }
}

void dump_print(struct str *out, const struct dump *d, dump_element *get, void *ctx) {
    uint64_t n = 1;
    struct printer p = {.out = out, .d = d, .get = get, .ctx = ctx};
    for (int k = 0; k < d->rank; k++)
        n *= (uint64_t)d->dims[k];
    str_printf(out, "%s", d->text);
    if (!strncmp(d->text, "result:", 7)) {
        str_printf(out, ": %s[", isa_dtype_name(d->dtype));
        for (int k = 0; k < d->rank; k++)
            str_printf(out, "%s%" PRId64, k ? "," : "", d->dims[k]);
        str_printf(out, "] in %s from 0x%" PRIx64, isa_space_name(d->space), (uint64_t)d->address);
    }
    str_putc(out, '\n');
    if (!d->dtype) {
        print_bytes(&p);
        return;
    }
    p.all = n <= WHOLE;
    print_dim(&p, 0, 0); // widths
    p.width = p.widest ? p.widest : 1;
    print_dim(&p, 0, 0);
    str_putc(out, '\n');
}
